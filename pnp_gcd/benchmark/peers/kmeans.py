"""K-means and the semi-supervised k-means of GCD.

Knows rows and codes: no networks, no class names.
"""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._compat import Interval
from pnp_gcd.benchmark.peers.base import (
    COUNT,
    AtLeastOne,
    Clusters,
    Peer,
    match_clusters,
    nearest_centroid,
    place_known_first,
)
from pnp_gcd.benchmark.peers.counting import choose_n_clusters, run_kmeans
from pnp_gcd.clustering import mean_directions

__all__ = ["KMeansPeer", "SemiSupervisedKMeans"]


class KMeansPeer(Peer):
    """K-means on all rows; labels only name the clusters.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of classes, known ones included. None estimates it by Max-ACC, see :doc:`/peers`.
    max_clusters : int or None, default=None
        The largest estimate. None takes ten a known class, 1,000 and half of the rows at most.
    n_init : int, default=10
        Runs, of which the tightest counts.
    missing_label : object, default="auto"
        What marks an unlabelled row in y.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> peer = KMeansPeer(2, random_state=0).fit([[1.0, 0.0]], ["east"], [[1.0, 0.1], [0.0, 1.0]])
    >>> peer.unlabelled_labels_.tolist()
    ['east', 'novel_0']
    >>> peer.given
    'the number of classes'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Peer._parameter_constraints,
        **COUNT,
        "n_init": [AtLeastOne],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_clusters: int | None = None,
        n_init: int = 10,
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.missing_label = missing_label
        self.random_state = random_state

    def _cluster(self, rows: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Clusters:
        n_clusters = choose_n_clusters(
            self.n_clusters, rows, codes, max_clusters=self.max_clusters, seed=seed
        )
        clusters, centroids = run_kmeans(rows, n_clusters, n_init=self.n_init, seed=seed)
        return Clusters(clusters, centroids, match_clusters(clusters, codes, n_clusters))


class SemiSupervisedKMeans(Peer):
    """K-means in which labelled rows stay with their class: the clustering of GCD [1]_.

    Centroids are mean directions. Those of known classes start from their labelled rows, the others at
    unlabelled rows drawn by k-means++. Unlabelled rows then go to the nearest centroid, labelled rows to
    their own.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of classes, known ones included. None estimates it by Max-ACC, see :doc:`/peers`.
    max_clusters : int or None, default=None
        The largest estimate. None takes ten a known class, 1,000 and half of the rows at most.
    n_init : int, default=10
        Runs, of which the tightest counts.
    max_iter : int, default=200
        Rounds of a run, if its centroids do not come to rest before.
    tol : float, default=1e-4
        Centroids rest when they move by less than this, all together.
    missing_label : object, default="auto"
        What marks an unlabelled row in y.
    random_state : int, RandomState or None, default=None

    References
    ----------
    .. [1] S. Vaze, K. Han, A. Vedaldi, A. Zisserman, "Generalized Category Discovery", CVPR 2022.

    Examples
    --------
    >>> peer = SemiSupervisedKMeans(2, random_state=0)
    >>> peer.fit([[1.0, 0.0]], ["east"], [[1.0, 0.1], [0.0, 1.0]]).unlabelled_labels_.tolist()
    ['east', 'novel_0']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KMeansPeer._parameter_constraints,
        "max_iter": [AtLeastOne],
        "tol": [Interval(numbers.Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_clusters: int | None = None,
        n_init: int = 10,
        max_iter: int = 200,
        tol: float = 1e-4,
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.missing_label = missing_label
        self.random_state = random_state

    def _cluster(self, rows: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Clusters:
        n_clusters = choose_n_clusters(
            self.n_clusters, rows, codes, max_clusters=self.max_clusters, seed=seed
        )
        rng = np.random.default_rng(seed)
        runs = [self._run(rows, codes, n_clusters, rng) for _ in range(self.n_init)]
        best = min(runs, key=lambda run: run.inertia)
        homes = place_known_first(codes, n_clusters)
        return Clusters(best.clusters, best.centroids, homes)

    def _run(
        self, rows: NDArray[np.float32], codes: NDArray[np.int64], n_clusters: int, rng: np.random.Generator
    ) -> _Run:
        has_label, pool = codes >= 0, rows[codes < 0]
        clusters = codes.copy()
        known = mean_directions(rows[has_label], codes[has_label])
        centroids = _add_by_distance(pool, known, n_clusters, rng)
        for _ in range(self.max_iter):
            clusters[~has_label] = nearest_centroid(pool, centroids)
            moved = mean_directions(rows, clusters, n_clusters)
            is_empty = np.bincount(clusters, minlength=n_clusters) == 0
            moved[is_empty] = centroids[is_empty]
            shift = float(((moved - centroids) ** 2).sum())
            centroids = moved
            if shift <= self.tol:
                break
        clusters[~has_label] = nearest_centroid(pool, centroids)
        return _Run(clusters, centroids, float(((rows - centroids[clusters]) ** 2).sum()))


class _Run(NamedTuple):
    clusters: NDArray[np.int64]
    centroids: NDArray[np.float32]
    inertia: float


def _add_by_distance(
    rows: NDArray[np.float32], centroids: NDArray[np.float32], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Add unit rows to the unit centroids by greedy k-means++, as scikit-learn's k-means starts.

    A few rows are drawn by their squared distance from the nearest centroid; the one that brings all
    rows nearest to a centroid is taken.
    """
    chosen, n_drawn = list(centroids), 2 + int(np.log(n_clusters))
    gaps = 1.0 - (rows @ centroids.T).max(axis=1).astype(np.float64)  # half of the squared distance
    while len(chosen) < n_clusters:
        gaps = np.maximum(gaps, 0.0)
        total = gaps.sum()
        drawn = rows[rng.choice(len(rows), size=n_drawn, p=gaps / total if total > 0 else None)]
        gaps_with = np.minimum(gaps[:, None], 1.0 - rows @ drawn.T)
        best = int(gaps_with.sum(axis=0).argmin())
        chosen.append(drawn[best])
        gaps = gaps_with[:, best]
    return np.stack(chosen)
