"""An actor that sees what its router sees, beside a critic that sees the state: for PPO and MaskablePPO.

A critic is needed in training only, so it may look at what no router can know: its guess of what is to come
is far better, and the actor learns from less noise (Pinto et al., "Asymmetric actor critic", RSS 2018).
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from torch import nn


class TwoViews(MlpExtractor):
    """Two networks side by side: the actor's reads the first `local_size` entries, the critic's all."""

    def __init__(self, local_size: int, size: int, **arguments: Any) -> None:
        """Build both.

        Args:
            local_size: Entries of an observation that a router knows itself.
            size: All entries of an observation.
            **arguments: Those of `MlpExtractor`: layers, activation, device.
        """
        super().__init__(local_size, **arguments)
        self.local_size = local_size
        self.value_net: nn.Sequential = MlpExtractor(size, **arguments).value_net

    def forward_actor(self, features: torch.Tensor) -> torch.Tensor:
        """Return (batch, last layer of the actor), from (batch, size) observations."""
        return super().forward_actor(features[:, : self.local_size])


class _TwoViews:
    """Lets a policy of Stable-Baselines3 build `TwoViews`; its actor has the names of a plain policy's."""

    def __init__(self, *arguments: Any, local_size: int, **further: Any) -> None:
        """Build the policy; `local_size` as in `TwoViews`, all else as Stable-Baselines3 does."""
        self.local_size = local_size
        super().__init__(*arguments, **further)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = TwoViews(
            self.local_size,
            self.features_dim,  # type: ignore[attr-defined]
            net_arch=self.net_arch,  # type: ignore[attr-defined]
            activation_fn=self.activation_fn,  # type: ignore[attr-defined]
            device=self.device,  # type: ignore[attr-defined]
        )


class TwoViewsPolicy(_TwoViews, ActorCriticPolicy):
    """The policy of PPO with an actor and a critic that see different things."""


class MaskableTwoViewsPolicy(_TwoViews, MaskableActorCriticPolicy):
    """The same for MaskablePPO."""
