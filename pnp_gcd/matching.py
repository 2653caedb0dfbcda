"""Pair two groupings one to one: the Hungarian method, once.

Knows integer codes and unit rows only: no class names, no torch, no epochs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

__all__ = ["count_overlap", "match_by_overlap", "match_by_similarity"]


def count_overlap(
    true_codes: ArrayLike, found_codes: ArrayLike, n_true: int, n_found: int
) -> NDArray[np.int64]:
    """Count the rows that each found cluster shares with each true class.

    Parameters
    ----------
    true_codes : array-like of int, shape (n_rows,)
        Class of each row, below ``n_true``; a row with a code below 0 is ignored.
    found_codes : array-like of int, shape (n_rows,)
        Cluster of each row, below ``n_found``; a row with a code below 0 is ignored.
    n_true, n_found : int
        Number of classes and of clusters, those without rows included.

    Returns
    -------
    ndarray of int64, shape (n_found, n_true)
        The contingency table; clusters are its rows.

    Examples
    --------
    >>> count_overlap([0, 0, 1, -1], [1, 1, 0, 0], n_true=2, n_found=2)
    array([[0, 1],
           [2, 0]])

    """
    true = _check_codes(true_codes, n_true, "true_codes", "n_true")
    found = _check_codes(found_codes, n_found, "found_codes", "n_found")
    if len(true) != len(found):
        raise ValueError(
            f"found_codes has {len(found)} rows and true_codes has {len(true)}. Pass one of each per row."
        )
    is_counted = (true >= 0) & (found >= 0)
    cells = found[is_counted] * n_true + true[is_counted]
    counts = np.bincount(cells, minlength=n_found * n_true)
    return counts.reshape(n_found, n_true).astype(np.int64, copy=False)


def match_by_overlap(
    true_codes: ArrayLike, found_codes: ArrayLike, n_true: int, n_found: int
) -> NDArray[np.int64]:
    """Pair found clusters with true classes so that as many rows as possible agree.

    Parameters
    ----------
    true_codes, found_codes : array-like of int, shape (n_rows,)
        Class and cluster of each row; a row with either code below 0 is ignored.
    n_true, n_found : int
        Number of classes and of clusters.

    Returns
    -------
    ndarray of int64, shape (n_found,)
        The class of each cluster, or -1 where no class is left or the pair would share no row.

    Notes
    -----
    Where several pairings agree on equally many rows, the codes' order decides between them, never the
    rows' order.

    Examples
    --------
    >>> match_by_overlap([0, 0, 1, 1, 1], [2, 2, 0, 0, 1], n_true=2, n_found=3)
    array([ 1, -1,  0])

    """
    overlap = count_overlap(true_codes, found_codes, n_true, n_found)
    return _pair(overlap, is_allowed=overlap > 0)


def match_by_similarity(old: ArrayLike, new: ArrayLike, *, min_similarity: float = -1.0) -> NDArray[np.int64]:
    """Pair new unit rows with old ones so that the total cosine of the pairs is largest.

    Parameters
    ----------
    old : array-like of float, shape (n_old, n_features)
        Unit-length rows; their length is not checked.
    new : array-like of float, shape (n_new, n_features)
        Unit-length rows.
    min_similarity : float, default=-1.0
        The distance gate, from -1 to 1: a pair with a smaller cosine is never made. The gate stands before
        the matching, so that a pair it refuses cannot take an old row away from a pair it accepts.

    Returns
    -------
    ndarray of int64, shape (n_new,)
        The old row of each new row, or -1 where none is left or near enough.

    Notes
    -----
    Each accepted pair counts ``1 + cosine``, which is never negative. While every pair is accepted, this is
    the pairing with the largest total cosine; behind a gate, two fair pairs outweigh one good pair.

    Examples
    --------
    >>> old = [[1.0, 0.0], [0.0, 1.0]]
    >>> new = [[0.0, 1.0], [0.6, 0.8], [0.8, 0.6]]
    >>> match_by_similarity(old, new)
    array([ 1, -1,  0])
    >>> match_by_similarity(old, new, min_similarity=0.9)
    array([ 1, -1, -1])

    """
    if not -1.0 <= min_similarity <= 1.0:
        raise ValueError(f"min_similarity={min_similarity!r} must be a cosine. Pass a number from -1 to 1.")
    old_rows = np.asarray(old, dtype=np.float64)
    new_rows = np.asarray(new, dtype=np.float64)
    if len(old_rows) == 0 or len(new_rows) == 0:
        return np.full(len(new_rows), -1, dtype=np.int64)
    if old_rows.ndim != 2 or new_rows.ndim != 2 or old_rows.shape[1] != new_rows.shape[1]:
        raise ValueError(
            f"old has shape {old_rows.shape} and new has shape {new_rows.shape}. "
            "Pass two 2-d arrays with the same number of columns."
        )
    # Rounding may carry the cosine of opposite rows past -1, where the open gate would refuse it.
    cosine = np.clip(new_rows @ old_rows.T, -1.0, 1.0)
    if not np.isfinite(cosine).all():
        raise ValueError("old or new holds NaN or infinity. Pass finite unit-length rows.")
    is_near = cosine >= min_similarity
    return _pair(np.where(is_near, 1.0 + cosine, 0.0), is_allowed=is_near)


def _pair(gain: NDArray[np.int64] | NDArray[np.float64], is_allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give each row of ``gain`` its column in the best pairing, -1 without one or with a refused one."""
    rows, columns = linear_sum_assignment(gain, maximize=True)
    partner = np.full(len(gain), -1, dtype=np.int64)
    partner[rows] = np.where(is_allowed[rows, columns], columns, -1)
    return partner


def _check_codes(codes: ArrayLike, n_codes: int, name: str, n_name: str) -> NDArray[np.int64]:
    """Return ``codes`` as a 1-d int64 array whose values all lie below ``n_codes``."""
    array = np.asarray(codes)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}. Pass a 1-d array of whole numbers."
        )
    array = array.astype(np.int64, copy=False)
    if array.size and array.max() >= n_codes:
        raise ValueError(f"{name} reaches {array.max()} but {n_name}={n_codes}. Pass codes below {n_name}.")
    return array
