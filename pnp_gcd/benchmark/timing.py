"""Time a clustering of the unlabelled rows beside one of all rows.

Knows feature vectors: no labels, no method.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.clustering import cluster_features
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.geometry import unit_rows

__all__ = ["N_REPEATS", "THRESHOLD", "ClusteringTimes", "time_pool_and_all"]

N_REPEATS = 3
THRESHOLD = 0.6  # the paper's


class ClusteringTimes(NamedTuple):
    """Numbers of rows, and median seconds of their clustering."""

    n_unlabelled: int
    seconds_unlabelled: float
    n_all: int
    seconds_all: float


def time_pool_and_all(data: DiscoveryData, *, n_neighbors: int) -> ClusteringTimes:
    """Search neighbours and cluster them, for the pool and for all rows, in turn.

    Parameters
    ----------
    data : DiscoveryData
        Of feature vectors.
    n_neighbors : int

    Returns
    -------
    ClusteringTimes

    Examples
    --------
    >>> from pnp_gcd.benchmark.timing import time_pool_and_all
    >>> from pnp_gcd.datasets import load_digits_split
    >>> times = time_pool_and_all(load_digits_split(), n_neighbors=10)
    >>> times.n_unlabelled < times.n_all
    True
    """
    pool = unit_rows(data.X_unlabelled)
    both = unit_rows(np.concatenate([data.X_labelled, data.X_unlabelled]))
    cluster_features(pool[:100], n_neighbors=min(n_neighbors, 99, len(pool) - 1))  # imports are not timed
    turns = [(_time(pool, n_neighbors), _time(both, n_neighbors)) for _ in range(N_REPEATS)]
    of_pool, of_both = np.median(turns, axis=0).tolist()
    return ClusteringTimes(len(pool), of_pool, len(both), of_both)


def _time(rows: NDArray[np.float32], n_neighbors: int) -> float:
    began = time.perf_counter()
    cluster_features(rows, n_neighbors=n_neighbors, similarity_threshold=THRESHOLD)
    return time.perf_counter() - began
