"""Find nearest rows among many: rows are sorted into cells, and each row looks into its nearest few.

An inverted file by matrix products: all rows that look into a cell are compared with its rows at once, which
is what processors, with or without a GPU, do fastest. How many cells a row has to look into is read off a
sample of rows whose neighbours were found exactly. Knows unit-length tensors only: no labels, no epochs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._threads import each_by_one_thread
from pnp_gcd.products import multiply
from pnp_gcd.rounded import rank_columns, round_columns

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Cells", "build_cells", "estimate_cost", "plan_probes", "search_cells", "sort_rows"]

# Cells per square root of rows. Fewer are sooner chosen among, but where they are fewer than the groups that
# rows lie in, many more have to be looked into: half as many took up to 30 times as long.
_CELLS_PER_ROOT = 6.0
# Rows per cell, and rounds, from which centres are learnt.
_ROWS_PER_CELL = 10
_N_ROUNDS = 2
# Cells that are ranked for every row when rows are sorted; more, if more are looked into, later.
_RANKED = 8
# Similarities held at once: 16 Mi floats are 64 MiB; of rows with centres, 8 MiB, which processors keep near.
_BLOCK, _BLOCK_RANKED = 1 << 24, 1 << 21
# Candidates kept at once, before the best are taken: 32 Mi are 256 MiB.
_BLOCK_CANDIDATES = 1 << 25


class Cells(NamedTuple):
    """Rows sorted by the nearest of some centres.

    Attributes
    ----------
    centres : Tensor of shape (c, d)
    ranked : Tensor of shape (n, r), int32
        The nearest few cells of each row, nearest first: the first is where it belongs.
    order : Tensor of shape (n,)
        Rows, cell by cell.
    starts : list of int
        Where each cell begins in that order, and the end.
    """

    centres: Tensor
    ranked: Tensor
    order: Tensor
    starts: list[int]

    @property
    def home(self) -> Tensor:
        """Cell of each row, of shape (n,)."""
        return self.ranked[:, 0]

    def rank(self, rows: Tensor, places: Tensor, n_cells: int) -> Tensor:
        """Return the nearest ``n_cells`` cells (m, n_cells) of the rows (n, d) at these places (m,)."""
        if n_cells <= self.ranked.shape[1]:
            return self.ranked[places, :n_cells]
        return rank_cells(rows[places], self.centres, n_cells)


def build_cells(rows: Tensor, *, least_rows: int = 1, seed: int = 0) -> Cells:
    """Sort unit rows (n, d) into cells of ``least_rows`` on average at least, by spherical k-means."""
    import torch

    n_cells = int(_CELLS_PER_ROOT * math.sqrt(len(rows)))
    n_cells = max(1, min(n_cells, len(rows) // max(least_rows, 1)))
    rng = np.random.default_rng(seed)  # the caller's global random state stays as it was
    drawn = np.sort(rng.permutation(len(rows))[: _ROWS_PER_CELL * n_cells])
    sample = rows[torch.from_numpy(drawn).to(rows.device)]
    first = torch.from_numpy(rng.permutation(len(sample))[:n_cells]).to(rows.device)
    centres = sample[first].clone()
    for _ in range(_N_ROUNDS):
        home = rank_cells(sample, centres, 1)[:, 0]
        sums = torch.zeros_like(centres).index_add_(0, home, sample)
        is_empty = torch.bincount(home, minlength=n_cells) == 0
        sums[is_empty] = centres[is_empty]
        centres = torch.nn.functional.normalize(sums, dim=1)
    return sort_rows(rows, centres)


def sort_rows(rows: Tensor, centres: Tensor) -> Cells:
    """Sort unit rows (n, d) into the cells of these centres (c, d)."""
    import torch

    ranked = rank_cells(rows, centres, min(_RANKED, len(centres)))
    sizes = torch.bincount(ranked[:, 0], minlength=len(centres)).cpu()
    starts = [0, *torch.cumsum(sizes, 0).tolist()]
    return Cells(centres, ranked, torch.argsort(ranked[:, 0], stable=True), starts)


def rank_cells(rows: Tensor, centres: Tensor, n_cells: int) -> Tensor:
    """Return the nearest ``n_cells`` centres (m, n_cells; int32) of the rows (m, d), nearest first.

    Wide rows are rounded to bytes for it, where these are quick: cells are near or not, to the third digit.
    """
    import torch

    rounded = round_columns(centres)
    block = max(1, _BLOCK_RANKED // len(centres))
    room = None
    if rows.device.type == "cpu":  # asked for once: new memory is slow to write to
        dtype = centres.dtype if rounded is None else torch.int32
        room = torch.empty((min(block, len(rows)), len(centres)), dtype=dtype)
    found = torch.empty((len(rows), n_cells), dtype=torch.int32, device=rows.device)
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        out = None if room is None else room[: len(part)]
        near = multiply(part, centres, out=out) if rounded is None else rank_columns(part, rounded, out=out)
        nearest = near.topk(n_cells, dim=1).indices if n_cells > 1 else near.argmax(1)[:, None]
        found[start : start + block] = nearest
    return found


def plan_probes(
    cells: Cells, rows: Tensor, asked: Tensor, true_neighbours: Tensor, *, recall: float
) -> tuple[int, float]:
    """Return how many cells to look into, and the part of true neighbours that is then found.

    Parameters
    ----------
    cells : Cells
    rows : Tensor of shape (n, d)
    asked : Tensor of shape (m,)
        Rows whose neighbours are known.
    true_neighbours : Tensor of shape (m, k)
    recall : float
        Part of them that is to be found.
    """
    import torch

    n_cells = len(cells.centres)
    ranked = cells.rank(rows, asked, n_cells).long()
    places = torch.arange(n_cells, device=rows.device).expand(len(asked), n_cells)
    rank_of = torch.empty_like(ranked).scatter_(1, ranked, places)
    needed = rank_of.gather(1, cells.home[true_neighbours].long()).flatten().sort().values
    n_probes = int(needed[min(len(needed) - 1, math.ceil(recall * len(needed)) - 1)]) + 1
    return n_probes, float((needed < n_probes).float().mean())


def search_cells(
    rows: Tensor, cells: Cells, n_neighbors: int, n_probes: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the nearest other rows (n, k) among those of each row's nearest cells, and their cosines.

    Where these hold fewer than k other rows, indices are −1 and cosines −inf. Rows are gathered cell by cell:
    they need no copy in the order of cells.
    """
    n_rows = len(rows)
    indices = np.empty((n_rows, n_neighbors), dtype=np.int32)
    similarities = np.empty((n_rows, n_neighbors), dtype=np.float32)
    # Cell by cell, so that rows that are asked together look into the same cells.
    block = max(1, _BLOCK_CANDIDATES // (n_probes * n_neighbors))
    for start in range(0, n_rows, block):
        asked = cells.order[start : start + block]
        ranked = cells.rank(rows, asked, n_probes)
        best, who = _look(rows, cells, slice(start, start + len(asked)), ranked, n_neighbors)
        order = asked.cpu().numpy()
        similarities[order], indices[order] = best.cpu().numpy(), who.cpu().numpy()
    return indices, similarities


def _look(
    rows: Tensor, cells: Cells, asked: slice, ranked: Tensor, n_neighbors: int
) -> tuple[Tensor, Tensor]:
    """Return cosines and rows, both (m, k), of the best for the rows at the places ``asked`` of the order.

    They look into the cells ``ranked`` (m, c). Where these hold too few others: −inf and −1.
    """
    import torch

    asking, n_probes = cells.order[asked], ranked.shape[1]
    shape = (len(asking) * n_probes, n_neighbors)
    best = torch.full(shape, -torch.inf, device=rows.device)
    who = torch.full(shape, -1, dtype=torch.int32, device=rows.device)
    by_cell = torch.argsort(ranked.flatten(), stable=True)
    ends = torch.cumsum(torch.bincount(ranked.flatten(), minlength=len(cells.centres)), 0).tolist()

    def look_into(cell: int) -> None:
        begin, end = ends[cell - 1] if cell else 0, ends[cell]
        first, last = cells.starts[cell], cells.starts[cell + 1]
        n_found = min(n_neighbors, last - first)
        if begin == end or not n_found:
            return
        members = cells.order[first:last]
        its_rows = rows[members]
        step = max(1, _BLOCK // (last - first))
        for at in range(begin, end, step):
            slots = by_cell[at : min(end, at + step)]
            who_asks = slots // n_probes
            cosines = multiply(rows[asking[who_asks]], its_rows)
            own = who_asks + (asked.start - first)
            inside = ((own >= 0) & (own < last - first)).nonzero()[:, 0]
            cosines[inside, own[inside]] = -torch.inf
            top = cosines.topk(n_found, dim=1, sorted=False)
            best[slots, :n_found] = top.values
            who[slots, :n_found] = members[top.indices].int()

    each_by_one_thread(look_into, len(ends), is_shared=rows.device.type == "cpu")
    width = n_probes * n_neighbors
    top = best.view(len(asking), width).topk(n_neighbors, dim=1)
    found = who.view(len(asking), width).gather(1, top.indices)
    found[top.values == -torch.inf] = -1
    return top.values, found


def estimate_cost(cells: Cells, n_probes: int) -> float:
    """Return the part of all pairs of rows that is compared; large cells are looked into more often."""
    sizes = np.diff(cells.starts).astype(np.float64)
    n_rows = float(sizes.sum())
    return min(1.0, n_probes * float((sizes**2).sum()) / n_rows**2)
