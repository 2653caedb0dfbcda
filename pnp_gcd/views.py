"""Two views of each row, and batches in which labelled rows are not drowned.

Knows rows and codes: no network, no losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["BalancedBatches", "FeatureViews", "TwoViews", "draw_pairs"]


class TwoViews(NamedTuple):
    """Two views of the same rows, each of shape (b, d) and unit length."""

    first: Tensor
    second: Tensor


def draw_pairs(n_views: int, n_rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return two different views of 0 … n_views − 1 for each row, every pair as likely as any other."""
    first = torch.randint(n_views, (n_rows,), generator=generator)
    step = torch.randint(1, n_views, (n_rows,), generator=generator)
    return first, (first + step) % n_views


class FeatureViews:
    """Make two views of rows in feature space, or pick two of their precomputed views.

    Parameters
    ----------
    rows : Tensor of shape (n, d) or (n, v, d)
        Unit rows; with a middle axis, v ≥ 2 precomputed views of each row.
    noise : float
        Length of the Gaussian noise added, relative to the row's own length of 1.
    dropout : float
        Part of the columns set to 0.
    generator : torch.Generator
    """

    def __init__(self, rows: Tensor, *, noise: float, dropout: float, generator: torch.Generator) -> None:
        self.rows, self.noise, self.dropout, self.generator = rows, noise, dropout, generator

    def take(self, indices: Tensor) -> TwoViews:
        """Return two views of the rows at ``indices``."""
        if self.rows.ndim == 3:
            return self._pick(indices)
        rows = self.rows[indices]
        return TwoViews(self._disturb(rows), self._disturb(rows))

    def _pick(self, indices: Tensor) -> TwoViews:
        """Return two different precomputed views, drawn anew for each row."""
        first, second = draw_pairs(self.rows.shape[1], len(indices), self.generator)
        return TwoViews(self.rows[indices, first], self.rows[indices, second])

    def _disturb(self, rows: Tensor) -> Tensor:
        noise = torch.randn(rows.shape, generator=self.generator)
        view = rows.add(noise, alpha=self.noise / math.sqrt(rows.shape[1]))
        if self.dropout > 0:
            view = view * (torch.rand(rows.shape, generator=self.generator) >= self.dropout)
        return functional.normalize(view, dim=1)


class BalancedBatches:
    """Batches of row indices, half labelled and half unlabelled where both exist.

    An epoch has as many rows as there are; each side is gone through in a random order, over
    again when it is used up.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        −1 marks unlabelled rows.
    batch_size : int
    rng : numpy.random.Generator
    """

    def __init__(self, codes: NDArray[np.int64], batch_size: int, rng: np.random.Generator) -> None:
        self.sides = [side for side in (np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)) if len(side)]
        self.batch_size = max(2, min(batch_size, len(codes)))
        self.n_batches = max(1, math.ceil(len(codes) / self.batch_size))
        self.rng = rng

    def __len__(self) -> int:
        return self.n_batches

    def __iter__(self) -> Iterator[Tensor]:
        """Yield index tensors of about ``batch_size`` rows."""
        share = self.batch_size // len(self.sides)
        streams = [self._stream(side, share * self.n_batches) for side in self.sides]
        for batch in range(self.n_batches):
            part = slice(batch * share, (batch + 1) * share)
            yield torch.from_numpy(np.concatenate([stream[part] for stream in streams]))

    def _stream(self, side: NDArray[np.int64], length: int) -> NDArray[np.int64]:
        rounds = math.ceil(length / len(side))
        return np.concatenate([self.rng.permutation(side) for _ in range(rounds)])[:length]
