"""Pictures of a simulator between two customers: a text, or an array of pixels.

Rendering only reads: it does not change the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pull_env.rendering.picture import rgb_array
from pull_env.rendering.table import ansi
from pull_env.simulation.simulator import Simulator

__all__ = ["RENDERERS", "ansi", "rgb_array"]

RENDERERS: dict[str, Callable[[Simulator], Any]] = {"ansi": ansi, "rgb_array": rgb_array}  # by render mode
