"""Part communities that a known class shares with a new one.

Classes that are much alike fall into one community. Where a known class is in it, that shows: too few of its
rows have a label. The rows most like the labelled ones stay, the others become a community of their own.
Knows features, codes and communities: no class names, no torch, no truth about unlabelled rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pnp_gcd.clustering import mean_directions, number_by_size
from pnp_gcd.geometry import unit_rows
from pnp_gcd.matching import count_overlap
from pnp_gcd.merging import ClassSizes

__all__ = ["part_communities"]

# A community is shared if a known class alone would show so few labels less often than this.
_SURELY_SHARED = 0.01
# Labelled rows of the known class, and part of all labelled rows, without which nobody speaks for it.
_FEWEST_LABELS = 2
_CLEAR_PART = 0.6
# By so many standard errors the labelled share may be lower than estimated; it is never higher than this.
_N_ERRORS = 2.0
_MOST_LABELLED = 0.9
# Rows beyond those of the known class that are worth a community.
_FEWEST_ROWS = 4
_MAX_ROUNDS = 10


def part_communities(
    features: NDArray[np.float32], homes: NDArray[np.int64], codes: NDArray[np.int64], usual: ClassSizes
) -> NDArray[np.int64]:
    """Return the community of each row, with those in two that hold more rows than their known class has.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    homes : ndarray of shape (n,)
        Community of each row, 0 … K−1.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    usual : ClassSizes
        How many rows each known class has.
    """
    parted = homes.copy()
    n_communities = int(homes.max(initial=-1)) + 1
    n_beyond = _count_beyond(homes, n_communities, codes, usual)
    for community in np.flatnonzero(n_beyond):
        rows = np.flatnonzero(homes == community)
        leaving = _choose_leaving(features[rows], codes[rows] >= 0, int(n_beyond[community]))
        if leaving.sum() >= _FEWEST_ROWS:
            parted[rows[leaving]] = n_communities
            n_communities += 1
    return number_by_size(parted)


def _count_beyond(
    homes: NDArray[np.int64], n_communities: int, codes: NDArray[np.int64], usual: ClassSizes
) -> NDArray[np.int64]:
    """Return how many rows (K,) are too many for the known class in each community, 0 if they may be its."""
    n_known, labelled = len(usual.known), codes >= 0
    n_labels = count_overlap(codes[labelled], homes[labelled], n_known, n_communities)
    # It is an estimate, and that a class is labelled wholly nobody knows.
    share = np.bincount(codes[labelled], minlength=n_known) / np.maximum(usual.known, 1.0)
    share = np.minimum(share * np.exp(-_N_ERRORS * usual.shift), _MOST_LABELLED)
    owner, all_labels = n_labels.argmax(axis=1), n_labels.sum(axis=1)
    shown = n_labels.max(axis=1)
    sizes = np.bincount(homes, minlength=n_communities) - (all_labels - shown)
    beyond = sizes - shown / np.maximum(share[owner], 1e-9)
    is_clear = (shown >= _FEWEST_LABELS) & (shown >= _CLEAR_PART * all_labels)
    is_shared = binom.cdf(shown, sizes, share[owner]) < _SURELY_SHARED
    return np.where(is_clear & is_shared & (beyond >= _FEWEST_ROWS), np.round(beyond), 0).astype(np.int64)


def _choose_leaving(
    features: NDArray[np.float32], labelled: NDArray[np.bool_], n_beyond: int
) -> NDArray[np.bool_]:
    """Return which rows (m,) leave: two means, of which one keeps the labelled rows.

    The other begins with as many rows as are too many, those least like the labelled ones.
    """
    likeness = features @ unit_rows(features[labelled].mean(axis=0, keepdims=True))[0]
    leaving = np.zeros(len(features), dtype=bool)
    leaving[np.argsort(np.where(labelled, np.inf, likeness), kind="stable")[:n_beyond]] = True
    leaving &= ~labelled
    for _ in range(_MAX_ROUNDS):
        before = leaving
        own, other = mean_directions(features, leaving.astype(np.int64), 2)
        leaving = (features @ other > features @ own) & ~labelled
        if not leaving.any() or (leaving == before).all():
            break
    return leaving
