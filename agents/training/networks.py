"""Networks for PPO: the actor sees what its router sees, the critic the state.

A critic is needed in training only, so it may see what no router can know: its estimates of future cost are
far better, and the actor learns with less noise (Pinto et al., "Asymmetric actor critic", RSS 2018).
"""

from __future__ import annotations

from typing import Any

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import MlpExtractor
from torch import nn


class AsymmetricMlp(MlpExtractor):
    """Two networks: the actor's reads the first entries, the critic's reads all."""

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


class _Asymmetric:
    """Mixin: a policy of Stable-Baselines3 with an `AsymmetricMlp`.

    The actor's weights keep the names that they have in a plain policy.
    """

    def __init__(self, *arguments: Any, local_size: int, **further: Any) -> None:
        """Build the policy; `local_size` as in `AsymmetricMlp`."""
        self.local_size = local_size
        super().__init__(*arguments, **further)

    def _build_mlp_extractor(self: Any) -> None:
        self.mlp_extractor = AsymmetricMlp(
            self.local_size,
            self.features_dim,
            net_arch=self.net_arch,
            activation_fn=self.activation_fn,
            device=self.device,
        )


class AsymmetricPolicy(_Asymmetric, ActorCriticPolicy):  # type: ignore[misc]
    """The policy of PPO whose critic sees more than its actor."""


class MaskableAsymmetricPolicy(_Asymmetric, MaskableActorCriticPolicy):  # type: ignore[misc]
    """The policy of MaskablePPO whose critic sees more than its actor."""
