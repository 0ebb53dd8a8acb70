"""Train, search, score and report routers: `python -m agents VERB`.

Flags mean the same everywhere: `--scenario` a preset or a TOML file, `--policy` policies to compare with,
`--seed`, `--customers` counted over all `--replications`, `--workers` threads, `--out` where results go.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import tyro

from pull_env.reporting.console import exit_status
from pull_env.scenario.validation import one_of

VERBS = {  # module, which has `Args` and `run`; what it does
    "train": ("agents.training.train", "train a router by PPO, MaskablePPO, DQN or QR-DQN"),
    "dispatch": ("agents.training.train_dispatch", "train by PPO with full information, beside the optimum"),
    "search": ("agents.search.cma_es", "search a small network by CMA-ES"),
    "export": ("agents.training.export", "write a trained router as a policy without code"),
    "score": ("agents.training.score", "score a router beside other policies"),
    "generalise": ("agents.general.train", "train the general router, for systems it has never seen"),
    "general": ("agents.general.router", "write the policy of the general router for a scenario"),
    "benchmark": ("agents.general.benchmark", "score the general router on systems drawn at random"),
    "shelve": ("agents.zoo.registry", "copy the router of a run to agents/zoo/trained"),
    "retrain": ("agents.zoo.retrain", "train a router of agents/zoo/trained again, and compare"),
    "report": ("agents.report.run", "score all trained routers and write agents/README.md"),
}


def usage() -> str:
    """Return the help: a line for each verb."""
    lines = [f"  {verb:12}{about}" for verb, (_, about) in VERBS.items()]
    head = f"usage: python -m agents VERB [-h] [...]\n\n{__doc__.split(chr(10), 1)[1].strip()}\n\nverbs:\n"
    return head + "\n".join(lines)


def module_of(verb: str) -> Any:
    """Return the module of a verb; imported here, as some take a second."""
    return import_module(VERBS[verb][0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb that the command line names, and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else 2
    verb = words.pop(0)
    if verb not in VERBS:
        print(f"error: verb is {verb!r}: {one_of(verb, VERBS)}", file=sys.stderr)
        return 2
    module = module_of(verb)
    args = tyro.cli(module.Args, prog=f"python -m agents {verb}", description=module.__doc__, args=words)
    return exit_status(lambda: module.run(args))


if __name__ == "__main__":
    sys.exit(main())
