"""What a row is to a person: a text, a picture, a row of a table, or its number.

Knows containers: no model, no page. pandas and polars are recognised, never imported.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.images import Images, is_picture, read_images

__all__ = ["Items", "read_items"]

Kind = Literal["ids", "texts", "images", "table"]

_PICTURE_FILES = {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".jfif"}
# Strings that are looked at to tell paths of pictures from texts.
_N_LOOKED_AT = 50


@dataclass(frozen=True)
class Items:
    """Rows as a person knows them.

    Attributes
    ----------
    kind : {"ids", "texts", "images", "table"}
    texts : list of str
        What each row is called; empty for a table.
    images : Images or None
    columns : dict of str to ndarray
        Of a table: numbers as floats with NaN for gaps, anything else as objects with None for gaps.
    """

    kind: Kind
    texts: list[str]
    images: Images | None = None
    columns: tuple[tuple[str, NDArray[Any]], ...] = ()

    def cells(self, row: int, n_columns: int) -> list[str]:
        """Return the first cells of one row of a table."""
        return [_show(values[row]) for _, values in self.columns[:n_columns]]


def read_items(items: Any, n_rows: int) -> Items:
    """Recognise items in whatever container they come, one for each of ``n_rows`` rows.

    Parameters
    ----------
    items : None, sequence of texts, images as in ``pnp_gcd.images.read_images``, or data frame
        None numbers the rows. Strings that all end like names of picture files are paths. Numbers are
        ids. An array of shape (n_rows, n_columns) is a table.
    n_rows : int

    Returns
    -------
    Items

    Examples
    --------
    >>> from pnp_gcd.report.items import read_items
    >>> read_items(["a text", None], 2).texts
    ['a text', '(missing)']
    >>> read_items(["a/1.png", "a/2.png"], 2).kind
    'images'
    """
    if items is None:
        return Items("ids", [f"row {row}" for row in range(n_rows)])
    if isinstance(items, str | bytes | dict | set | frozenset) or is_picture(items):
        raise TypeError(
            f"items is a {type(items).__name__}, not one item for each row of X. Pass a list of texts, paths "
            "or pictures, an array of images, or a data frame."
        )
    if not hasattr(items, "__len__") or not (hasattr(items, "__getitem__") or hasattr(items, "to_numpy")):
        items = _listed(items)
    if len(items) != n_rows:
        raise ValueError(
            f"items has {len(items)} entries, but X has {n_rows} rows. Pass one item for each row, in order."
        )
    if hasattr(items, "columns") and hasattr(items, "to_numpy"):
        return Items("table", [], columns=_read_frame(items))
    if len(getattr(items, "shape", ())) == 2 and items.shape[1] > 1:
        values = np.asarray(items)
        names = [f"column {place}" for place in range(values.shape[1])]
        return Items("table", [], columns=tuple(zip(names, map(_clean, values.T), strict=True)))
    if len(getattr(items, "shape", ())) > 2 or hasattr(items, "detach"):
        return _read_pictures(items)
    entries = _to_list(items)
    return _read_pictures(entries) if _are_pictures(entries) else _read_texts(entries)


def _listed(items: Any) -> list[Any]:
    try:
        return list(items)
    except TypeError as error:
        raise TypeError(
            f"items is a {type(items).__name__}, not one item for each row of X. Pass a list."
        ) from error


def _to_list(items: Any) -> Any:
    if isinstance(items, np.ndarray):
        return items.ravel().tolist()
    if hasattr(items, "to_numpy"):
        return np.asarray(items.to_numpy(), dtype=object).ravel().tolist()
    return items  # a list, or a Dataset, which makes its items when asked


def _are_pictures(entries: Any) -> bool:
    """Tell pictures and paths of pictures from texts by the first that are there."""
    looked_at: list[Any] = []
    for place in range(min(len(entries), _N_LOOKED_AT)):
        entry = entries[place]
        entry = entry[0] if isinstance(entry, tuple) and entry else entry
        if not _is_gap(entry):
            looked_at.append(entry)
    if not looked_at:
        return False
    return all(_is_like_picture(entry) for entry in looked_at)


def _is_like_picture(entry: Any) -> bool:
    if isinstance(entry, str):
        return len(entry) < 4096 and "\n" not in entry and PurePath(entry).suffix.lower() in _PICTURE_FILES
    return isinstance(entry, os.PathLike) or is_picture(entry) or len(getattr(entry, "shape", ())) >= 2


def _read_pictures(items: Any) -> Items:
    """Return pictures with short names: a page that is passed on need not tell where files lay."""
    images = read_images(items, "items")
    # A Dataset would make every picture if it were asked for its items.
    entries = items if isinstance(items, list | tuple) else [None] * len(images)
    paths = [
        PurePath(os.fspath(entry)) if isinstance(entry, str | os.PathLike) else None for entry in entries
    ]
    folders = {path.parent for path in paths if path is not None}
    common = _common_folder(folders)
    texts = [
        f"row {row}" if path is None else path.relative_to(common).as_posix() if common else path.name
        for row, path in enumerate(paths)
    ]
    return Items("images", texts, images)


def _common_folder(folders: set[PurePath]) -> PurePath | None:
    try:
        return PurePath(os.path.commonpath([str(folder) for folder in folders])) if folders else None
    except ValueError:  # absolute beside relative, or two drives
        return None


def _read_texts(entries: Sequence[Any]) -> Items:
    kind: Kind = "ids" if all(_is_gap(entry) or _is_number(entry) for entry in entries) else "texts"
    return Items(kind, [_show(entry) for entry in entries])


def _read_frame(frame: Any) -> tuple[tuple[str, NDArray[Any]], ...]:
    names = [str(name) for name in frame.columns]
    if hasattr(frame, "iloc"):
        series = [frame.iloc[:, place] for place in range(len(names))]  # names may occur twice
    else:
        series = [frame[name] for name in frame.columns]
    return tuple((name, _clean(_column(one))) for name, one in zip(names, series, strict=True))


def _column(series: Any) -> NDArray[Any]:
    kind = getattr(getattr(series, "dtype", None), "kind", "")
    if kind in "iuf" and kind and hasattr(series, "iloc"):
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())


def _clean(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as floats, and anything else as objects of which gaps are None."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind in "mM":
        is_gap = np.isnat(values)
        values = values.astype(str).astype(object)
        values[is_gap] = None
    entries = values.tolist()
    if values.dtype.kind == "O" and all(_is_gap(entry) or _is_number(entry) for entry in entries):
        return np.array([np.nan if _is_gap(entry) else float(entry) for entry in entries], dtype=np.float64)
    out = np.empty(len(entries), dtype=object)
    out[:] = [None if _is_gap(entry) else _show(entry) for entry in entries]
    return out


def _is_number(entry: Any) -> bool:
    return isinstance(entry, numbers.Real) and not isinstance(entry, bool | np.bool_)


def _is_gap(entry: Any) -> bool:
    if isinstance(entry, float | np.floating):
        return math.isnan(entry)
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _show(entry: Any) -> str:
    """Return one entry as text, numbers short."""
    if _is_gap(entry):
        return "(missing)"
    if isinstance(entry, np.generic):
        entry = entry.item()
    if isinstance(entry, bytes):
        return entry.decode("utf-8", "replace")
    if isinstance(entry, float):  # NumPy's double is one too
        return f"{entry:.15g}" if float(entry).is_integer() and abs(entry) < 1e15 else f"{entry:.4g}"
    return str(entry)
