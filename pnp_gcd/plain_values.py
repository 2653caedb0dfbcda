"""Python and NumPy values as JSON has them, and back with the very type they had.

A tuple stays a tuple, an int32 an int32, NaN a NaN: what JSON has no word for is a dict of one key that
begins with "$". Reading makes numbers, strings and arrays of them and nothing else. Knows values and
labels: no files, no estimator.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.labels import find_distinct

__all__ = [
    "MAX_DIGITS",
    "RowLabels",
    "from_plain",
    "pack_labels",
    "pack_rows",
    "to_plain",
    "unpack_labels",
    "unpack_rows",
]

# Of whole numbers, the sign counted: longer ones overflow where they meet floats.
MAX_DIGITS = 300
_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[0-9]{1,7}|O)")
# Arrays of strings take this many bytes at most, or as many times those of their file: a short file that says
# that its labels are long would else fill the memory.
_MAX_ROW_BYTES = 2**28
_MAX_GROWTH = 256


def to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it; a TypeError for what is no plain value."""
    if isinstance(value, np.generic):  # before float and str, of which some are subclasses
        return {"$numpy": [_name_dtype(value.dtype), to_plain(value.item())]}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if abs(value) >= 10 ** (MAX_DIGITS - 1):
            raise TypeError(f"a whole number of more than {MAX_DIGITS - 1} digits is no plain value")
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [to_plain(item) for item in value]}
    if isinstance(value, np.ndarray):
        return {"$array": pack_labels(value.ravel()) | {"shape": list(value.shape)}}
    if isinstance(value, os.PathLike) and isinstance(os.fspath(value), str):
        return {"$path": os.fspath(value)}
    if isinstance(value, dict) and all(isinstance(key, str) and key[:1] != "$" for key in value):
        return {key: to_plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} {value!r:.60} is no plain value")


def from_plain(plain: Any) -> Any:
    """Return the value that ``to_plain`` was given."""
    if isinstance(plain, list):
        return [from_plain(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    key = next(iter(plain), "")
    if key[:1] != "$":
        return {name: from_plain(item) for name, item in plain.items()}
    inner = plain[key]
    if len(plain) == 1:
        if key == "$float" and inner in ("nan", "inf", "-inf"):
            return float(inner)
        if key == "$tuple" and isinstance(inner, list):
            return tuple(from_plain(item) for item in inner)
        if key == "$path" and isinstance(inner, str):
            return Path(inner)
        if key == "$numpy" and isinstance(inner, list) and len(inner) == 2:
            return unpack_labels({"dtype": inner[0], "values": inner[1:]})[0]
        if key == "$array" and isinstance(inner, dict):
            return _unpack_array(inner)
    raise ModelFileError(f"{key}: {str(inner)[:60]} is no value that a saved model has.")


def _unpack_array(plain: dict[str, Any]) -> NDArray[Any]:
    flat, shape = unpack_labels(plain), plain.get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ModelFileError(f"shape {str(shape)[:60]} is none.")
    if math.prod(shape) != len(flat):
        raise ModelFileError(f"shape {shape} does not fit {len(flat)} values.")
    return flat.reshape(shape)


# --- labels ------------------------------------------------------------------------------------------------


def pack_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Return the dtype and the values of a one-dimensional array, as JSON can hold them."""
    dtype = _name_dtype(labels.dtype)
    return {"dtype": dtype, "values": [to_plain(item) for item in labels.tolist()]}


def unpack_labels(plain: Any) -> NDArray[Any]:
    """Return the array that ``pack_labels`` was given; a value that its dtype cannot hold is an error."""
    if not isinstance(plain, dict) or not isinstance(plain.get("values"), list):
        raise ModelFileError(f"{str(plain)[:60]} is no array of labels.")
    dtype, values = _read_dtype(plain.get("dtype")), plain["values"]
    if dtype.kind == "U":
        n_letters = sum(len(value) + 1 for value in values if isinstance(value, str))
        _check_bytes(len(values), dtype, _MAX_GROWTH * n_letters)
    items = [from_plain(value) for value in values]
    try:
        labels = np.empty(len(items), dtype=dtype)
        for place, item in enumerate(items):
            if isinstance(item, list | dict | tuple | np.ndarray):
                raise TypeError("a label is one value")
            labels[place] = item
        is_same = [to_plain(item) for item in labels.tolist()] == values
    except (TypeError, ValueError, OverflowError):
        is_same = False
    if not is_same:
        raise ModelFileError(f"labels {str(values)[:60]} are not all of dtype {dtype}.")
    return labels


class RowLabels(NamedTuple):
    """Labels of many rows: the distinct ones, and which of them each row has.

    Attributes
    ----------
    distinct : dict
        As of ``pack_labels``.
    codes : ndarray of shape (n_rows,), int32
    """

    distinct: dict[str, Any]
    codes: NDArray[np.int32]


def pack_rows(labels: NDArray[Any]) -> RowLabels:
    """Return the labels of rows in little space."""
    distinct, codes = find_distinct(labels)
    packed = RowLabels(pack_labels(distinct.astype(labels.dtype)), codes.astype(np.int32))
    unpack_rows(packed)  # what cannot be read is not written
    return packed


def unpack_rows(rows: RowLabels) -> NDArray[Any]:
    """Return the labels that ``pack_rows`` was given."""
    distinct, codes = unpack_labels(rows.distinct), rows.codes
    if codes.dtype != np.int32 or codes.ndim != 1:
        raise ModelFileError(
            f"codes of rows are {codes.dtype} of shape {codes.shape}, not a column of int32."
        )
    if len(codes) and not (codes.min() >= 0 and codes.max() < len(distinct)):
        raise ModelFileError(f"codes of rows go beyond the {len(distinct)} labels there are.")
    _check_bytes(len(codes), distinct.dtype, _MAX_GROWTH * codes.nbytes)
    return distinct[codes]


def _check_bytes(n_labels: int, dtype: np.dtype[Any], usual: int) -> None:
    if n_labels * dtype.itemsize > max(_MAX_ROW_BYTES, usual):
        raise ModelFileError(
            f"{n_labels} labels of dtype {dtype} would take {n_labels * dtype.itemsize} bytes. Shorten the "
            "names of classes, or pass labels as objects: y.astype(object)."
        )


def _name_dtype(dtype: np.dtype[Any]) -> str:
    if not _DTYPE.fullmatch(dtype.str):
        raise TypeError(f"dtype {dtype} cannot be saved: labels are booleans, integers, floats or strings")
    return dtype.str


def _read_dtype(text: Any) -> np.dtype[Any]:
    if not isinstance(text, str) or not _DTYPE.fullmatch(text):
        raise ModelFileError(f"dtype {str(text)[:60]!r} is none that a saved model has.")
    return np.dtype(text)
