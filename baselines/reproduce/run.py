"""`python -m baselines.reproduce`: rows, a figure and a page per paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional, arg

from pull_env.reporting.console import command_line, console, exit_status
from pull_env.reporting.flags import Seed, Switch, Workers
from pull_env.reporting.rows import checkout, read_rows, write_rows
from pull_env.reporting.run_folder import replacing, save_figure, write_text
from pull_env.simulation.progress import progress_bar
from pull_env.simulation.simulate import check_run

if TYPE_CHECKING:
    from baselines.reproduce.common.study import Study

DESCRIPTION = """Reproduce the headlines of four papers: measured values beside the theory, with verdicts.

For example:
  python -m baselines.reproduce stolyar --quick
  python -m baselines.reproduce all
  python -m baselines.reproduce all --page"""

STUDIES = {
    "stolyar": "baselines.reproduce.stolyar.study",
    "zhou": "baselines.reproduce.zhou.study",
    "chen-ye": "baselines.reproduce.chen_ye.study",
    "brightwell-luczak": "baselines.reproduce.brightwell_luczak.study",
}
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Args:
    """What to reproduce, and how long."""

    study: Annotated[
        Positional[Literal["stolyar", "zhou", "chen-ye", "brightwell-luczak", "all"]], arg(metavar="PAPER")
    ]
    """stolyar, zhou, chen-ye, brightwell-luczak or all."""
    quick: Switch = False
    """Smaller sizes and shorter runs: under two minutes per paper, instead of about five."""
    page: Switch = False
    """Measure nothing: make page and figure again from existing rows."""
    seed: Seed = 0
    workers: Workers = None
    out: Path | None = None
    """Folder for rows, page and figure; by default results/reproductions-quick for quick results, and for
    full ones baselines/reproduce/results in a checkout, results/reproductions elsewhere."""


def load(name: str) -> Study:
    """Return a study by its name in the table."""
    study: Study = import_module(STUDIES[name]).STUDY
    return study


def choose_results(args: Args, root: Path = ROOT) -> Path:
    """Return the folder for results; quick ones never replace full ones."""
    if args.out is not None:
        return args.out
    if args.quick:
        return Path("results") / "reproductions-quick"
    if (root / ".git").exists():
        return root / "baselines" / "reproduce" / "results"
    return Path("results") / "reproductions"


def measure(study: Study, args: Args, command: str, folder: Path) -> bool:
    """Measure all points of a study; their rows replace earlier ones.

    Returns:
        Whether all were measured; after an interruption the earlier rows stay.
    """
    from baselines.reproduce.common.study import Setup

    tasks = list(study.tasks(Setup(args.quick, args.seed, args.workers, command)))
    try:
        with (
            replacing(folder / f"{study.name}.jsonl") as (draft,),
            progress_bar(study.name, len(tasks), sys.stderr.isatty()) as report,
        ):
            for task in tasks:
                write_rows(draft, [task()])
                report(1)
    except KeyboardInterrupt:
        return False
    return True


def publish(study: Study, folder: Path) -> list[Path]:
    """Write the page and the figures of a study from its rows; return the files.

    Raises:
        ValueError: There are no rows, or they cannot be read.
    """
    from baselines.reproduce.common.page import page

    rows = read_rows(folder / f"{study.name}.jsonl")
    if not rows:
        raise ValueError(f"{folder / study.name}.jsonl holds no rows")
    text, figure = page(study, rows), study.figure(rows)
    markdown = folder / f"{study.name}.md"
    write_text(markdown, text)
    return [markdown, *save_figure(figure, folder / study.name)]


def reproduce(args: Args, command: str) -> int:
    """Measure, publish, print where to find it, and return the exit status.

    Raises:
        ValueError: An argument is not allowed, or there are no rows to make a page from.
    """
    check_run(None, args.seed, 1, None, args.workers)
    checkout(ROOT)  # before anything is written, which would make the tree unclean
    folder, out = choose_results(args), console()
    folder.mkdir(parents=True, exist_ok=True)
    for name in STUDIES if args.study == "all" else [args.study]:
        study = load(name)
        if not args.page and not measure(study, args, command, folder):
            out.print(f"Interrupted: {name} was not finished; earlier results stay as they are.", style="red")
            return 130
        out.print("Written:", folder / f"{name}.jsonl", *publish(study, folder))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, or `arguments`, and return the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    command = command_line(["-m", "baselines.reproduce", *given])
    args = tyro.cli(Args, prog="python -m baselines.reproduce", description=DESCRIPTION, args=arguments)
    return exit_status(lambda: reproduce(args, command))


if __name__ == "__main__":
    sys.exit(main())
