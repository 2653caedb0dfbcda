"""Find each row's nearest rows by cosine similarity.

Exact blocked search for pools that fit a laptop, an inverted-file index of faiss beyond.
Knows unit-length arrays only: no labels, no epochs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Neighbours", "find_nearest", "find_neighbours", "share_neighbours"]

# Exact search is quadratic in rows; above this an inverted file finds the same rows sooner.
_MAX_EXACT_ROWS = 60_000
# Similarities held at once by the exact search: 32 Mi floats are 128 MiB.
_BLOCK_SIMILARITIES = 1 << 25
# Nearest rows that two rows may share; pairs of them compared at once.
_LISTED = 20
_BLOCK_COMPARISONS = 1 << 23


class Neighbours(NamedTuple):
    """The nearest rows of each row, nearest first, the row itself left out.

    Attributes
    ----------
    indices : ndarray of shape (n, k), int64
    similarities : ndarray of shape (n, k), float32
        Cosines, falling along each row.
    """

    indices: NDArray[np.int64]
    similarities: NDArray[np.float32]

    def nearest(self, n_neighbors: int) -> Neighbours:
        """Return the first ``n_neighbors`` columns: one search serves every smaller k."""
        return Neighbours(self.indices[:, :n_neighbors], self.similarities[:, :n_neighbors])

    def cut_at(self, part: float) -> float:
        """Return the similarity, not below 0, that this part of all edges stays below."""
        return max(0.0, float(np.quantile(self.similarities, part)))


def find_neighbours(
    features: NDArray[np.float32], n_neighbors: int, asked: NDArray[np.int64] | None = None
) -> Neighbours:
    """Return the ``n_neighbors`` nearest other rows of each unit row of ``features`` (n, d).

    With ``asked``, of these rows only, in their order, by exact search: for few of many rows.
    """
    if n_neighbors >= len(features):
        raise ValueError(
            f"n_neighbors={n_neighbors} needs more than {n_neighbors} rows, got {len(features)}. "
            'Lower n_neighbors or pass "auto".'
        )
    if asked is not None or len(features) <= _MAX_EXACT_ROWS:
        return _search_exactly(features, n_neighbors, asked)
    return _search_inverted_file(features, n_neighbors)


def find_nearest(queries: NDArray[np.float32], rows: NDArray[np.float32], n_nearest: int) -> Neighbours:
    """Return the ``n_nearest`` of the unit ``rows`` (m, d) for each unit row of ``queries`` (n, d).

    Exact. A query that is among the rows is its own nearest.
    """
    import torch

    among = torch.from_numpy(np.ascontiguousarray(rows)).T
    block = max(1, _BLOCK_SIMILARITIES // len(rows))
    indices = np.empty((len(queries), n_nearest), dtype=np.int64)
    similarities = np.empty((len(queries), n_nearest), dtype=np.float32)
    for start in range(0, len(queries), block):
        part = slice(start, start + block)
        cosines = torch.from_numpy(np.ascontiguousarray(queries[part])) @ among
        best, who = cosines.topk(n_nearest, dim=1)
        similarities[part], indices[part] = best.numpy(), who.numpy()
    return Neighbours(indices, similarities)


def share_neighbours(neighbours: Neighbours, n_neighbors: int) -> NDArray[np.float32]:
    """Return, for each of the first ``n_neighbors`` edges, how far its two rows share their neighbours.

    That is the Jaccard overlap, above 0 and at most 1, of the two lists of nearest rows (20 at most),
    each with its own row: rows of one class share neighbours, an edge that only bridges two classes
    shares few.

    Returns
    -------
    ndarray of shape (n, n_neighbors), float32
    """
    n_rows = len(neighbours.indices)
    near = neighbours.nearest(_LISTED).indices
    lists = np.column_stack([np.arange(n_rows), near]).astype(np.int32)
    length = lists.shape[1]
    n_neighbors = min(n_neighbors, neighbours.indices.shape[1])
    overlap = np.empty((n_rows, n_neighbors), dtype=np.float32)
    block = max(1, _BLOCK_COMPARISONS // (n_neighbors * length**2))
    for start in range(0, n_rows, block):
        part = slice(start, start + block)
        theirs = lists[neighbours.indices[part, :n_neighbors]]
        equal = theirs[:, :, :, None] == lists[part][:, None, None, :]
        common = equal.any(axis=3).sum(axis=2, dtype=np.int32)
        overlap[part] = common / (2 * length - common)
    return overlap


def _search_exactly(
    features: NDArray[np.float32], n_neighbors: int, queries: NDArray[np.int64] | None = None
) -> Neighbours:
    """Compare the queries (all rows by default) with all rows in blocks: a product and a partial sort."""
    import torch

    rows = torch.from_numpy(np.ascontiguousarray(features))
    asked = torch.arange(len(rows)) if queries is None else torch.from_numpy(queries)
    block = max(1, _BLOCK_SIMILARITIES // len(rows))
    indices = np.empty((len(asked), n_neighbors), dtype=np.int64)
    similarities = np.empty((len(asked), n_neighbors), dtype=np.float32)
    for start in range(0, len(asked), block):
        who_asks = asked[start : start + block]
        cosines = rows[who_asks] @ rows.T
        cosines[torch.arange(len(who_asks)), who_asks] = -torch.inf
        best, who = cosines.topk(n_neighbors, dim=1)
        similarities[start : start + block] = best.numpy()
        indices[start : start + block] = who.numpy()
    return Neighbours(indices, similarities)


def _search_inverted_file(features: NDArray[np.float32], n_neighbors: int) -> Neighbours:
    """Compare each row with the rows of its nearest cells only."""
    import faiss

    features = np.ascontiguousarray(features, dtype=np.float32)
    n_rows, width = features.shape
    n_cells = int(4 * np.sqrt(n_rows))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = 1
    index.train(features[:: max(1, n_rows // (64 * n_cells))])
    index.add(features)
    index.nprobe = max(8, n_cells // 32)
    similarities, indices = index.search(features, n_neighbors + 1)
    found = _drop_self(indices.astype(np.int64), similarities)
    starved = np.flatnonzero((found.indices < 0).any(axis=1))  # their cells held too few rows
    if len(starved):
        exact = _search_exactly(features, n_neighbors, starved)
        found.indices[starved], found.similarities[starved] = exact
    return found


def _drop_self(indices: NDArray[np.int64], similarities: NDArray[np.float32]) -> Neighbours:
    """Remove each row's own entry; where it was not found, its farthest one."""
    n_rows, width = indices.shape
    is_self = indices == np.arange(n_rows)[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    keep = ~is_self
    shape = (n_rows, width - 1)
    return Neighbours(indices[keep].reshape(shape), similarities[keep].reshape(shape))
