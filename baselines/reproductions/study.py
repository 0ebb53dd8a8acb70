"""What a reproduction is made of: points to measure, from their rows a page with verdicts, and a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

Row = Mapping[str, Any]  # a row of `baselines.rows`, with `point` and `extra` of its Measured


@dataclass(frozen=True)
class Section:
    """A claim of the paper, and what was measured about it.

    Attributes:
        heading: In a few words.
        claim: What the paper proves, with its number there.
        setting: The systems, policies, run lengths and warm-ups, in words.
        header: Names of the columns, with units.
        table: Cells as text, one row for each measured point: estimates with intervals, theory beside them.
        reproduced: Whether the claim holds in these rows; None: the rows do not decide it.
        verdict: Why, with the numbers that decide it.
    """

    heading: str
    claim: str
    setting: str
    header: Sequence[str]
    table: Sequence[Sequence[str]]
    reproduced: bool | None
    verdict: str


@dataclass(frozen=True)
class Study:
    """A paper, and how its headline is reproduced.

    Attributes:
        name: What the command line calls it; stem of its files.
        title: Of the page.
        source: The paper.
        about: What the paper claims and why it matters, in a few sentences.
        tasks: Given `quick`, the measurements, each a function that returns a row: `row(...)` of
            `baselines.rows` with two more keys, `point` (experiment and coordinates, plain values) and
            `extra` (further measures by name, each with mean, low and high, theory among them).
        sections: Given the rows, the page.
        figure: Given the rows, the picture.
    """

    name: str
    title: str
    source: str
    about: str
    tasks: Callable[[bool], Iterator[Callable[[], Row]]]
    sections: Callable[[Sequence[Row]], Sequence[Section]]
    figure: Callable[[Sequence[Row]], Figure]
