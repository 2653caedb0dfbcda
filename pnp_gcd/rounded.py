"""Find the nearest rows exactly, by comparing rows rounded to bytes first.

Products of bytes take a third of the time of products of single precision on processors that have
instructions for them. How far rounding can move a cosine is known, so that all rows that may be among the
nearest are compared exactly, and what comes out is proven, not likely. Where likely is enough, as for cells,
the products of bytes alone rank. Knows unit-length tensors only.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.products import take_best

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "RoundedRows",
    "compare_some",
    "is_quick",
    "rank_columns",
    "round_columns",
    "round_rows",
    "search_rounded",
]

# Products of bytes held at once: 16 Mi are 64 MiB. Numbers rounded at once: 8 Mi are 32 MiB.
_BLOCK, _BLOCK_ROUNDED = 1 << 24, 1 << 23
# Numbers rounded at once where a product follows: 3 MiB, which processors keep near.
_BLOCK_NEAR = 3 << 18
# Columns from which on rounding takes much less time than it saves.
_MANY_COLUMNS = 257
# Rows compared exactly, per neighbour wanted and beyond.
_CANDIDATES_PER_NEIGHBOUR, _MORE_CANDIDATES = 3, 40
# Rounding that moves cosines further than this proves too little.
_MAX_ERROR = 0.1
_LARGEST = 127
_NEVER = -(1 << 31)


class RoundedRows(NamedTuple):
    """Unit rows as whole numbers.

    Attributes
    ----------
    bytes : Tensor of shape (n, d), int8
    scale : float
        Whole numbers per unit.
    errors : Tensor of shape (n,)
        How far the cosine of a row with any other can be from that of the rounded rows.
    """

    bytes: Tensor
    scale: float
    errors: Tensor


def is_quick() -> bool:
    """Tell whether this processor, and this torch, multiply bytes much faster than single precision."""
    import torch

    can_tell = getattr(torch.cpu, "_is_vnni_supported", None)
    return hasattr(torch, "_int_mm") and can_tell is not None and bool(can_tell())


def round_rows(rows: Tensor) -> RoundedRows | None:
    """Round unit rows (n, d); None where a few large numbers leave too little precision for the others."""
    import torch
    from torch.nn import functional

    scale = _LARGEST / max(float(rows.abs().max()), 1e-6)
    rounded = torch.empty(rows.shape, dtype=torch.int8)
    errors = torch.empty(len(rows))
    step = max(1, _BLOCK_ROUNDED // rows.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        whole = (rows[part] * scale).round_()
        rounded[start : start + len(whole)] = whole
        errors[part] = functional.pairwise_distance(rows[part], whole / scale, eps=0.0)
    # |x·y − x'·y'| ≤ |x − x'| |y| + |x'| |y − y'|, and what single precision rounds
    worst = float(errors.max())
    errors = errors + (1.0 + errors) * worst + 1e-5
    return RoundedRows(rounded, scale, errors) if float(errors.max()) <= _MAX_ERROR else None


def search_rounded(
    rows: Tensor, rounded: RoundedRows, n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """Return the nearest other rows (n, k), their cosines (n, k), and for which rows (n,) they are proven."""
    import torch

    n_rows = len(rows)
    n_candidates = min(n_rows - 1, _CANDIDATES_PER_NEIGHBOUR * n_neighbors + _MORE_CANDIDATES)
    indices = np.empty((n_rows, n_neighbors), dtype=np.int32)
    similarities = np.empty((n_rows, n_neighbors), dtype=np.float32)
    is_proven = np.empty(n_rows, dtype=np.bool_)
    columns = rounded.bytes.T
    step = min(n_rows, max(32, _BLOCK // n_rows))
    room = torch.empty((step, n_rows), dtype=torch.int32)  # asked for once: new memory is slow to write to
    for start in range(0, n_rows, step):
        part = slice(start, min(start + step, n_rows))
        own = torch.arange(part.start, part.stop)
        products = torch._int_mm(rounded.bytes[part], columns, out=room[: len(own)])
        products[torch.arange(len(own)), own] = _NEVER
        products_of_best, likely = take_best(products, n_candidates)
        cosines = compare_some(rows, own, likely)
        best, place = cosines.topk(n_neighbors, dim=1)
        indices[part] = likely.gather(1, place).numpy()
        similarities[part] = best.numpy()
        beyond = products_of_best[:, -1] / rounded.scale**2 + rounded.errors[part]
        is_proven[part] = ((best[:, -1] >= beyond) | (n_candidates == n_rows - 1)).numpy()
    return indices, similarities, is_proven


def round_columns(columns: Tensor) -> Tensor | None:
    """Return unit rows (n, d) as whole numbers of one scale, for :func:`rank_columns`.

    None where single precision is quicker, or where bytes are too coarse.
    """
    if columns.device.type != "cpu" or columns.shape[1] < _MANY_COLUMNS or not is_quick():
        return None
    rounded = round_rows(columns)
    return None if rounded is None else rounded.bytes


def rank_columns(rows: Tensor, columns: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return whole numbers (m, n) that rank ``columns`` for each row, the nearest highest.

    A row is rounded with a scale of its own: numbers of different rows cannot be compared.

    Parameters
    ----------
    rows : Tensor of shape (m, d)
    columns : Tensor of shape (n, d), int8
    out : Tensor of shape (m, n), int32, or None
        Where to write it.
    """
    import torch

    rounded = torch.empty(rows.shape, dtype=torch.int8)
    step = max(1, _BLOCK_NEAR // rows.shape[1])
    room = torch.empty((min(step, len(rows)), rows.shape[1]))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        whole = room[: len(part)]
        scales = _LARGEST / torch.abs(part, out=whole).amax(dim=1, keepdim=True).clamp_(min=1e-6)
        rounded[start : start + step] = torch.mul(part, scales, out=whole).round_()
    return torch._int_mm(rounded, columns.T, out=out)


def compare_some(rows: Tensor, asked: Tensor, others: Tensor) -> Tensor:
    """Return the cosines (m, c) of the rows asked for (m,) with ``others`` (m, c) of each.

    By torch's product for sparse results, which gathers nothing.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "sparse CSR tensors are in beta"
        wanted = torch.sparse_csr_tensor(
            torch.arange(len(asked) + 1) * others.shape[1],
            others.flatten(),
            torch.zeros(others.numel()),
            size=(len(asked), len(rows)),
            check_invariants=False,
        )
        found: Tensor = torch.sparse.sampled_addmm(wanted, rows[asked], rows.T, beta=0.0)
    return found.values().view(others.shape)
