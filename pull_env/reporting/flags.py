"""Flags of the commands: one name, one meaning, one help text wherever they occur."""

from __future__ import annotations

from typing import Annotated

from tyro.conf import FlagCreatePairsOff, arg

SCENARIO = "A preset's name, or the path of a TOML file"
POLICY = 'A name such as "balanced(2)", tuned, or the path of a TOML file'
CUSTOMERS = "Customers to count, over all replications"

Switch = FlagCreatePairsOff[bool]
Seed = Annotated[int, arg(metavar="S", help="From 0. The same arguments give the same numbers.")]
Customers = Annotated[
    int | None, arg(metavar="N", help=f"{CUSTOMERS}; by default 1,000,000, or a whole trace.")
]
Replications = Annotated[int, arg(metavar="K", help="Independent runs, behind the intervals.")]
Warmup = Annotated[
    int | None,
    arg(metavar="W", help="Uncounted customers of each replication; by default five relaxation times."),
]
Workers = Annotated[
    int | None, arg(metavar="T", help="Threads; by default one per core. Results do not depend on it.")
]
