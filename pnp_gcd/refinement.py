"""Let rows change class: what a row's neighbours say, and what its distance to the class means says.

Communities follow the shape of a class but err at its rim; class means average errors away but
know only round classes. Each is weak where the other is strong, so their evidence is added up,
and the classes settle in a few rounds. Knows features, codes and classes: no torch, no names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pnp_gcd.clustering import mean_directions
from pnp_gcd.geometry import class_residuals, shrunk_covariance, shrunk_spread, unit_rows
from pnp_gcd.neighbours import Neighbours

__all__ = ["Discriminant", "fit_discriminant", "refine_rows"]

# Neighbours that vote, and how fast a vote fades with distance.
_VOTERS = 15
_VOTE_TEMPERATURE = 0.1
# A class whose rows are all labelled may still have this part of them without.
_LEAST_UNLABELLED = 0.1
# A class that no neighbour names keeps this part of the votes.
_NO_VOTE = 1e-3
# Rows times classes whose evidence is held at once: 8 Mi are 64 MiB in double precision.
_BLOCK_EVIDENCE = 1 << 23


class Discriminant(NamedTuple):
    """Class means in the space where all classes are about round.

    Attributes
    ----------
    axes : ndarray of shape (d, d), float32
        Divides each direction by the spread inside the classes.
    directions : ndarray of shape (K, d), float32
        Unit mean of each class there.
    """

    axes: NDArray[np.float32]
    directions: NDArray[np.float32]

    def cosines(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the cosine (n, K) of each row with each class mean, in double precision."""
        mapped = features.astype(np.float64) @ self.axes.astype(np.float64)
        out: NDArray[np.float64] = unit_rows(mapped).astype(np.float64) @ self.directions.T.astype(np.float64)
        return out


def fit_discriminant(features: NDArray[np.float32], rows: NDArray[np.int64], n_classes: int) -> Discriminant:
    """Learn the spread inside the classes and their means.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    rows : ndarray of shape (n,)
        Class of each row, −1 for none.
    n_classes : int
    """
    placed = rows >= 0
    axes = _make_round(class_residuals(features[placed], rows[placed]))
    return Discriminant(axes, mean_directions(unit_rows(features[placed] @ axes), rows[placed], n_classes))


def _make_round(residuals: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return axes (d, d) on which ``residuals`` spread alike in every direction."""
    covariance = shrunk_covariance(residuals).astype(np.float64)
    try:
        # As good as eigenvectors, up to a turn, and far cheaper.
        lower = linalg.cholesky(covariance, lower=True, check_finite=False)
        if lower.diagonal().min() ** 2 < 1e-6 * lower.diagonal().max() ** 2:
            raise linalg.LinAlgError  # so flat that some spread is a rounding error
        inverse = linalg.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
        return np.ascontiguousarray(inverse.T, dtype=np.float32)
    except linalg.LinAlgError:
        spread, turn = shrunk_spread(residuals)
        return (turn / np.sqrt(spread)).astype(np.float32)


def refine_rows(
    features: NDArray[np.float32],
    neighbours: Neighbours,
    codes: NDArray[np.int64],
    rows: NDArray[np.int64],
    n_classes: int,
    *,
    temperature: float,
    known_sizes: NDArray[np.float64] | None = None,
    n_rounds: int = 2,
) -> NDArray[np.int64]:
    """Return the class of each row by its neighbours' classes and the class means, after some rounds.

    Parameters
    ----------
    features : ndarray of shape (n, d)
    neighbours : Neighbours
        Of all n rows.
    codes : ndarray of shape (n,)
        Known-class codes, kept as they are; −1 for unlabelled rows.
    rows : ndarray of shape (n,)
        Class of each row to begin with, −1 for none.
    n_classes : int
    temperature : float
        Of the softmax over class means.
    known_sizes : ndarray of shape (n_known,) or None
        Rows of each known class, labelled or not, if that is known. A row without a label is the less often
        of a class the more of its rows have one.
    n_rounds : int
        After two, classes hardly change.
    """
    labelled = codes >= 0
    rows = np.where(labelled, codes, rows)
    prior = np.zeros(n_classes)
    if known_sizes is not None:
        prior[: len(known_sizes)] = _log_unlabelled(codes, known_sizes)
    for _ in range(n_rounds):
        if not (rows >= 0).any():
            break
        axes, directions = fit_discriminant(features, rows, n_classes)
        is_empty = np.bincount(rows[rows >= 0], minlength=n_classes) == 0
        found = np.empty_like(rows)
        for part in _blocks(len(rows), n_classes):
            evidence = unit_rows(features[part] @ axes) @ directions.T / temperature
            evidence = evidence + _vote(neighbours, rows, n_classes, part) + prior
            evidence[:, is_empty] = -np.inf
            found[part] = evidence.argmax(axis=1)
        rows = np.where(labelled, codes, found)
    return rows


def _log_unlabelled(codes: NDArray[np.int64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the part of each known class's rows that has no label."""
    n_labelled = np.bincount(codes[codes >= 0], minlength=len(sizes))
    out: NDArray[np.float64] = np.log(np.maximum(1.0 - n_labelled / sizes, _LEAST_UNLABELLED))
    return out


def _blocks(n_rows: int, n_classes: int) -> list[slice]:
    """Return runs of rows whose evidence is held at once."""
    step = max(1, _BLOCK_EVIDENCE // n_classes)
    return [slice(start, start + step) for start in range(0, n_rows, step)]


def _vote(
    neighbours: Neighbours, rows: NDArray[np.int64], n_classes: int, part: slice = slice(None)
) -> NDArray[np.float64]:
    """Return the logarithm (m, n_classes) of the part of each row's neighbours in each class."""
    voters = neighbours.nearest(_VOTERS)
    near = Neighbours(voters.indices[part], voters.similarities[part])
    classes = rows[near.indices]
    weights = np.exp((near.similarities - near.similarities[:, :1]).astype(np.float64) / _VOTE_TEMPERATURE)
    n_rows = len(classes)
    cells = np.arange(n_rows)[:, None] * n_classes + classes
    counted = classes >= 0
    sums = np.bincount(cells[counted], weights=weights[counted], minlength=n_rows * n_classes)
    votes = sums.reshape(n_rows, n_classes) + _NO_VOTE
    out: NDArray[np.float64] = np.log(votes / votes.sum(axis=1, keepdims=True))
    return out
