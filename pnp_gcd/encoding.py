"""Where learnt features leave torch as arrays.

Knows an encoder and rows: no losses, no labels. Rows go through in blocks of one fixed shape, so
that a row's feature depends neither on its place nor on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pnp_gcd._threads import each_by_one_thread
from pnp_gcd.geometry import Geometry, unit_rows

__all__ = ["encode_rows", "fill_in_blocks", "make_encoding", "map_in_blocks"]

_Number = TypeVar("_Number", bound=np.number)

# Rows per pass. Matrix products may round differently at other shapes; one shape rounds alike.
_BLOCK_ROWS = 512
# Blocks that a thread works on before it takes others.
_BLOCKS_PER_TASK = 16


def map_in_blocks(
    function: Callable[[NDArray[Any]], NDArray[_Number]], rows: NDArray[np.floating]
) -> NDArray[_Number]:
    """Apply ``function`` to ``rows`` in blocks of a fixed number of rows, the last one padded."""
    parts = []
    for start in range(0, len(rows), _BLOCK_ROWS):
        block = rows[start : start + _BLOCK_ROWS]
        missing = _BLOCK_ROWS - len(block)
        if missing:
            block = np.concatenate([block, np.repeat(block[-1:], missing, axis=0)])
        parts.append(function(block)[: _BLOCK_ROWS - missing])
    return np.concatenate(parts)


def fill_in_blocks(
    function: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any], out: NDArray[_Number]
) -> NDArray[_Number]:
    """Write ``function`` of such blocks into ``out`` (n, …), several at a time, each by one thread.

    Rows may lie on disk: no more of them than these blocks are in memory.
    """

    def fill(number: int) -> None:
        start = number * _BLOCKS_PER_TASK * _BLOCK_ROWS
        part = np.asarray(rows[start : start + _BLOCKS_PER_TASK * _BLOCK_ROWS])
        with torch.inference_mode():  # of this thread alone
            out[start : start + len(part)] = map_in_blocks(function, part)

    each_by_one_thread(fill, -(-len(rows) // (_BLOCKS_PER_TASK * _BLOCK_ROWS)))
    return out


def make_encoding(
    encoder: nn.Module, geometry: Geometry
) -> Callable[[NDArray[np.floating]], NDArray[np.float32]]:
    """Return what maps a block of rows (b, …, d) as they came to learnt unit features (b, p).

    Rows with several views, (b, v, d), are represented by their mean view.
    """
    encoder.eval()
    into_geometry = geometry.prepare()

    def encode(block: NDArray[np.floating]) -> NDArray[np.float32]:
        rows = into_geometry(block)
        return _run(encoder, unit_rows(rows.mean(axis=1)) if rows.ndim == 3 else rows)

    return encode


def encode_rows(encoder: nn.Module, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the unit features (n, d) of unit rows (n, d), in their order, without noise.

    Rows with several views, (n, v, d), are represented by their mean view.
    """
    if rows.ndim == 3:
        rows = unit_rows(rows.mean(axis=1))
    was_training = encoder.training
    encoder.eval()
    with torch.inference_mode():
        features = map_in_blocks(lambda block: _run(encoder, block), rows)
    encoder.train(was_training)
    return features


def _run(encoder: nn.Module, block: NDArray[np.float32]) -> NDArray[np.float32]:
    out: NDArray[np.float32] = encoder(torch.from_numpy(np.ascontiguousarray(block))).numpy()
    return out
