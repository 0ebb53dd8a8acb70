"""What falls while a learner learns: the step of Adam, and the weight of the policy's entropy."""

from __future__ import annotations

from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback


@dataclass(frozen=True)
class Falling:
    """A number that falls on a line, as Stable-Baselines3 wants its schedules.

    Attributes:
        start: At the start.
        final: At the end, as a share of that.
    """

    start: float
    final: float

    def __call__(self, remaining: float) -> float:
        """Return the number where a share `remaining` of the run is to come."""
        return self.start * (self.final + (1.0 - self.final) * remaining)


class FallingEntropy(BaseCallback):
    """Lets the weight of the entropy fall: all is tried at first, and little left to chance at last."""

    def __init__(self, weight: Falling, steps: int) -> None:
        """Let it fall as `weight` does over `steps` customers."""
        super().__init__()
        self.weight, self.steps = weight, steps

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self.model.ent_coef = self.weight(max(0.0, 1.0 - self.num_timesteps / self.steps))
