"""Read pickles of lists, dicts, text, numbers and plain arrays, and execute nothing of them.

Knows files only. A pickle can name any function to be called; here it can name only those that NumPy's arrays
and numbers need, and even these are stand-ins that keep what they are given.
"""

from __future__ import annotations

import io
import pickle  # nosec B403 - of it only a reader that refuses what could execute
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_pickle"]

_PLAIN = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8", "b1"}


class _Type:
    """Stands for ``numpy.dtype``."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        self.order = state[1]

    def build(self) -> np.dtype[Any]:
        if self.name not in _PLAIN or self.order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"an array of the type {self.name!r}")
        return np.dtype(self.name).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands for ``numpy.ndarray``."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self) -> np.ndarray[Any, Any]:
        _, shape, kind, is_fortran, data = self.state
        content = data.encode("latin1") if isinstance(data, str) else data
        return np.frombuffer(content, dtype=kind.build()).reshape(shape, order="F" if is_fortran else "C")


class _Number:
    """Stands for a NumPy number."""

    def __init__(self, kind: _Type, data: Any) -> None:
        self.kind, self.data = kind, data

    def build(self) -> Any:
        content = self.data.encode("latin1") if isinstance(self.data, str) else self.data
        return np.frombuffer(content, dtype=self.kind.build(), count=1)[0].item()


class _Buffer:
    """Stands for ``numpy._core.numeric._frombuffer``, by which the newest protocol writes arrays."""

    def __init__(self, content: Any, kind: _Type, shape: Any, order: Any) -> None:
        self.content, self.kind, self.shape, self.order = content, kind, shape, order

    def build(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.content, dtype=self.kind.build()).reshape(self.shape, order=self.order)


def _encode(text: str, encoding: str) -> bytes:
    """Stand for ``_codecs.encode``, by which old protocols write bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):  # until and from NumPy 2
    _STAND_INS[f"{_core}.multiarray", "_reconstruct"] = _Array
    _STAND_INS[f"{_core}.multiarray", "scalar"] = _Number
    _STAND_INS[f"{_core}.numeric", "_frombuffer"] = _Buffer


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _STAND_INS[module, name]


def read_pickle(path: Path) -> Any:
    """Read a pickle of plain data; whatever else it names is refused, and nothing is executed."""
    try:
        return _build(_Reader(io.BytesIO(path.read_bytes()), encoding="latin1").load())
    except FileNotFoundError:
        raise
    except Exception as error:  # a broken pickle can raise nearly anything
        raise ValueError(
            f"{str(path)!r} is no pickle of plain data: {error}. It may be damaged or harmful; nothing of it "
            "was executed. Get the official file."
        ) from error


def _build(content: Any) -> Any:
    if isinstance(content, (_Array, _Buffer, _Number)):
        return content.build()
    if isinstance(content, dict):
        return {_build(key): _build(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_build(item) for item in content]
    if content is None or isinstance(content, (bool, int, float, str, bytes)):
        return content
    raise pickle.UnpicklingError(f"it holds a {type(content).__name__}")
