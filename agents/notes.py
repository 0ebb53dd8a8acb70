"""What the page on trained routers says in words; all that is measured comes from rows."""

HEAD = """# Trained routers

*Made by `python -m agents.report` from [`results/rows.jsonl`](results/rows.jsonl); do not edit.*

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
(`python -m agents.dispatch`). Its best actions for all lengths of the queues are a table, whose exact cost is
known from the Markov chain, as the optimum's is (`pull_env.theory.optimise`).
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
TRAINING_NOTE = """By `python -m agents.search` from a chain of steps or a network (`start.toml`) as one
that knows more steps; or by gradients, `python -m agents.train`. Validation is on customers that neither
candidates nor the scores above met; what it cost on the way stands in `curve.jsonl`. `python -m
agents.reproduce NAME --check` trains a router again and compares the weights: of a search to the bit on any
processor that rounds alike, of training by gradients on one with the same instructions. Training had a share
of two busy cores, so wall times say little.
"""
TRIED_NOTE = """On two to four million customers of validation, in the order of what it cost to try:

- *Searches.* `hot-router`, 110 generations over all that a router sees, in place of four entries: -0.1 %.
  `slow-news` from `tuned`, 54 generations: 1.5 % below `tuned`, and so above what is shelved. The shelved
  router of `slow-news` polished for 24 generations in servers that tell the router with fewest messages of
  two: the same cost within the noise, half of it in messages.
- *Gradients.* MaskablePPO on `two-speeds`, taught `tuned` first and offered its steps (`--start tuned --offer
  start`, gamma .995, lambda .5): equal to it after 2 million customers by sampled actions, then ever fewer
  messages, and 6 % above it after 3 million: queues that a customer leaves behind are felt for longer than
  200 customers, and what is remembered costs nothing now. With gamma .999 and lambda .8 the advantages are
  noise: 20 % above after half a million.
- *Messages that grow old*, on `failures`: not to take one beyond an age costs 0.4 to 24 % more, for any age.
- *A longer memory than `tuned` may have*: 50 servers a pool in place of 16 make the router of `slow-news`
  1.6 % cheaper, untrained, and that of `bursty` dearer.

What stands in the way of 8 %: `tuned` is already the best of some hundred chains, or a search that adapts
itself (`failures`, `hot-router`); a router that starves of messages must ask, whatever it learns, and what
it pays for that is most of the cost. The gains are where old news can be weighed: `slow-news`, `bursty`.
"""
