"""Encoders: what learns on top of the rows that come in.

Knows layers only: no prototypes, no losses, no epochs.
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional

__all__ = ["ProjectionHead", "ResidualAdapter"]


class ResidualAdapter(nn.Module):
    """A small residual network on unit rows that starts as the identity.

    Parameters
    ----------
    width : int
        Columns of the rows that come in and go out.
    hidden_width : int
        Columns of the hidden layer.
    """

    def __init__(self, width: int, hidden_width: int) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, hidden_width)
        self.contract = nn.Linear(hidden_width, width)
        nn.init.zeros_(self.contract.weight)
        nn.init.zeros_(self.contract.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """Map unit rows (n, d) to unit rows (n, d)."""
        # Unit rows have entries of about 1/sqrt(d); the layers want entries of about 1.
        change = self.contract(functional.gelu(self.expand(self.norm(rows * self.scale))))
        return functional.normalize(rows + change / self.scale, dim=1)


class ProjectionHead(nn.Module):
    """The three linear layers h that the contrastive terms look through; thrown away after training.

    Parameters
    ----------
    width, hidden_width, out_width : int
    """

    def __init__(self, width: int, hidden_width: int, out_width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, hidden_width),
            nn.GELU(),
            nn.Linear(hidden_width, hidden_width),
            nn.GELU(),
            nn.Linear(hidden_width, out_width),
        )

    def forward(self, features: Tensor) -> Tensor:
        """Map features (n, d) to unit projections (n, out_width)."""
        projected: Tensor = self.layers(features)
        return functional.normalize(projected, dim=1)
