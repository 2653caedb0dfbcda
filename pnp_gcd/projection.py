"""Lay rows out on a plane, rows that are alike beside each other.

t-SNE of some rows, the landmarks; every other row goes where its nearest landmarks are. Knows features
only: no labels, no estimator, no drawing.
"""

from __future__ import annotations

import numbers
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from pnp_gcd.geometry import reduce_rows, unit_rows
from pnp_gcd.neighbours import find_nearest

__all__ = ["project_rows"]

# Below this many different landmarks t-SNE has no neighbourhoods to keep; principal directions show more.
_FEWEST_FOR_TSNE = 8
_PERPLEXITY = 30.0
_N_STEPS = 750
# Landmarks that say where a row belongs.
_N_NEAREST = 8
# Landmarks of a row that lie within about this many distances between landmarks are one part of the map.
_REACH = 10.0
# How far a row is moved off the mean of its landmarks at most: so many distances between landmarks, and
# such a part of the map's width, which matters where landmarks are few.
_SPREAD = 1.5
_WIDEST_SPREAD = 0.02
_BLOCK_ROWS = 8192


class _Landmarks(NamedTuple):
    """Different rows, their unit vectors (m, d) and their places (m, 2) on the plane."""

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    places: NDArray[np.float64]


def project_rows(
    features: ArrayLike,
    *,
    random_state: int | np.random.RandomState | None = 0,
    n_landmarks: int = 3000,
) -> NDArray[np.float32]:
    """Return a place on the plane for each row, rows of similar direction beside each other.

    Parameters
    ----------
    features : array-like of shape (n_rows, n_features)
        Compared by cosine, as ``PNPDiscoverer.transform`` gives them.
    random_state : int, RandomState or None, default=0
        Draws the landmarks; an int makes the map repeatable on one machine, however many cores it has.
    n_landmarks : int, default=3000
        Rows laid out by t-SNE, drawn evenly at random; all rows if there are no more. The time grows with
        them. Every other row is placed at the mean of its nearest landmarks, the more similar ones
        counting more, and a little beside it, so that equal rows do not hide each other.

    Returns
    -------
    ndarray of shape (n_rows, 2), float32
        Centred, the longer side from −1 to 1. NaN for rows that are not finite: images that were skipped.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.projection import project_rows
    >>> features = np.repeat(np.eye(3), 20, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(60, 3))
    >>> places = project_rows(features)
    >>> places.shape, float(abs(places).max())
    ((60, 2), 1.0)
    """
    rows = _check_rows(features, n_landmarks)
    places = np.full((len(rows), 2), np.nan, dtype=np.float32)
    is_there = _tell_finite(rows)
    if not is_there.any():
        return places
    if random_state is None:  # fresh entropy: check_random_state would take the global state
        random_state = int(np.random.SeedSequence().generate_state(1)[0])
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    landmarks = _lay_out_landmarks(rows, np.flatnonzero(is_there), int(n_landmarks), rng)
    laid = _place_beside(rows, landmarks, rng)
    laid[landmarks.rows] = landmarks.places
    places[is_there] = _fit_square(laid[is_there])
    return places


def _check_rows(features: ArrayLike, n_landmarks: int) -> NDArray[np.floating]:
    rows = np.asarray(features)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(
            f"features has shape {rows.shape} but must have two axes: rows, and at least one feature. "
            "Pass what transform returns."
        )
    if rows.dtype.kind not in "iufb":
        raise TypeError(
            f"features has dtype {rows.dtype}, but must hold numbers. Pass what transform returns."
        )
    if isinstance(n_landmarks, bool) or not isinstance(n_landmarks, numbers.Integral) or n_landmarks < 1:
        raise ValueError(f"n_landmarks={n_landmarks!r} must be an integer of 1 or more.")
    return rows


def _tell_finite(rows: NDArray[np.floating]) -> NDArray[np.bool_]:
    blocks = [
        np.isfinite(rows[start : start + _BLOCK_ROWS]).all(axis=1)
        for start in range(0, len(rows), _BLOCK_ROWS)
    ]
    return np.concatenate([np.empty(0, dtype=np.bool_), *blocks])


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return unit_rows(rows.astype(np.result_type(rows, np.float32), copy=False))


def _lay_out_landmarks(
    rows: NDArray[np.floating], finite: NDArray[np.int64], n_landmarks: int, rng: np.random.Generator
) -> _Landmarks:
    """Draw landmarks, drop copies of one another, and lay the rest out."""
    if len(finite) > n_landmarks:
        finite = np.sort(rng.choice(finite, n_landmarks, replace=False))
    vectors = _unit(rows[finite])
    _, first = np.unique(vectors, axis=0, return_index=True)
    first = np.sort(first)
    vectors = vectors[first]
    start = _principal_plane(vectors)
    seed = int(rng.integers(2**31 - 1))
    places = start if len(vectors) < _FEWEST_FOR_TSNE else _run_tsne(vectors, start, seed)
    return _Landmarks(finite[first], vectors, places.astype(np.float64))


def _principal_plane(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the first two principal coordinates (n, 2); zeros where there is none."""
    plane = np.zeros((len(vectors), 2))
    if len(vectors) > 1:
        coordinates = reduce_rows(vectors, n_components=2).coordinates
        plane[:, : coordinates.shape[1]] = coordinates
    return plane


def _run_tsne(vectors: NDArray[np.float32], start: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    """Return the places of t-SNE, which starts from the principal plane, so that far groups stay far."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    # Points that start on one place or one line would stay there.
    jitter = 1e-2 * np.random.default_rng(seed).normal(size=start.shape)
    start = 1e-4 * (start / (start[:, 0].std() or 1.0) + jitter)
    tsne = TSNE(
        perplexity=min(_PERPLEXITY, (len(vectors) - 1) / 3),
        max_iter=_N_STEPS,
        init=start.astype(np.float32),
        random_state=seed,
    )
    with threadpool_limits(limits=1):  # sums over threads are added in any order, and t-SNE magnifies that
        places: NDArray[np.float32] = tsne.fit_transform(vectors)
    return places


def _place_beside(
    rows: NDArray[np.floating], landmarks: _Landmarks, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a place for every row by its nearest landmarks; what comes out for rows not finite is void."""
    gap = _usual_gap(landmarks.places)
    n_nearest = min(_N_NEAREST, len(landmarks.rows))
    places = np.empty((len(rows), 2))
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = _unit(np.nan_to_num(rows[start : start + _BLOCK_ROWS]))
        near, similarities, _ = find_nearest(block, landmarks.vectors, n_nearest)
        places[start : start + len(block)] = _weighted_mean(
            landmarks.places[near], similarities, _REACH * gap
        )
    angle, radius = rng.uniform(0, 2 * np.pi, len(rows)), np.sqrt(rng.uniform(0, 1, len(rows)))
    width = float(np.ptp(landmarks.places, axis=0).max())
    spread = min(_SPREAD * gap, _WIDEST_SPREAD * width or 1.0) * radius
    return places + spread[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def _weighted_mean(
    places: NDArray[np.float64], similarities: NDArray[np.float32], reach: float
) -> NDArray[np.float64]:
    """Return the mean (n, 2) of places (n, k, 2), the most similar counting most.

    Weights fall with the squared distance, in units of that to the nearest: a row that equals a landmark
    is at its place. Where a row's landmarks lie in several parts of the map, only one part counts, that
    of most weight: between them is nothing that the row is like.
    """
    distances = np.maximum(1.0 - similarities.astype(np.float64), 1e-7)
    weights = (distances[:, :1] / distances) ** 2
    apart = np.square(places[:, :, None] - places[:, None]).sum(axis=3)
    together = np.exp(-apart / (2 * reach**2))
    best = (together * weights[:, None]).sum(axis=2).argmax(axis=1)
    weights *= together[np.arange(len(best)), best]
    out: NDArray[np.float64] = (weights[:, :, None] * places).sum(axis=1) / weights.sum(axis=1, keepdims=True)
    return out


def _usual_gap(places: NDArray[np.float64]) -> float:
    """Return the median distance from a place to the nearest other one; 1 where there is none."""
    from scipy.spatial import KDTree  # type: ignore[import-untyped, unused-ignore]

    if len(places) < 2:
        return 1.0
    return float(np.median(KDTree(places).query(places, k=2)[0][:, 1])) or 1.0


def _fit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move and scale places into [−1, 1], both sides alike."""
    low, high = places.min(axis=0), places.max(axis=0)
    half = float((high - low).max()) / 2
    out: NDArray[np.float64] = (places - (low + high) / 2) / (half or 1.0)
    return out
