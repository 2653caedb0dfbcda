"""Put rows that come in pieces into one file, from which a fit reads what it needs.

Knows arrays and tables that can turn themselves into arrays: no labels, no estimator. pyarrow, pandas and
polars are recognised by what they offer, never imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["spool"]


def spool(
    chunks: Iterable[Any], path: str | os.PathLike[str], *, dtype: Any = np.float32
) -> NDArray[np.floating]:
    """Write rows that come in chunks to a ``.npy`` file, and return them as an array that lies there.

    For more rows than fit into memory: ``fit`` and ``predict`` read such an array in pieces. Only one chunk
    is in memory at a time.

    Parameters
    ----------
    chunks : iterable
        Arrays (rows, features), data frames, or record batches and tables of pyarrow, all with the same
        columns; ``pyarrow.parquet.ParquetFile(file).iter_batches()`` is one.
    path : path
        The file to write; one that is there is overwritten.
    dtype : dtype, default=float32
        Single precision, as embedding models give them; float64 keeps large offsets.

    Returns
    -------
    memmap of shape (n_rows, n_features)
        Read-only.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> from pnp_gcd import spool
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = spool((np.full((2, 3), i) for i in range(4)), os.path.join(folder, "rows.npy"))
    ...     print(rows.shape, rows.dtype, rows[-1].tolist())
    ...     del rows
    (8, 3) float32 [3.0, 3.0, 3.0]

    """
    dtype, n_rows, width = np.dtype(dtype), 0, -1
    with open(path, "wb") as file:
        file.write(_header(dtype, 0, 0))
        for number, chunk in enumerate(chunks):
            rows = np.ascontiguousarray(_as_array(chunk), dtype=dtype)
            if rows.ndim != 2 or (width >= 0 and rows.shape[1] != width):
                wanted = "(rows, features)" if width < 0 else f"(rows, {width})"
                raise ValueError(f"Chunk {number} has shape {rows.shape}. Pass chunks of shape {wanted}.")
            width = rows.shape[1]
            n_rows += len(rows)
            rows.tofile(file)
        if not n_rows:
            raise ValueError("chunks held no rows. Pass at least one; an iterator is empty once it was read.")
        file.seek(0)
        file.write(_header(dtype, n_rows, width))
    out: NDArray[np.floating] = np.load(path, mmap_mode="r")
    return out


def _as_array(chunk: Any) -> NDArray[Any]:
    """Return a chunk as an array; pyarrow's tables and batches column by column."""
    if hasattr(chunk, "columns") and hasattr(chunk, "schema") and not hasattr(chunk, "__array__"):
        return np.column_stack([np.asarray(column) for column in chunk.columns])
    return np.asarray(chunk)


def _header(dtype: np.dtype[Any], n_rows: int, width: int) -> bytes:
    """Return the head of a ``.npy`` file, always of one length."""
    fields = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': ({n_rows}, {width}), }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + fields.ljust(117).encode() + b"\n"
