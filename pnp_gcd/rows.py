"""What a fit learns from: feature vectors, or images through a frozen trunk.

Both answer the same questions: which rows are copies, what they look like before training, which network
learns on them, what a batch of two views is, and what the network makes of every row. Knows rows and
networks: no labels, no losses, no epochs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pnp_gcd.encoders import ResidualAdapter
from pnp_gcd.encoding import encode_rows
from pnp_gcd.geometry import Geometry, unit_rows
from pnp_gcd.neighbours import find_neighbours
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.views import FeatureViews, TwoViews
from pnp_gcd.workers import ALONE, World

__all__ = ["Copies", "LearningPart", "Rows", "Source", "VectorRows", "find_copies"]

# Columns at which an adapter learns at the full rate.
_FULL_RATE_WIDTH = 256
# Rows looked at for the usual distance between neighbours, and the neighbour that counts.
_SAMPLED_ROWS = 2000
_USUAL_NEIGHBOUR = 8
# Rows encoded at once where not all are kept.
_BLOCK_ROWS = 16_384


class Copies(NamedTuple):
    """Equal rows.

    Attributes
    ----------
    first : ndarray of shape (m,)
        The first of all equal rows, in their order.
    place : ndarray of shape (n,)
        For each row its place among them.
    """

    first: NDArray[np.int64]
    place: NDArray[np.int64]


class LearningPart(NamedTuple):
    """A part of an encoder, and how fast it learns relative to the rest of the network."""

    module: nn.Module
    relative_rate: float


class Source(Protocol):
    """Rows as training sees them, in the geometry of the fit.

    Attributes
    ----------
    start : ndarray of shape (n, p)
        Unit rows before training.
    device : torch.device
        Where the encoder works.
    generator : torch.Generator
        Draws the views.
    n_drawn : int
        Batches whose views were drawn anew, where each is drawn by its number.
    world : World
        The workers of the fit.
    owners : ndarray of shape (n,)
        The worker that each row belongs to.
    """

    start: NDArray[np.float32]
    device: torch.device
    generator: torch.Generator
    n_drawn: int
    world: World
    owners: NDArray[np.int64]

    def make_encoder(self) -> nn.Module:
        """Return a network whose features of every row are ``start``."""

    def learning_parts(self, encoder: nn.Module) -> list[LearningPart]:
        """Return the parts of ``encoder`` that learn."""

    def take(self, indices: Tensor) -> TwoViews:
        """Return two views of the rows at ``indices`` that are this worker's, as the encoder takes them."""

    def encode(self, encoder: nn.Module) -> NDArray[np.float32]:
        """Return unit features (n, p) of all rows, in their order, without randomness."""


class Rows(Protocol):
    """Rows as they come into a fit, and the workers among whom they are dealt."""

    world: World

    def __len__(self) -> int: ...

    def find_copies(self) -> Copies:
        """Tell which rows are equal."""

    def take(self, indices: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""

    def describe(self) -> NDArray[np.floating]:
        """Return features (n, d) before training."""

    def fingerprint(self) -> str:
        """Return a digest by which these rows are known again."""

    def place(self, geometry: Geometry, settings: TrainingSettings, generator: torch.Generator) -> Source:
        """Return the rows in a geometry, ready for training."""

    def encode_in_blocks(self, geometry: Geometry, encoder: nn.Module) -> Iterator[NDArray[np.float32]]:
        """Yield unit features of all rows, in their order, by an encoder that has learnt from some."""


def find_copies(rows: NDArray[np.generic]) -> Copies:
    """Compare rows (n, …) byte by byte."""
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    as_bytes = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    _, first, copy_of = np.unique(as_bytes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Copies(first[order], rank[copy_of.ravel()])


class VectorRows:
    """Feature vectors.

    Parameters
    ----------
    parts : ndarray of shape (n, d) or (n, v, d)
        Finite features, or v precomputed views of each row. Several arrays stand for all their rows; they
        may lie on disk, and are put together only if all are used at once.
    world : World
        Every worker holds all rows, and encodes its own.
    """

    def __init__(self, *parts: NDArray[np.floating], world: World = ALONE) -> None:
        self.parts, self.world = parts, world

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def vectors(self) -> NDArray[np.floating]:
        """All rows in one array."""
        if len(self.parts) > 1:
            self.parts = (np.concatenate(self.parts),)
        return self.parts[0]

    def find_copies(self) -> Copies:
        """Tell which rows are equal."""
        return find_copies(self.vectors + 0.0)  # −0.0 equals 0.0

    def take(self, indices: NDArray[np.int64]) -> VectorRows:
        """Return some of the rows, in rising order."""
        found = []
        for part in self.parts:
            n_here = int(np.searchsorted(indices, len(part)))
            found.append(part[indices[:n_here]])
            indices = indices[n_here:] - len(part)
        return VectorRows(np.concatenate(found), world=self.world)

    def describe(self) -> NDArray[np.floating]:
        """Return the features, of several views their mean."""
        return self.vectors.mean(axis=1) if self.vectors.ndim == 3 else self.vectors

    def fingerprint(self) -> str:
        """Return a digest of shape, type and every byte."""
        kind = np.result_type(*self.parts)
        digest = hashlib.sha256(repr((len(self), self.parts[0].shape[1:], kind.str)).encode())
        for part in self.parts:
            for start in range(0, len(part), _BLOCK_ROWS):
                digest.update(np.ascontiguousarray(part[start : start + _BLOCK_ROWS], dtype=kind).data)
        return digest.hexdigest()

    def place(
        self, geometry: Geometry, settings: TrainingSettings, generator: torch.Generator
    ) -> VectorSource:
        """Return the rows in a geometry, ready for training."""
        rate = adapter_rate(len(geometry.scaling))
        return VectorSource(geometry.apply(self.vectors), settings, generator, rate, self.world)

    def encode_in_blocks(self, geometry: Geometry, encoder: nn.Module) -> Iterator[NDArray[np.float32]]:
        """Yield unit features of all rows, in their order, by an encoder that has learnt from some."""
        for part in self.parts:
            for start in range(0, len(part), _BLOCK_ROWS):
                block = part[start : start + _BLOCK_ROWS]
                owners = self.world.owners(len(block))
                own = geometry.apply(block[self.world.mine(owners)])
                yield self.world.join_rows(encode_rows(encoder, own) if len(own) else own, owners)


class VectorSource:
    """Feature vectors in the geometry of a fit; an adapter learns on them. See :class:`Source`."""

    device = torch.device("cpu")

    def __init__(
        self,
        inputs: NDArray[np.float32],
        settings: TrainingSettings,
        generator: torch.Generator,
        rate: float = 1.0,
        world: World = ALONE,
    ) -> None:
        self.inputs, self.hidden_width, self.rate = inputs, settings.hidden_width, rate
        self.generator, self.n_drawn = generator, 0
        self.world, self.owners = world, world.owners(len(inputs))
        self.start = unit_rows(inputs.mean(axis=1)) if inputs.ndim == 3 else inputs
        self.views = FeatureViews(
            torch.from_numpy(inputs),
            noise=settings.view_noise * usual_distance(self.start) if settings.max_iter else 0.0,
            dropout=settings.view_dropout,
            generator=generator,
        )

    def make_encoder(self) -> nn.Module:
        """Return an adapter that starts as the identity."""
        return ResidualAdapter(self.start.shape[1], self.hidden_width)

    def learning_parts(self, encoder: nn.Module) -> list[LearningPart]:
        """Return the whole adapter."""
        return [LearningPart(encoder, self.rate)]

    def take(self, indices: Tensor) -> TwoViews:
        """Return two views, disturbed or picked; those of others are drawn too, so that all draw alike."""
        mine = self.world.mine(self.owners[indices.numpy()])
        return TwoViews(*(view[mine] for view in self.views.take(indices)))

    def encode(self, encoder: nn.Module) -> NDArray[np.float32]:
        """Return unit features of all rows."""
        own = self.inputs[self.world.mine(self.owners)]
        return self.world.join_rows(encode_rows(encoder, own) if len(own) else own, self.owners)


def adapter_rate(width: int) -> float:
    """Return how fast an adapter learns: the narrower the rows, the further one step moves them."""
    return min(1.0, width / _FULL_RATE_WIDTH)


def usual_distance(rows: NDArray[np.float32]) -> float:
    """Return the median distance between a row and a near neighbour: what a small change is."""
    step = max(1, len(rows) // _SAMPLED_ROWS)
    sample = rows[::step]
    if len(sample) < 2:
        return 1.0
    # In every n-th row, the n-th part of a row's neighbours is left.
    rank = min(max(1, round(_USUAL_NEIGHBOUR / step)), len(sample) - 1)
    nearest = find_neighbours(sample, rank).similarities[:, -1]
    return float(np.sqrt(np.maximum(2.0 - 2.0 * np.median(nearest), 1e-6)))
