"""Group unit-length rows into communities by Infomap on a thresholded neighbour graph.

The only module that knows infomap. Knows arrays only: no torch, no labels, no epochs.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from pnp_gcd.atomic_files import make_temporary_folder, sweep_temporary_folders
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import Neighbours, find_neighbours, share_neighbours

__all__ = [
    "Clustering",
    "EdgeWeights",
    "GraphSettings",
    "NeighbourGraph",
    "build_graph",
    "cluster_features",
    "cluster_neighbours",
    "mean_directions",
    "number_by_size",
]


EdgeWeights = Literal["shared", "cosine"]

# Numbers of rows that are added up at once, in double precision: 16 MiB.
_NUMBERS_AT_ONCE = 1 << 21
# Edges that Infomap is given at once, in double precision: 24 MiB.
_EDGES_AT_ONCE = 1 << 20
# Rows from which on their order matters to Infomap.
_MANY_ROWS = 4096
# How folders begin through which Infomap tells its communities.
_TEMPORARY = "pnp_gcd_graph-"


@dataclass(frozen=True)
class GraphSettings:
    """What decides a neighbour graph and its communities.

    The names are those of :class:`~pnp_gcd.PNPDiscoverer`, which explains them.
    """

    n_neighbors: int
    similarity_threshold: float = 0.0
    resolution: float = 1.0
    edge_weights: EdgeWeights = "shared"


class NeighbourGraph(NamedTuple):
    """Directed edges from rows to their similar neighbours, those of a row beside each other.

    Attributes
    ----------
    counts : ndarray of shape (n,), int64
        Edges of each row.
    targets : ndarray of shape (e,), int32
    weights : ndarray of shape (e,), float32
        All positive.
    """

    counts: NDArray[np.int64]
    targets: NDArray[np.int32]
    weights: NDArray[np.float32]

    @property
    def n_rows(self) -> int:
        """Number of rows, with edges or without."""
        return len(self.counts)

    @property
    def sources(self) -> NDArray[np.int32]:
        """Where each edge starts, of shape (e,)."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), self.counts)

    @property
    def has_edge(self) -> NDArray[np.bool_]:
        """Whether an edge starts or ends at a row, of shape (n,)."""
        out: NDArray[np.bool_] = self.counts > 0
        out[self.targets] = True
        return out


class Clustering(NamedTuple):
    """Communities of rows.

    Attributes
    ----------
    labels : ndarray of shape (n,), int64
        Community of each row, 0 … K−1, largest first.
    centroids : ndarray of shape (K, d), float32
        Unit-length mean row of each community.
    is_isolated : ndarray of shape (n,), bool
        Rows without an edge; they joined the nearest centroid.
    """

    labels: NDArray[np.int64]
    centroids: NDArray[np.float32]
    is_isolated: NDArray[np.bool_]

    @property
    def n_communities(self) -> int:
        """Number of communities."""
        return len(self.centroids)


def build_graph(neighbours: Neighbours, settings: GraphSettings) -> NeighbourGraph:
    """Keep the edges to the nearest neighbours whose cosine is above the threshold (and above 0).

    Their weight is the cosine, times the overlap of the two rows' neighbours with shared weights.
    """
    nearest = neighbours.nearest(settings.n_neighbors)
    n_neighbors = nearest.indices.shape[1]
    keep = nearest.similarities > max(settings.similarity_threshold, 0.0)
    weights = nearest.similarities
    if settings.edge_weights == "shared":
        shared = share_neighbours(neighbours, n_neighbors)
        weights = np.multiply(weights, shared, out=shared)  # graphs of many edges fit into memory once
    counts = keep.sum(axis=1)
    if keep.all():
        return NeighbourGraph(counts, nearest.indices.ravel(), weights.ravel())
    return NeighbourGraph(counts, nearest.indices[keep], weights[keep])


def cluster_features(
    features: NDArray[np.float32],
    *,
    n_neighbors: int,
    similarity_threshold: float = 0.0,
    resolution: float = 1.0,
    edge_weights: EdgeWeights = "cosine",
    seed: int = 0,
) -> Clustering:
    """Group the rows of ``features`` (n, d); a row without a close neighbour joins the nearest group.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Unit-length rows.
    n_neighbors : int
        Edges kept per row.
    similarity_threshold : float
        Edges need a cosine above this.
    resolution : float
        Infomap's Markov time: above 1 gives fewer, larger communities.
    edge_weights : {"shared", "cosine"}
        Weigh edges by their cosine, or by that times the part of neighbours that the two rows share.
    seed : int
        Seeds Infomap's search.
    """
    settings = GraphSettings(n_neighbors, similarity_threshold, resolution, edge_weights)
    return cluster_neighbours(features, find_neighbours(features, n_neighbors), settings, seed=seed)


def cluster_neighbours(
    features: NDArray[np.float32], neighbours: Neighbours, settings: GraphSettings, *, seed: int = 0
) -> Clustering:
    """Group rows whose neighbours, ``n_neighbors`` or more, are already known."""
    graph = build_graph(neighbours, settings)
    if not len(graph.targets):
        threshold = settings.similarity_threshold
        if threshold <= 0:  # rows that have nothing in common: each is its own community
            return Clustering(np.arange(len(features)), features.copy(), np.ones(len(features), dtype=bool))
        closest = float(neighbours.similarities.max(initial=-1.0))
        raise EmptyGraphError(
            f"similarity_threshold={threshold:g} leaves no pair of rows: "
            f'the most similar pair has cosine {closest:.3f}. Lower similarity_threshold or pass "auto".'
        )
    has_edge = graph.has_edge
    labels = np.full(graph.n_rows, -1, dtype=np.int64)
    labels[has_edge] = number_by_size(_run_infomap(graph, settings.resolution, seed)[has_edge])
    centroids = mean_directions(features, labels)
    if not has_edge.all():
        labels[~has_edge] = (features[~has_edge] @ centroids.T).argmax(axis=1)
    return Clustering(labels, centroids, ~has_edge)


def mean_directions(
    features: NDArray[np.float32], labels: NDArray[np.int64], n_groups: int | None = None
) -> NDArray[np.float32]:
    """Return the unit-length mean row of each group 0 … K−1 (shape (K, d)); rows of label −1 are in none."""
    n_groups = int(labels.max(initial=-1)) + 1 if n_groups is None else n_groups
    return unit_rows(_group_sums(features, labels, n_groups))


def _group_sums(rows: NDArray[np.floating], labels: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return the sum of the rows of each group (shape (K, d)), by one sparse product.

    Of many rows, some groups after the others: all rows at once would be copied in double precision.
    """
    if rows.size > _NUMBERS_AT_ONCE and n_groups > 1:
        order = np.argsort(labels, kind="stable")
        in_order = labels[order]
        ends = np.cumsum(np.bincount(labels[labels >= 0], minlength=n_groups)) * rows.shape[1]
        cuts = np.unique(np.searchsorted(ends, np.arange(_NUMBERS_AT_ONCE, ends[-1], _NUMBERS_AT_ONCE)) + 1)
        sums = []
        for first, last in itertools.pairwise(np.unique([0, *cuts, n_groups]).tolist()):
            part = order[slice(*np.searchsorted(in_order, [first, last]))]
            sums.append(_add_up(rows[part], labels[part] - first, last - first))
        return np.concatenate(sums)
    return _add_up(rows, labels, n_groups)


def _add_up(rows: NDArray[np.floating], labels: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    member = np.flatnonzero(labels >= 0)
    shape = (n_groups, len(labels))
    membership = sparse.csr_array((np.ones(len(member)), (labels[member], member)), shape=shape)
    return np.asarray(membership @ rows, dtype=np.float64)


def _run_infomap(graph: NeighbourGraph, resolution: float, seed: int) -> NDArray[np.int64]:
    """Return the module of each row in a two-level partition of ``graph``."""
    import infomap

    links = _as_matrix(graph)
    order = _order_rows(links)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    network = infomap.Network()
    # One by one; the others come with their links.
    network.add_nodes(place[~graph.has_edge].tolist())
    for part in _parts(graph.counts[order]):
        own = links[order[part]].tocoo()
        network.add_links(np.column_stack([own.row + part.start, place[own.col], own.data]))
    result = infomap.run(
        network,
        two_level=True,
        directed=True,
        num_trials=1,
        seed=seed % (2**31 - 1) + 1,  # Infomap wants a positive 32-bit seed
        markov_time=float(resolution),
    )
    # Read back through a file: infomap's own iterators crash the interpreter once faiss was imported
    # after infomap, because the two share their SWIG type table (infomap 2.16.0, faiss-cpu 1.15.1).
    with _temporary_folder() as folder:
        path = folder / "communities.clu"
        result.write_clu(str(path))
        places, modules = np.loadtxt(path, comments="#", usecols=(0, 1), dtype=np.int64, ndmin=2).T
    labels = np.empty(graph.n_rows, dtype=np.int64)
    labels[order[places]] = modules
    return labels


def _as_matrix(graph: NeighbourGraph) -> sparse.csr_array:
    """Return the weights of edges from rows to columns (n, n), of the same numbers in memory."""
    ends = np.cumsum(graph.counts, dtype=np.int32 if len(graph.targets) < 2**31 else np.int64)
    starts = np.concatenate([np.zeros(1, dtype=ends.dtype), ends])
    return sparse.csr_array((graph.weights, graph.targets, starts), shape=(graph.n_rows, graph.n_rows))


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder for the time of use; one that a killed process left is removed before the first."""
    _sweep_once(tempfile.gettempdir())
    folder, lock = make_temporary_folder(_TEMPORARY)
    try:
        yield folder
    finally:
        lock.close()
        shutil.rmtree(folder, ignore_errors=True)


@lru_cache
def _sweep_once(place: str) -> None:
    """Remove what killed processes left there: once in the life of this one, as every name is looked at."""
    sweep_temporary_folders(_TEMPORARY)


def _order_rows(links: sparse.csr_array) -> NDArray[np.int64]:
    """Return many rows in such an order that near ones have near places: Infomap waits less for memory."""
    n_rows = links.shape[0]
    if n_rows < _MANY_ROWS:
        return np.arange(n_rows)
    return csgraph.reverse_cuthill_mckee(links, symmetric_mode=True).astype(np.int64)


def _parts(counts: NDArray[np.int64]) -> list[slice]:
    """Cut rows, of so many edges each, into runs of about as many edges as are handed over at once."""
    ends = np.cumsum(counts)
    cuts = np.searchsorted(ends, np.arange(_EDGES_AT_ONCE, ends[-1], _EDGES_AT_ONCE)) + 1
    bounds = np.unique([0, *cuts, len(ends)])
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(bounds)]


def number_by_size(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber communities 0 … K−1 by falling size, ties by first row."""
    _, first, dense, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    out: NDArray[np.int64] = rank[dense]
    return out
