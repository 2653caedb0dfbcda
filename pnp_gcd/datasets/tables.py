"""Data of your own: arrays, tables of embeddings or texts, folders of images.

Knows files, arrays and labels: no image is opened, no estimator known.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.folders import list_classes

__all__ = ["load_arrays", "load_csv", "load_image_folder"]

_ARRAYS: tuple[str, ...] = ("X", "y", "X_test", "y_test")
# What NumPy raises for a file that is damaged, or none of arrays.
UNREADABLE = (
    ValueError,
    OSError,
    EOFError,
    SyntaxError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)
_PADDING_LIMIT = 2**28  # bytes; beyond, texts are kept as objects: NumPy pads each to the longest


def load_arrays(path: str | os.PathLike[str]) -> DiscoveryDataset:
    """Load an ``.npz`` file of rows X and their classes y.

    Parameters
    ----------
    path : str or path
        Has the arrays ``X`` and ``y``, and may have ``X_test`` and ``y_test``. X: features of the shape
        (n_rows, n_features), views of them (n_rows, n_views, n_features), pixels (n_rows, height, width, 3)
        as uint8, or texts. Half precision is raised to single.

    Returns
    -------
    DiscoveryDataset
        Its name is the file's; which classes are known is drawn.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from pnp_gcd.datasets import load_arrays
    >>> path = Path(tempfile.mkdtemp()) / "points.npz"
    >>> np.savez(path, X=np.eye(6, dtype="float16"), y=["a", "a", "a", "b", "b", "b"])
    >>> points = load_arrays(path)
    >>> points.name, points.kind, points.X.dtype.name, points.classes.tolist()
    ('points', 'features', 'float32', ['a', 'b'])
    """
    path = Path(path)
    arrays = _read_npz(path)
    X, y = _read_float(arrays["X"]), arrays["y"]
    if ("X_test" in arrays) != ("y_test" in arrays):
        raise ValueError(f"{str(path)!r} has only one of X_test and y_test. Write both, or none.")
    X_test, y_test = _read_float(arrays.get("X_test", X[:0])), arrays.get("y_test", y[:0])
    for name, rows, labels in (("", X, y), ("_test", X_test, y_test)):
        if labels.ndim != 1 or rows.ndim == 0 or len(rows) != len(labels):
            raise ValueError(
                f"{str(path)!r} has X{name} of the shape {rows.shape} and y{name} of {labels.shape}. Write "
                "one label for each row, in one dimension."
            )
    if X.shape[1:] != X_test.shape[1:]:
        raise ValueError(
            f"{str(path)!r} has rows of the shape {X.shape[1:]} in X and of {X_test.shape[1:]} in X_test. "
            "Write both alike."
        )
    return DiscoveryDataset(
        path.stem, _name_kind(X, path), X, y, X_test, y_test, classes=np.union1d(y, y_test)
    )


def load_csv(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    text: str | None = None,
    ignore: Sequence[str] = (),
) -> DiscoveryDataset:
    r"""Load a table of embeddings or texts with a column of classes.

    Parameters
    ----------
    path : str or path
        ``.csv``, separated by commas, or by semicolons if the first line has no comma, or ``.tsv``, by
        tabs; UTF-8, names of columns in the first line. Decimals have a point.
    label : str, default="label"
        Column of the true classes. They are read as text.
    text : str or None, default=None
        Column of texts, which are then the rows. None: the rows are all other columns of numbers.
    ignore : sequence of str, default=()
        Columns to leave out, such as numbers of rows. Columns without any number are left out anyway.

    Returns
    -------
    DiscoveryDataset
        Its name is the file's; which classes are known is drawn.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pnp_gcd.datasets import load_csv
    >>> path = Path(tempfile.mkdtemp()) / "letters.csv"
    >>> _ = path.write_text("who,x,y,label\nann,0.5,1,greeting\nbob,2,3e-1,question\n")
    >>> letters = load_csv(path)
    >>> letters.X.tolist(), letters.y.tolist()
    ([[0.5, 1.0], [2.0, 0.3]], ['greeting', 'question'])
    """
    path = Path(path)
    table = read_table(path)
    y = np.array(table.column(label, "label"))
    if not (y != "").all():
        line = table.lines[int(np.flatnonzero(y == "")[0])]
        raise ValueError(
            f"{str(path)!r} has no {label!r} in line {line}. Every row needs its true class here; "
            "rows without one go to fit directly."
        )
    X = (
        make_text_array(table.column(text, "text"))
        if text is not None
        else _read_numbers(table, label, ignore)
    )
    kind: Literal["texts", "features"] = "features" if text is None else "texts"
    return DiscoveryDataset(path.stem, kind, X, y, X[:0], y[:0], classes=np.unique(y))


def load_image_folder(
    root: str | os.PathLike[str], *, test: str | os.PathLike[str] | None = None
) -> DiscoveryDataset:
    """Load paths of images from a folder with a sub-folder for each class.

    Parameters
    ----------
    root : str or path
        Sub-folders are classes; their own sub-folders are searched too. Hidden files and folders, and
        files that are no images by their ending, are passed over.
    test : str, path or None, default=None
        Another such folder, of images that no fit should see.

    Returns
    -------
    DiscoveryDataset
        Sorted paths. Its name is the folder's; which classes are known is drawn.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pnp_gcd.datasets import load_image_folder
    >>> root = Path(tempfile.mkdtemp()) / "pets"
    >>> for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.png"):
    ...     (root / name).parent.mkdir(parents=True, exist_ok=True)
    ...     (root / name).touch()
    >>> pets = load_image_folder(root)
    >>> pets.name, pets.kind, pets.y.tolist()
    ('pets', 'images', ['cat', 'cat', 'dog'])
    """
    X, y = list_classes(root)
    X_test, y_test = list_classes(test, "test") if test is not None else (X[:0], y[:0])
    name = Path(root).resolve().name
    return DiscoveryDataset(name, "images", X, y, X_test, y_test, classes=np.union1d(y, y_test))


class Table(NamedTuple):
    """Cells of a file as text, row by row, with the line each row ends at."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str, parameter: str) -> list[str]:
        """Return the cells of a column."""
        if name not in self.names:
            raise ValueError(
                f"{parameter}={name!r} is no column of {str(self.path)!r}, but {self.names[:8]}. "
                f"Name one of these: {parameter}=."
            )
        position = self.names.index(name)
        return [row[position] for row in self.rows]


def read_table(path: Path, *, has_quotes: bool = True) -> Table:
    """Read a CSV or TSV file with names of columns in its first line; without quotes a line is a row."""
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise ValueError(f"{str(path)!r} must end in .csv or .tsv. Rename it, or use load_arrays for .npz.")
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} is no file. Pass a .csv or .tsv with names in its first line."
        )
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        return parse_table(file, path, separator=separator, has_quotes=has_quotes)


def parse_table(file: TextIO, path: Path, *, separator: str = ",", has_quotes: bool = True) -> Table:
    """Read a table from an open file; messages name it by ``path``.

    Semicolons separate in place of commas if the first line has no other.
    """
    rows: list[list[str]] = []
    lines: list[int] = []
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if has_quotes else csv.QUOTE_NONE
    try:
        first = next(file, "")
        if separator == "," and _has_semicolons(first):
            separator = ";"
        reader = csv.reader(itertools.chain([first], file), delimiter=separator, strict=True, quoting=quoting)
        names = next(reader, [])
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} is no UTF-8: {error.reason} {error.object[error.start]:#x}. Save it so; in a "
            'spreadsheet program that is called "CSV UTF-8".'
        ) from error
    except csv.Error as error:
        raise ValueError(
            f"{str(path)!r} cannot be read near line {reader.line_num + 1}: {error}. Write quotes around "
            "cells that hold separators, quotes or line breaks."
        ) from error
    if not names and not rows:
        raise ValueError(
            f"{str(path)!r} is empty. Write names of columns into its first line, and rows below."
        )
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise ValueError(
                f"{str(path)!r} has {len(row)} cells in line {line}, but {len(names)} names of columns in "
                "its first line. Mend the line, or quote cells that hold separators."
            )
    if not rows or len(set(names)) < len(names):
        raise ValueError(
            f"{str(path)!r} has {len(rows)} rows under the columns {names[:8]}. It needs at least one row, "
            "and names that differ."
        )
    return Table(path, names, rows, lines)


def is_decimal_comma(cell: str) -> bool:
    """Tell whether a cell is a number but for its comma, as some spreadsheet programs write."""
    return re.fullmatch(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*", cell) is not None


def _has_semicolons(line: str) -> bool:
    """Tell whether semicolons separate the names of a first line: quotes aside, it has no comma."""
    bare = re.sub(r'"[^"]*"', "", line)
    return ";" in bare and "," not in bare


def make_text_array(texts: list[str]) -> NDArray[Any]:
    """Return texts as an array of str, or of objects where padding would fill the memory."""
    longest = max(map(len, texts), default=0)
    return np.array(texts, dtype=object if 4 * longest * len(texts) > _PADDING_LIMIT else np.str_)


def _read_numbers(table: Table, label: str, ignore: Sequence[str]) -> NDArray[np.float64]:
    if isinstance(ignore, str):
        ignore = [ignore]
    for name in ignore:
        table.column(name, "ignore")
    columns = []
    for name in table.names:
        if name == label or name in ignore:
            continue
        column = np.array([_read_number(cell) for cell in table.column(name, "label")])
        bad = np.flatnonzero(np.isnan(column))
        cell = table.column(name, "label")[bad[0]] if len(bad) else ""
        if len(bad) == len(column) and not is_decimal_comma(cell):
            continue
        if len(bad):
            advice = "Write decimals with a point" if is_decimal_comma(cell) else "Mend it"
            raise ValueError(
                f"{str(table.path)!r} has {cell!r} in line {table.lines[bad[0]]} of column {name!r}, no "
                f"finite number. {advice}, or leave the column out: ignore=[{name!r}]."
            )
        columns.append(column)
    if not columns:
        raise ValueError(
            f"{str(table.path)!r} has no column of numbers beside {label!r}, but {table.names[:8]}. Write "
            "embeddings into columns, or name the column of texts: text=."
        )
    return np.column_stack(columns)


def _read_number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        return np.nan
    return number if np.isfinite(number) else np.nan


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} is no file. Pass an .npz file with the arrays X and y.")
    try:
        arrays = np.load(path, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array")
        with arrays:
            names = arrays.files
            found = {name: arrays[name] for name in _ARRAYS if name in names}
    except UNREADABLE as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as .npz: {error}. Write it with np.savez(path, X=X, y=y), without "
            "arrays of objects."
        ) from error
    missing = [name for name in ("X", "y") if name not in found]
    if missing:
        raise ValueError(
            f"{str(path)!r} has no array {' and '.join(missing)}, but {names[:8]}. Write it with "
            "np.savez(path, X=X, y=y)."
        )
    return found


def _read_float(X: NDArray[Any]) -> NDArray[Any]:
    return X.astype(np.float32) if X.dtype == np.float16 else X  # half precision is for disks


def _name_kind(X: NDArray[Any], path: Path) -> Literal["images", "texts", "features"]:
    if X.ndim == 1 and X.dtype.kind == "U":
        return "texts"
    if X.ndim == 4 and X.dtype == np.uint8:
        return "images"
    if X.ndim in (2, 3) and X.dtype.kind in "fiu":
        return "features"
    raise ValueError(
        f"{str(path)!r} has X of the shape {X.shape} and type {X.dtype}. Write features "
        "(n_rows, n_features), pixels (n_rows, height, width, 3) as uint8, or texts (n_rows,)."
    )
