"""Part communities that a known class shares with a new one.

Classes that are much alike fall into one community. Where a known class is in it, that shows: too few of its
rows have a label. The rows most like the labelled ones stay, the others become a community of their own.
Knows features, codes and communities: no class names, no torch, no truth about unlabelled rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pnp_gcd.clustering import Clustering, mean_directions, number_by_size
from pnp_gcd.geometry import unit_rows
from pnp_gcd.matching import count_overlap
from pnp_gcd.merging import ClassSizes

__all__ = ["part_communities"]

# A community is shared if a known class alone would show so few labels less often than this.
_SURELY_SHARED = 0.01
# Labelled rows of the known class, and part of all labelled rows, without which nobody speaks for it.
_FEWEST_LABELS = 2
_CLEAR_PART = 0.6
# Rows beyond those of the known class that are worth a community.
_FEWEST_ROWS = 4
_MAX_ROUNDS = 10


def part_communities(
    features: NDArray[np.float32], clustering: Clustering, codes: NDArray[np.int64], usual: ClassSizes
) -> Clustering:
    """Return the communities, with those in two that hold more rows than their known class has.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    clustering : Clustering
        Of these rows.
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    usual : ClassSizes
        How many rows each known class has.
    """
    labels, n_communities = clustering.labels.copy(), clustering.n_communities
    n_beyond = _count_beyond(clustering, codes, usual)
    for community in np.flatnonzero(n_beyond):
        rows = np.flatnonzero(clustering.labels == community)
        leaving = _choose_leaving(features[rows], codes[rows] >= 0, int(n_beyond[community]))
        if leaving.sum() >= _FEWEST_ROWS:
            labels[rows[leaving]] = n_communities
            n_communities += 1
    if n_communities == clustering.n_communities:
        return clustering
    labels = number_by_size(labels)
    return Clustering(labels, mean_directions(features, labels), clustering.is_isolated)


def _count_beyond(clustering: Clustering, codes: NDArray[np.int64], usual: ClassSizes) -> NDArray[np.int64]:
    """Return how many rows (K,) are too many for the known class in each community, 0 if they may be its."""
    n_known = len(usual.known)
    labelled = codes >= 0
    n_labels = count_overlap(codes[labelled], clustering.labels[labelled], n_known, clustering.n_communities)
    share = np.minimum(np.bincount(codes[labelled], minlength=n_known) / np.maximum(usual.known, 1.0), 1.0)
    owner = n_labels.argmax(axis=1)
    shown, all_labels = n_labels.max(axis=1), n_labels.sum(axis=1)
    sizes = np.bincount(clustering.labels, minlength=clustering.n_communities) - (all_labels - shown)
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
