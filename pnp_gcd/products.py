"""Products of matrices on the CPU by the faster of two libraries that are there, and their largest entries.

torch multiplies by MKL, which on processors not made by Intel may take much longer than NumPy's OpenBLAS:
``benchmarks/products.py`` compares. Both give single precision; they differ in the last digits. Knows tensors
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["multiply", "take_best"]

# Of so many columns the best is looked at first, where there are many times more than are wanted.
_GROUP = 16
_MANY_TIMES = 4


def multiply(first: Tensor, second: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product (m, n) of two matrices, of the rows of ``first`` with those of ``second``.

    Without gradients.

    Parameters
    ----------
    first : Tensor of shape (m, d)
    second : Tensor of shape (n, d)
    out : Tensor of shape (m, n) or None
        Where to write it, for products on the CPU.
    """
    import torch

    if first.device.type != "cpu":
        return first @ second.T
    if out is None:
        out = torch.empty((len(first), len(second)), dtype=first.dtype)
    np.matmul(first.numpy(), second.numpy().T, out=out.numpy())
    return out


def take_best(values: Tensor, n_best: int) -> tuple[Tensor, Tensor]:
    """Return the largest ``n_best`` values of each row (m, n_best), falling, and their columns.

    As ``topk`` does, up to the order of equal values, in a fraction of the time: the largest are in those
    groups of columns whose largest are largest.

    Parameters
    ----------
    values : Tensor of shape (m, n)
    n_best : int
        At most n.
    """
    import torch

    n_groups = values.shape[1] // _GROUP
    if values.device.type != "cpu" or n_groups < _MANY_TIMES * n_best:
        top = values.topk(n_best, dim=1)
        return top.values, top.indices
    whole = _GROUP * n_groups
    best_of = values[:, :whole].view(len(values), _GROUP, n_groups).amax(dim=1)
    groups = torch.from_numpy(_find_largest(best_of.numpy(), n_best))
    columns = (groups[:, :, None] + n_groups * torch.arange(_GROUP)).flatten(1)
    rest = torch.arange(whole, values.shape[1]).expand(len(values), -1)
    columns = torch.cat([columns, rest], dim=1)
    likely = values.gather(1, columns).numpy()
    largest = _find_largest(likely, n_best)
    falling = np.take_along_axis(likely, largest, axis=1).argsort(axis=1)[:, ::-1]
    largest = np.take_along_axis(largest, falling, axis=1)
    best = torch.from_numpy(np.take_along_axis(likely, largest, axis=1))
    return best, columns.gather(1, torch.from_numpy(largest))


def _find_largest(values: NDArray[Any], n_largest: int) -> NDArray[np.int64]:
    """Return columns (m, n_largest) of the largest values of each row, in no order.

    NumPy parts a row about three times as fast as torch's ``topk`` orders its largest.
    """
    first = values.shape[1] - n_largest
    return np.argpartition(values, first, axis=1)[:, first:]
