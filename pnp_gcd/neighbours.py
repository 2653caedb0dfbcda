"""Find each row's nearest rows by cosine similarity, by one of several engines.

Exact blocked search for pools that fit a laptop, of wide rows by rounded ones first; cells beyond, where a
sample shows that they find nearly the same rows for less; faiss's inverted file for comparison, and for its
GPUs. Knows unit-length arrays only: no labels, no epochs.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._threads import each_by_one_thread
from pnp_gcd.products import multiply, take_best

__all__ = ["Engine", "Neighbours", "find_nearest", "find_neighbours", "share_neighbours"]

Engine = Literal["auto", "exact", "cells", "faiss"]

_logger = logging.getLogger(__name__)

# Exact search is quadratic in rows; above this cells find nearly the same rows sooner.
_MAX_EXACT_ROWS = 60_000
# Part of the true neighbours that a search by cells has to find on a sample of so many rows. A little more
# than the 0.95 that is promised of all rows.
_RECALL = 0.97
_SAMPLED_ROWS = 200
# Comparing in cells takes this many times as long as comparing as many rows in one block.
_CELL_OVERHEAD = 4.0
# Rows and columns from which on comparing rounded rows first pays; a fit's own rows are narrower.
_MANY_WIDE_ROWS, _MANY_COLUMNS = 4096, 257
# Rows from which on a GPU, where there is one, is worth the way to it.
_MANY_ROWS = 10_000
# Similarities held at once by the exact search, on a GPU and in each thread: 32 Mi floats are 128 MiB.
_BLOCK_SIMILARITIES, _BLOCK_SHARED = 1 << 25, 1 << 23
# Nearest rows that two rows may share; pairs of them compared at once.
_LISTED = 20
_BLOCK_COMPARISONS = 1 << 23


class Neighbours(NamedTuple):
    """The nearest rows of each row, nearest first, the row itself left out.

    Attributes
    ----------
    indices : ndarray of shape (n, k), int32
    similarities : ndarray of shape (n, k), float32
        Cosines, falling along each row.
    recall : float
        Part of the true neighbours that was found, on a sample of the rows; 1 by exact search.
    """

    indices: NDArray[np.int32]
    similarities: NDArray[np.float32]
    recall: float = 1.0

    def nearest(self, n_neighbors: int) -> Neighbours:
        """Return the first ``n_neighbors`` columns: one search serves every smaller k."""
        return Neighbours(self.indices[:, :n_neighbors], self.similarities[:, :n_neighbors], self.recall)

    def cut_at(self, part: float) -> float:
        """Return the similarity, not below 0, that this part of all edges stays below."""
        return max(0.0, float(np.quantile(self.similarities, part)))


def find_neighbours(
    features: NDArray[np.float32],
    n_neighbors: int,
    asked: NDArray[np.int64] | None = None,
    *,
    engine: Engine = "auto",
) -> Neighbours:
    """Return the ``n_neighbors`` nearest other rows of each unit row of ``features`` (n, d).

    With ``asked``, of these rows only, in their order, by exact search: for few of many rows.

    Parameters
    ----------
    features : ndarray of shape (n, d)
    n_neighbors : int
    asked : ndarray of shape (m,) or None
    engine : {"auto", "exact", "cells", "faiss"}
        ``"auto"`` compares all pairs of up to 60,000 rows. Of more it takes cells, as many a row as find
        97 % of the neighbours of a sample of rows, unless that would take as long as comparing all pairs,
        or what cells need does not fit into memory. Rows go to a GPU where there is one, they are many and
        they fit.

    Raises
    ------
    MemoryError
        Where even the neighbours themselves would not fit into the memory that is free.
    """
    if n_neighbors >= len(features):
        raise ValueError(
            f"n_neighbors={n_neighbors} needs more than {n_neighbors} rows, got {len(features)}. "
            'Lower n_neighbors or pass "auto".'
        )
    if asked is not None:
        return _search_exactly(features, n_neighbors, asked)
    free = free_memory()
    _refuse_what_does_not_fit(len(features), n_neighbors, free)
    if engine == "faiss":
        return _search_inverted_file(features, n_neighbors)
    is_small = len(features) <= _MAX_EXACT_ROWS or memory_of_cells(len(features), n_neighbors) > free
    if engine == "exact" or (engine == "auto" and is_small):
        return _search_rounded(features, n_neighbors) or _search_exactly(features, n_neighbors)
    return _search_in_cells(features, n_neighbors, is_forced=engine == "cells")


def memory_of_neighbours(n_rows: int, n_neighbors: int) -> int:
    """Return the bytes that the neighbours of all rows take: a place and a cosine each."""
    return n_rows * n_neighbors * 8


def memory_of_cells(n_rows: int, n_neighbors: int) -> int:
    """Return the bytes that a search in cells takes: cells of rows and their order, blocks, the answer."""
    return n_rows * 48 + (1 << 30) + memory_of_neighbours(n_rows, n_neighbors)


def free_memory() -> float:
    """Return the bytes that this machine can still give, infinity where it does not tell."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return float("inf")


def _refuse_what_does_not_fit(n_rows: int, n_neighbors: int, free: float) -> None:
    needed = memory_of_neighbours(n_rows, n_neighbors)
    if needed > free:
        raise MemoryError(
            f"{n_neighbors} neighbours of {n_rows} rows take {needed / 2**30:.1f} GiB, but only "
            f"{free / 2**30:.1f} GiB are free. Lower n_neighbors or max_samples."
        )


def find_nearest(queries: NDArray[np.float32], rows: NDArray[np.float32], n_nearest: int) -> Neighbours:
    """Return the ``n_nearest`` of the unit ``rows`` (m, d) for each unit row of ``queries`` (n, d).

    Exact. A query that is among the rows is its own nearest.
    """
    among = _as_tensor(rows, len(queries))
    return _compare(among, len(queries), n_nearest, lambda part: _as_tensor(queries[part], len(queries)))


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

    def compare(number: int) -> None:
        part = slice(number * block, (number + 1) * block)
        theirs = lists[neighbours.indices[part, :n_neighbors]]
        equal = theirs[:, :, :, None] == lists[part][:, None, None, :]
        common = equal.any(axis=3).sum(axis=2, dtype=np.int32)
        overlap[part] = common / (2 * length - common)

    each_by_one_thread(compare, -(-n_rows // block))
    return overlap


def _search_exactly(
    features: NDArray[np.float32], n_neighbors: int, queries: NDArray[np.int64] | None = None
) -> Neighbours:
    """Compare the queries (all rows by default) with all rows in blocks: a product and a partial sort."""
    import torch

    rows = _as_tensor(features, len(features))
    asked = torch.arange(len(rows)) if queries is None else torch.from_numpy(queries)
    asked = asked.to(rows.device)
    return _compare(rows, len(asked), n_neighbors, lambda part: rows[asked[part]], asked)


def _search_rounded(features: NDArray[np.float32], n_neighbors: int) -> Neighbours | None:
    """Compare rounded rows first, where they are wide and that is quicker; None where it is not."""
    import torch

    from pnp_gcd import rounded

    n_rows, width = features.shape
    if n_rows < _MANY_WIDE_ROWS or width < _MANY_COLUMNS or 8 * n_neighbors > n_rows:
        return None
    if torch.cuda.is_available() or not rounded.is_quick():
        return None
    rows = _as_tensor(features, n_rows)
    whole = rounded.round_rows(rows)
    if whole is None:
        return None
    indices, similarities, is_proven = rounded.search_rounded(rows, whole, n_neighbors)
    doubtful = np.flatnonzero(~is_proven)
    _logger.info("Compared rounded rows first: proven for %d of %d rows.", is_proven.sum(), n_rows)
    if len(doubtful):
        exact = _search_exactly(features, n_neighbors, doubtful)
        indices[doubtful], similarities[doubtful] = exact.indices, exact.similarities
    return Neighbours(indices, similarities)


def _as_tensor(rows: NDArray[np.float32], n_compared: int) -> Any:
    """Return rows as a tensor, on a GPU where there is one, much to do, and room for the rows twice."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32))
    if n_compared < _MANY_ROWS or not torch.cuda.is_available():
        return tensor
    room = torch.cuda.mem_get_info()[0] - 8 * _BLOCK_SIMILARITIES
    return tensor.cuda() if 2 * tensor.nbytes <= room else tensor


def _compare(among: Any, n_queries: int, n_nearest: int, take: Any, own: Any = None) -> Neighbours:
    """Return the nearest of the rows ``among`` (m, d) for queries that are taken block by block.

    ``own`` are rows of it, one a query, that do not count.
    """
    import torch

    indices = np.empty((n_queries, n_nearest), dtype=np.int32)
    similarities = np.empty((n_queries, n_nearest), dtype=np.float32)
    is_shared = among.device.type == "cpu"
    # Whatever the threads: products of other sizes may be rounded differently.
    block = min(n_queries, max(1, (_BLOCK_SHARED if is_shared else _BLOCK_SIMILARITIES) // len(among)))
    rooms = threading.local()  # memory of each thread, asked for once: new memory is slow to write to

    def compare(number: int) -> None:
        part = slice(number * block, min((number + 1) * block, n_queries))
        queries = take(part)
        if is_shared and not hasattr(rooms, "own"):
            rooms.own = torch.empty((block, len(among)))
        cosines = multiply(queries, among, out=rooms.own[: len(queries)] if is_shared else None)
        if own is not None:
            cosines[torch.arange(len(cosines)), own[part]] = -torch.inf
        best, who = take_best(cosines, n_nearest)
        similarities[part], indices[part] = best.cpu().numpy(), who.cpu().numpy()

    each_by_one_thread(compare, -(-n_queries // max(block, 1)), is_shared=is_shared)
    return Neighbours(indices, similarities)


def _search_in_cells(features: NDArray[np.float32], n_neighbors: int, *, is_forced: bool) -> Neighbours:
    """Look into as many cells as a sample needs; compare all rows where that is as quick."""
    import torch

    from pnp_gcd import cells

    began = time.perf_counter()
    rows = _as_tensor(features, len(features))
    sample = np.sort(np.random.default_rng(0).permutation(len(features))[:_SAMPLED_ROWS])
    exact = _search_exactly(features, n_neighbors, sample)
    sorted_rows = cells.build_cells(rows, least_rows=min(n_neighbors + 1, len(features)))
    n_probes, _ = cells.plan_probes(
        sorted_rows,
        rows,
        torch.from_numpy(sample).to(rows.device),
        torch.from_numpy(exact.indices.astype(np.int64)).to(rows.device),
        recall=_RECALL,
    )
    if not is_forced and _CELL_OVERHEAD * cells.estimate_cost(sorted_rows, n_probes) >= 1.0:
        _logger.info("Exact search: rows of %d cells would have to be compared.", n_probes)
        return _search_exactly(features, n_neighbors)
    indices, similarities = cells.search_cells(rows, sorted_rows, n_neighbors, n_probes)
    found = _mend(features, Neighbours(indices, similarities))
    recall = measure_recall(found.indices[sample], exact.indices)
    _logger.info(
        "Searched %d of %d cells for %d neighbours of %d rows: recall %.3f on %d rows, %.1f s.",
        n_probes,
        len(sorted_rows.centres),
        n_neighbors,
        len(features),
        recall,
        len(sample),
        time.perf_counter() - began,
    )
    return found._replace(recall=recall)


def measure_recall(found: NDArray[np.int32], true: NDArray[np.int32]) -> float:
    """Return the part of the true neighbours (m, k) that are among those found (m, k)."""
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, true, strict=True)]
    return float(np.sum(shared) / true.size)


def _mend(features: NDArray[np.float32], found: Neighbours) -> Neighbours:
    """Search exactly for rows whose cells held too few others."""
    starved = np.flatnonzero((found.indices < 0).any(axis=1))
    if len(starved):
        exact = _search_exactly(features, found.indices.shape[1], starved)
        found.indices[starved], found.similarities[starved] = exact.indices, exact.similarities
    return found


def _search_inverted_file(features: NDArray[np.float32], n_neighbors: int) -> Neighbours:
    """Compare each row with the rows of its nearest cells only, by faiss."""
    import faiss

    features = np.ascontiguousarray(features, dtype=np.float32)
    n_rows, width = features.shape
    n_cells = int(4 * np.sqrt(n_rows))
    index: Any = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, n_cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = 1
    index.train(features[:: max(1, n_rows // (64 * n_cells))])
    index.add(features)
    index.nprobe = max(8, n_cells // 32)
    if getattr(faiss, "get_num_gpus", int)():  # of faiss-gpu
        index = faiss.index_cpu_to_all_gpus(index)
    similarities, indices = index.search(features, n_neighbors + 1)
    return _mend(features, _drop_self(indices.astype(np.int32), similarities))


def _drop_self(indices: NDArray[np.int32], similarities: NDArray[np.float32]) -> Neighbours:
    """Remove each row's own entry; where it was not found, its farthest one."""
    n_rows, width = indices.shape
    is_self = indices == np.arange(n_rows)[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    keep = ~is_self
    shape = (n_rows, width - 1)
    return Neighbours(indices[keep].reshape(shape), similarities[keep].reshape(shape))
