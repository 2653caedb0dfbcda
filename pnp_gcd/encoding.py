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

from pnp_gcd.geometry import unit_rows

__all__ = ["encode_rows", "map_in_blocks"]

_Number = TypeVar("_Number", bound=np.floating)

# Rows per pass. Matrix products may round differently at other shapes; one shape rounds alike.
_BLOCK_ROWS = 512


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
