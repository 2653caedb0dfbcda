"""Choose the rows that a fit learns from, where there are more than it needs.

Knows codes only: no features, no torch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_rows"]

# Labelled rows that a known class keeps at least, if it has them.
_LEAST_LABELLED = 20


def draw_rows(codes: NDArray[np.int64], n_rows: int, seed: int) -> NDArray[np.int64]:
    """Return about ``n_rows`` rows in rising order: the same part of each known class and of the other rows.

    Of a known class with few labels more are kept, 20 if it has them: they are what new rows are compared
    with. The part of unlabelled rows stays what it is, so that classes keep their relative sizes.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    n_rows : int
        Rows wanted; a few more where known classes have few labels.
    seed : int
    """
    if n_rows >= len(codes):
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    sizes = np.bincount(codes + 1)
    wanted = np.ceil(sizes * (n_rows / len(codes))).astype(np.int64)
    wanted[1:] = np.maximum(wanted[1:], np.minimum(sizes[1:], _LEAST_LABELLED))
    shuffled = rng.permutation(len(codes))
    by_code = shuffled[np.argsort(codes[shuffled], kind="stable")]
    place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(by_code[place < np.repeat(wanted, sizes)])
