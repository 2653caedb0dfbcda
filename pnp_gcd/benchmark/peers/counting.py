"""Max-ACC: the number of classes at which k-means agrees best with the labelled rows.

The estimate of S. Vaze, K. Han, A. Vedaldi, A. Zisserman, "Generalized Category Discovery", CVPR 2022.
Knows rows and codes: no class names, no truth about unlabelled rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar  # type: ignore[import-untyped, unused-ignore]

from pnp_gcd.benchmark.peers.base import label_accuracy

__all__ = ["choose_n_clusters", "default_limit", "estimate_n_clusters", "run_kmeans"]

# The paper bounds the number from below only; these keep the search within what k-means can do.
_MOST_CLUSTERS = 1000
_MOST_PER_KNOWN = 10
# Runs of k-means for each candidate: the accuracy of one run varies by a point or two.
_N_INIT = 3


def default_limit(n_rows: int, n_known: int) -> int:
    """Return the largest number of classes to consider: ten a known class, 1,000, half of the rows."""
    return max(n_known, min(_MOST_CLUSTERS, _MOST_PER_KNOWN * n_known, n_rows // 2))


def run_kmeans(
    rows: NDArray[np.float32], n_clusters: int, *, n_init: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return clusters (n,) and centroids (k, d) of scikit-learn's k-means, the same at every run."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

    # Several threads add their sums in the order in which they end, which rounds differently.
    with threadpool_limits(limits=1, user_api="openmp"):
        model = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(rows)
    return model.labels_.astype(np.int64), model.cluster_centers_.astype(np.float32)


def choose_n_clusters(
    n_clusters: int | None,
    rows: NDArray[np.float32],
    codes: NDArray[np.int64],
    *,
    max_clusters: int | None,
    seed: int,
) -> int:
    """Return the number that was given, or the estimate."""
    return n_clusters or estimate_n_clusters(rows, codes, max_clusters=max_clusters, seed=seed)


def estimate_n_clusters(
    rows: NDArray[np.float32], codes: NDArray[np.int64], *, max_clusters: int | None, seed: int
) -> int:
    """Search K between the known classes and a limit for the best accuracy on labelled rows.

    K-means sees all rows and no label; then its clusters are matched with the known classes on the
    labelled rows. Brent's bounded search takes about a dozen values of K.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    codes : ndarray of shape (n,)
        Known-class codes, −1 for unlabelled rows.
    max_clusters : int or None
        None takes :func:`default_limit`.
    seed : int
    """
    n_known = int(codes.max()) + 1
    limit = default_limit(len(rows), n_known) if max_clusters is None else max_clusters
    accuracies: dict[int, float] = {}

    def loss(candidate: float) -> float:
        n_clusters = round(candidate)
        if n_clusters not in accuracies:
            clusters, _ = run_kmeans(rows, n_clusters, n_init=_N_INIT, seed=seed)
            accuracies[n_clusters] = label_accuracy(clusters, codes, n_clusters)
        return -accuracies[n_clusters]

    if n_known < limit:
        minimize_scalar(loss, bounds=(n_known, limit), method="bounded", options={"xatol": 0.5})
    else:
        loss(limit)
    return max(sorted(accuracies), key=accuracies.__getitem__)
