"""Encoders: what learns on top of the rows that come in.

Knows layers only: no prototypes, no losses, no epochs.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from pnp_gcd.geometry import Geometry

__all__ = ["ImageEncoder", "ProjectionHead", "ResidualAdapter", "pack_adapter", "unpack_adapter"]


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


def pack_adapter(adapter: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return an adapter's weights as arrays, by their names."""
    return {name: tensor.cpu().numpy().copy() for name, tensor in adapter.state_dict().items()}


def unpack_adapter(weights: Mapping[str, NDArray[np.float32]]) -> ResidualAdapter:
    """Return the adapter whose weights ``pack_adapter`` has returned."""
    hidden_width, width = weights["expand.weight"].shape
    with torch.random.fork_rng(devices=[]):  # layers draw weights, though others follow
        adapter = ResidualAdapter(width, hidden_width)
    adapter.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    return adapter.eval()


class ImageEncoder(nn.Module):
    """The tail of a backbone, the geometry of the fit and an adapter: activations to unit rows.

    Before training it gives what the geometry makes of the backbone's own features.

    Parameters
    ----------
    tail : nn.Module
        Activations (b, …) to features (b, d). A copy of it learns.
    geometry : Geometry
        Stays as it is.
    hidden_width : int
        Of the adapter.
    """

    centre: Tensor
    axes: Tensor

    def __init__(self, tail: nn.Module, geometry: Geometry, hidden_width: int) -> None:
        super().__init__()
        self.tail = copy.deepcopy(tail)
        self.register_buffer("centre", torch.from_numpy(geometry.centre).float())
        self.register_buffer("axes", torch.from_numpy(geometry.axes @ geometry.scaling))
        self.lift = geometry.lift
        self.adapter = ResidualAdapter(geometry.n_columns, hidden_width)

    def forward(self, activations: Tensor) -> Tensor:
        """Map activations (b, …) to unit rows (b, p)."""
        rows = (self.tail(activations) - self.centre) @ self.axes
        if self.lift > 0:
            rows = functional.pad(rows, (0, 1), value=self.lift)
        adapted: Tensor = self.adapter(functional.normalize(rows, dim=1))
        return adapted


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
