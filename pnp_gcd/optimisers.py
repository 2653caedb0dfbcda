"""Stochastic gradient descent with momentum, for a handful of tensors.

By hand, because the first use of torch.optim imports torch's compiler, which takes longer than a
whole fit of a few thousand rows. Knows tensors only: no losses, no epochs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["MomentumSGD", "ParameterGroup", "group_parameters"]


@dataclass
class ParameterGroup:
    """Tensors that learn alike; their gradients are clipped together."""

    parameters: list[nn.Parameter]
    relative_rate: float = 1.0
    weight_decay: float = 0.0


def group_parameters(
    module: nn.Module, *, weight_decay: float, relative_rate: float = 1.0
) -> list[ParameterGroup]:
    """Return a module's parameters that learn, with weight decay on matrices, none on biases and norms."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    matrices = [p for p in parameters if p.ndim > 1]
    vectors = [p for p in parameters if p.ndim == 1]
    return [ParameterGroup(matrices, relative_rate, weight_decay), ParameterGroup(vectors, relative_rate)]


class MomentumSGD:
    """v ← μ·v + g + λ·p and p ← p − rate·v, with g clipped by the length of its group's gradient.

    Parameters
    ----------
    groups : iterable of ParameterGroup
    momentum : float
        μ; the first step takes v = g + λ·p.
    max_gradient : float
        Longer gradients of a group are scaled down to this length.
    """

    def __init__(self, groups: Iterable[ParameterGroup], *, momentum: float, max_gradient: float) -> None:
        self.groups, self.momentum, self.max_gradient = list(groups), momentum, max_gradient
        self.velocities: dict[nn.Parameter, Tensor] = {}

    def forget_gradients(self) -> None:
        """Drop the gradients of the step before."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move every parameter that has a gradient."""
        for group in self.groups:
            moved = [(p, p.grad) for p in group.parameters if p.grad is not None]
            if not moved:
                continue
            length = float(torch.stack([gradient.norm() for _, gradient in moved]).norm())
            scale = min(1.0, self.max_gradient / (length + 1e-6))
            for parameter, gradient in moved:
                change = gradient * scale
                if group.weight_decay:
                    change.add_(parameter, alpha=group.weight_decay)
                velocity = self.velocities.get(parameter)
                velocity = change if velocity is None else velocity.mul_(self.momentum).add_(change)
                self.velocities[parameter] = velocity
                parameter.add_(velocity, alpha=-rate * group.relative_rate)
