"""The compiled simulator: numpy arrays in, numpy arrays out.

Python (`pull_env.simulation.simulator`) validates, allocates and seeds; the kernels advance a system in
place, and never check, allocate or call Python. This folder imports only numpy, numba and the
standard library; a test guards that.

Where to start: `run.py` has the one transition of a system (route the current customer, then advance to the
next arrival) and the loops over it. It builds on

    clock.py        what happens next: Markov clock or calendar of departures; joining and leaving a server
    announce.py     servers announce themselves by pull-messages and withdraw them
    messages.py     the lists of pull-messages that routers hold
    routing/        the steps of a policy, and what a router remembers
    statistics.py   areas, counts and histograms
    network.py      a neural network that picks a step
    faults/         slow or lost messages, failing servers; compiled only for runs that need them
    envs/           steps and observations of Gymnasium envs
    prefetch/       fetching memory ahead of its use
    state.py, access.py   records and flags; how kernels reach records
    random.py, heap.py, compiler/   random streams, a priority queue, decorators

A kernel knows a system by one integer, its handle; from it, it reaches every array:

    handle:  63          48 47                  0
            +--------------+---------------------+
            | flags        | address of the head |      flags: see `state.py`; fixed for a run
            +--------------+----------+----------+
                                      v
    head:   +--------------------------------------+      one HEAD record: sizes, clock, the current
            | n  J  R  now  pools  servers  lists ...     customer, random streams, and the addresses
            +-----------------+------+--------+----+      of all other arrays
                              v      v        v
    arrays:           (J,) POOL   (n,) SERVER  (R, J) LIST  ...

    pool_of(system, j).busy += 1        reads head.pools, goes to record j, and writes the array

Python keeps the arrays alive: `StateArrays` (`pull_env.simulation.kernel_data.state_arrays`) owns them and
writes their addresses to the head; a `Simulator` owns its `StateArrays`. An address is valid only while its
array exists, so whoever replaces an array must link again. All records that hold addresses work like this: a
VIEW (what an env observes), a NETWORK, a BATCH of envs; see `kernel_data.linked_record.LinkedRecord`.
"""
