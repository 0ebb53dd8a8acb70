"""Linear schedules of the learning rate and of the weight of the entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback


@dataclass(frozen=True)
class LinearSchedule:
    """A number that falls linearly, as a schedule of Stable-Baselines3.

    Attributes:
        start: Its value at the start.
        final: Its value at the end, as a share of `start`.
    """

    start: float
    final: float

    def __call__(self, remaining: float) -> float:
        """Return the number when a share `remaining` of the run is left."""
        return self.start * (self.final + (1.0 - self.final) * remaining)


class EntropySchedule(BaseCallback):
    """Lowers the weight of the entropy over a run: exploration comes first."""

    def __init__(self, weight: LinearSchedule, steps: int) -> None:
        """Let the weight follow `weight` over `steps` customers."""
        super().__init__()
        self.weight, self.steps = weight, steps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        model: Any = self.model
        model.ent_coef = self.weight(max(0.0, 1.0 - self.num_timesteps / self.steps))
