"""What is known without simulation: closed forms, limits, bounds, exact laws and optima of small systems.

`predict` tells what is known for a scenario and a policy; the submodules give the parts: `formulas`,
`mean_field`, `bounds`, `prediction`, `exact`, `optimum`. All load on first use, as they need scipy.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pull_env.theory.prediction import Known, predict

__all__ = ["Known", "predict"]

_LAZY = {"Known": "prediction", "predict": "prediction"}


def __getattr__(name: str) -> Any:
    """Import a submodule, or the module of an exported name, when it is asked for."""
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
