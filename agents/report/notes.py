"""What the page on trained routers says in words; all that is measured comes from rows."""

HEAD = """# Trained routers

*Made by `python -m agents report` from [`results/rows.jsonl`](results/rows.jsonl); do not edit.*

Each router in `trained/` was trained for one preset, and is scored here beside every baseline and `tuned`,
the best policy that a search over rules of a person's kind found for that preset. Differences are those of
the learned router, in % of the other's cost: negative is cheaper. In brackets the interval of 95 %, paired:
all policies meet the same customers. A difference in bold is a loss.
"""
UNMOVED = "- not below what training began with, by an interval that excludes zero: {names}"
UNTUNED = (
    "- no `tuned` policy is there yet for {names}: in its place stands the start: `pandora`, or the "
    "best chain that a search of a minute found, one parameter at a time"
)
MAIN_NOTE = """{run}. Cost an arriving customer = wait + price x messages (+ price of a block x blocked or
lost). The best baseline is the cheapest of the registry in these very runs: it is judged a little too
well. `pull-min` is told for nothing which router holds fewest messages; no real one could know that.
"""
FLOOR_NOTE = """What a router would cost that sees all queues and pays for no message: the best of `jsq`,
`jfsq`, `sed` and `lwl` in the same runs, at a price of 0. No router that pays for what it knows can be far
below; but on `slow-news` asking takes time, which this router pays, too.
"""
SIGHT_NOTE = """A router that sees all queues and pays nothing for it (`pull_env/Dispatch-v0` with
`free_information=True`) was trained by PPO on what the env shows and costs, and on nothing else
(`python -m agents dispatch`). Its best actions for all lengths of the queues are a table, whose exact cost is
known from the Markov chain, as the optimum's is (`pull_env.theory.optimise`). The optimum is that of all who
see queue lengths: `lwl` sees more, how much work is left in each. It may turn a customer away although there
is room, and so may the learned one; the named rules never do.
"""
TRANSFER_NOTE = """The routers as they are, in systems that they were not trained on: the same mix of servers,
n in all, with as many routers; and other loads. `tuned` is the one for the preset, not tuned anew.
{run}.
"""
PRICE_NOTE = """The same customers with a message at another price. Nothing was trained or tuned anew, which
would do better: this shows where each policy lies between waiting and messages. What does not look at the
price does the same at all, so that its cost is exact without another run; what does was simulated at each:
`pandora`, and routers that may choose its search.
"""
TRAINING_NOTE = """By `python -m agents search` from a chain of steps or a network (`start.toml`) as one
that knows more steps (that of `hot-spot-moves` is what a first search found, see `before.json` there); or by
gradients, `python -m agents train`. Validation is on customers that neither
candidates nor the scores above met; what it cost on the way stands in `curve.jsonl`. `python -m
agents retrain NAME --check` trains a router again and compares the weights: of a search to the bit on any
processor that rounds alike, of training by gradients on one with the same instructions. Training had a share
of two busy cores, so wall times say little.
"""
TRIED_NOTE = """Differences here are those of short validation runs, of .4 to 2 million customers:

- *Searches.* Over all that a router sees in place of four entries: `hot-router`, 110 generations, -0.1 %;
  `failures`, 98 generations, nothing better. `slow-news` from `tuned`, 54 generations: 1.5 % below `tuned`,
  above what is shelved. The shelved router of `bursty` polished for 81 generations over all that it sees:
  nothing better. That of `slow-news`, told by the fewest of two and polished for 108 generations: -0.4 %
  (-1.0 to +0.1), so that it stayed as it was. (The same polish, 123 generations, made the router of
  `hot-spot-moves` 1.3 % cheaper, 1.0 to 1.6; that one is shelved. From the chain anew, 93 generations: within
  0.4 % of it.)
- *Gradients.* MaskablePPO on `two-speeds`, from nothing: 1.5 % above `tuned` (0.9 to 2.1) after 3 million
  customers, equal to it after 6 million (-0.5 to +0.7), in under eight minutes; not better than what is
  shelved. Taught `tuned` first and offered its steps (`--start tuned --offer start`, gamma .995, lambda .5):
  sampled, equal to it after 2 million customers, then ever fewer messages and 6 % above it after 3 million.
  With gamma .999 and lambda .8: 10 to 28 % above after half a million, where gamma .995 was at 2 to 4 %. On
  `bursty` from `starts/bursty.toml`, gamma .998, 2.5 million: 6.2 % above (3.8 to 8.7).
- *Other protocols.* The shelved router of `slow-news`, told by the fewest of two: the same cost, less of it
  waiting and more of it messages; that of `bursty`: 6 % dearer. Without withdrawal, or with a threshold of 2,
  both are dearer.
- *Old messages* on `failures`: never to take one of a slow server beyond an age: 0.4 to 19 % dearer.
- *A longer memory than `tuned` may have*: 50 servers a pool in place of 16 make the router of `slow-news`
  1.6 % cheaper, untrained, and that of `bursty` 1 % dearer.

- *Size and steps of gradients.* MaskablePPO on `two-speeds` from nothing, a million customers each (seed 0,
  the best at the end by 400,000 customers): 0.75 as it is, two layers of 64 and 128 customers of an
  environment between updates; 1.20 with 512 of them, 0.83 with 32; **0.440** (0.415 to 0.465) with two layers
  of 256, in three times the time. Two million customers with these, in four minutes: 0.8 % below `tuned` (1.5
  below to 0.0), 0.3 % below what is shelved (1.0 below to 0.3 above): the first thing to go on with.

Not tried: layers of 256 elsewhere or for longer, training by gradients for more than a few minutes, other
entries of the observation. Rewards are always scaled, and entries lie in [0, 1] by construction.

The aim of 8 % is missed everywhere. On `failures`, `hot-router` and `batches` the tuned policy is `pandora`,
which already asks more or less as the price, the load and the answers say: no weighing of what a router sees
improved on it. On `hot-spot-moves` 5 messages a customer are most of the cost, as half of the customers come
where the messages are not. Most was gained where what a router remembers can stand in for asking: on
`slow-news` and `bursty`.
"""
