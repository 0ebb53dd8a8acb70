"""The commands that trained a router, as text, to run them again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]  # of the checkout; files in commands are relative to it
NOT_REPEATED = ("--out", "--minutes", "--generations", "--workers")  # flags that do not change the result
MOVED = {"agents/trained/": "agents/zoo/trained/"}  # in commands of earlier versions


def without_flags(command: str, flags: Sequence[str]) -> str:
    """Return a command without these flags and their values."""
    words, kept = shlex.split(command), []
    while words:
        word = words.pop(0)
        if word in flags:
            words.pop(0)
        else:
            kept.append(word)
    return shlex.join(kept)


def repeatable(command: str, generations: int | None = None) -> str:
    """Return a command that repeats a run wherever its results go.

    A search is repeated by the number of generations that it made, in place of its time limit.
    """
    kept = without_flags(command, NOT_REPEATED)
    return kept if generations is None else f"{kept} --generations {generations}"


def with_start(command: str, start: Path) -> str:
    """Return a command whose `--start`, if it has one, is the file `start`."""
    words = shlex.split(command)
    if "--start" in words:
        path = start.relative_to(ROOT) if start.is_relative_to(ROOT) else start
        words[words.index("--start") + 1] = path.as_posix()
    return shlex.join(words)


def arguments_of(command: str) -> list[str]:
    """Return the arguments of Python in a command; former modules become verbs.

    >>> arguments_of("python -m agents.search --start agents/trained/bursty/start.toml")
    ['-m', 'agents', 'search', '--start', 'agents/zoo/trained/bursty/start.toml']
    """
    words = shlex.split(command)[1:]
    package, _, verb = words[1].partition(".")
    words[1:2] = [package, verb] if verb else [package]
    for old, new in MOVED.items():
        words = [new + word.removeprefix(old) if word.startswith(old) else word for word in words]
    return words
