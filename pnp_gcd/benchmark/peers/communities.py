"""The clustering of DCCL: Infomap on the neighbour graph of all rows.

Knows rows and codes: no networks, no class names.
"""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._compat import Interval, StrOptions
from pnp_gcd.benchmark.peers.base import AtLeastOne, Clusters, Peer, label_accuracy, match_clusters
from pnp_gcd.clustering import Clustering, GraphSettings, cluster_neighbours
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.neighbours import Neighbours, find_neighbours

__all__ = ["InfomapPeer"]

_NEIGHBOURS = (5, 10, 20, 40, 80, 160)
_THRESHOLDS = (0.6, 0.0)


class InfomapPeer(Peer):
    """Infomap on the neighbour graph of all rows: the clustering of DCCL [1]_, without its learning.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Edges kept per row, never counting the row itself. "auto" takes, of 5, 10, 20, 40, 80 and 160,
        the number whose communities agree best with the labelled rows (Hungarian).
    similarity_threshold : float or "auto", default="auto"
        Edges need a cosine above this. "auto" compares 0.6, the paper's, and 0 in the same way.
    missing_label : object, default="auto"
        What marks an unlabelled row in y.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    n_neighbors_, similarity_threshold_
        The values used.
    search_ : list of dict
        A row per setting tried: ``n_neighbors``, ``similarity_threshold``, ``n_clusters``, ``accuracy``
        on the labelled rows.

    References
    ----------
    .. [1] N. Pu, Z. Zhong, N. Sebe, "Dynamic Conceptional Contrastive Learning for Generalized Category
       Discovery", CVPR 2023.

    Examples
    --------
    >>> rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    >>> peer = InfomapPeer(n_neighbors=9, random_state=0).fit(rows[:5], ["east"] * 5, rows[5:])
    >>> peer.n_clusters_, peer.given
    (2, 'nothing')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Peer._parameter_constraints,
        "n_neighbors": [AtLeastOne, StrOptions({"auto"})],
        "similarity_threshold": [Interval(numbers.Real, 0, 1, closed="both"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        *,
        similarity_threshold: float | Literal["auto"] = "auto",
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.similarity_threshold = similarity_threshold
        self.missing_label = missing_label
        self.random_state = random_state

    def _cluster(self, rows: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Clusters:
        neighbours = find_neighbours(rows, max(self._numbers(len(rows))))
        self.search_: list[dict[str, Any]] = []
        best: Clustering | None = None
        for settings in self._settings(neighbours):
            try:
                found = cluster_neighbours(rows, neighbours, settings, seed=seed)
            except EmptyGraphError:
                if self.similarity_threshold != "auto":
                    raise
                continue
            accuracy = label_accuracy(found.labels, codes, found.n_communities)
            if best is None or accuracy > max(row["accuracy"] for row in self.search_):
                best = found
                self.n_neighbors_ = settings.n_neighbors
                self.similarity_threshold_ = settings.similarity_threshold
            self.search_.append(
                {
                    "n_neighbors": settings.n_neighbors,
                    "similarity_threshold": settings.similarity_threshold,
                    "n_clusters": found.n_communities,
                    "accuracy": accuracy,
                }
            )
        if best is None:
            raise EmptyGraphError(
                f"similarity_threshold={self.similarity_threshold!r} leaves no edge between rows. "
                'Lower it, or pass "auto".'
            )
        homes = match_clusters(best.labels, codes, best.n_communities)
        return Clusters(best.labels, best.centroids, homes)

    def _numbers(self, n_rows: int) -> list[int]:
        """Return the numbers of neighbours to try."""
        if self.n_neighbors != "auto":
            return [self.n_neighbors]
        return [number for number in _NEIGHBOURS if number < n_rows] or [n_rows - 1]

    def _settings(self, neighbours: Neighbours) -> list[GraphSettings]:
        """Return the graphs to try; a threshold that cuts no edge is not tried beside none."""
        settings = []
        for number in self._numbers(len(neighbours.indices)):
            lowest = float(neighbours.nearest(number).similarities.min())
            thresholds: tuple[float, ...] = _THRESHOLDS if lowest <= _THRESHOLDS[0] else (0.0,)
            if self.similarity_threshold != "auto":
                thresholds = (self.similarity_threshold,)
            settings += [GraphSettings(number, cut, edge_weights="cosine") for cut in thresholds]
        return settings
