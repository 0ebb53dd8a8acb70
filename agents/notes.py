"""What the page on trained routers says in words; all that is measured comes from rows."""

HEAD = """# Trained routers

*Made by `python -m agents.report` from [`results/rows.jsonl`](results/rows.jsonl); do not edit.*

Each router in `trained/` was trained for one preset, and is scored here beside every baseline and `tuned`,
the best policy that a search over rules of a person's kind found for that preset. Differences are those of
the learned router, in % of the other's cost: negative is cheaper. In brackets the interval of 95 %, paired:
all policies meet the same customers. A difference in bold is a loss.
"""
UNMOVED = (
    "- the search found nothing better than what it began with on {names}; "
    "a few dozen generations of short, noisy runs are all it had"
)
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
TRIED_NOTE = """TRIED
"""
