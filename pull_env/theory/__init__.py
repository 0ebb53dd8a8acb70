"""What is known without simulation: formulas, limits, bounds, exact values.

`predict` returns what is known for a scenario and a policy. Submodules:

    formulas         single queues, one queue with many servers (closed forms)
    supermarket      the shortest of d queues in large systems (closed forms)
    choices          the same for pools of any rates and buffers (mean field)
    pull_mean_field  PULL in large systems with many routers
    pull_fluid       PULL and JBT in large systems with few routers
    bounds           what no policy can beat
    exact            measures of a small system under any policy, from its Markov chain
    optimum          the optimal policy of a small system
    prediction       `predict`

All load on first use, as some need scipy.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pull_env.theory.prediction import Known, predict

__all__ = ["Known", "predict"]

_LAZY = {"Known": "prediction", "predict": "prediction"}
_SUBMODULES = frozenset(module.name for module in iter_modules(__path__))


def __getattr__(name: str) -> Any:
    """Import a submodule, or the module of an exported name, on first use."""
    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBMODULES})
