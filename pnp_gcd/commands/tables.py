"""Read tables: columns of text and of numbers, from CSV, TSV or Parquet.

Knows files and columns: no items, no classes. pyarrow is imported when a Parquet file is read.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets.tables import Table, is_decimal_comma, parse_table, read_table

__all__ = ["DataTable", "open_table"]

SUFFIXES = (".csv", ".tsv", ".parquet")
_LEAVE_OUT = "; discover leaves a column out if --features names the others."


class DataTable(ABC):
    """Columns by name; what messages call the table and its rows is its own affair."""

    path: Path
    names: list[str]
    n_rows: int

    @abstractmethod
    def texts(self, name: str) -> list[str]:
        """Return a column as text; empty where there is nothing."""

    @abstractmethod
    def numbers(self, names: Sequence[str]) -> NDArray[np.floating]:
        """Return columns of finite numbers, side by side; a list in each cell is columns by itself."""

    @abstractmethod
    def numeric_names(self, leave_out: Sequence[str | None]) -> list[str]:
        """Return the names of columns of numbers, without those to leave out."""

    @abstractmethod
    def line(self, row: int) -> str:
        """Return what a message calls a row."""

    def check(self, name: str, option: str | None = None, *, advice: str | None = None) -> None:
        """Refuse the name of a column that is not there; the option is the one that it was passed by."""
        if name in self.names:
            return
        some = ", ".join(map(repr, self.names[:8])) + (", …" if len(self.names) > 8 else "")
        path = repr(str(self.path))
        if option is not None:
            said = f"{option} {name!r} is no column of {path}, which has {some}."
        else:
            said = f"{path} has no column {name!r}, but {some}."
        raise ValueError(f"{said} {advice or f'Name one of them: {option}.'}")


def open_table(path: Path) -> DataTable:
    """Read a table.

    Parameters
    ----------
    path : Path
        Ends in .csv, .tsv or .parquet; "-" reads CSV from standard input.

    Returns
    -------
    DataTable
    """
    if str(path) == "-":
        sys.stdin.reconfigure(encoding="utf-8-sig", newline="")  # type: ignore[union-attr]
        return _TextTable(parse_table(sys.stdin, Path("standard input")))
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise FileNotFoundError(f"{str(path)!r} is {what}. Pass a table that ends in {', '.join(SUFFIXES)}.")
    if path.suffix.lower() == ".parquet":
        return _ParquetTable(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{str(path)!r} is no table by its ending. Pass one in {', '.join(SUFFIXES)}.")
    return _TextTable(read_table(path))


class _TextTable(DataTable):
    """A file of text, all of whose cells are text."""

    def __init__(self, table: Table) -> None:
        self.path, self.names, self.n_rows = table.path, table.names, len(table.rows)
        self._table = table

    def texts(self, name: str) -> list[str]:
        position = self.names.index(name)
        return [row[position] for row in self._table.rows]

    def numbers(self, names: Sequence[str]) -> NDArray[np.floating]:
        return np.column_stack([self._read(name) for name in names])

    def numeric_names(self, leave_out: Sequence[str | None]) -> list[str]:
        names = [name for name in self.names if name not in leave_out]
        return [name for name in names if _are_meant_as_numbers(self.texts(name))]

    def line(self, row: int) -> str:
        return f"line {self._table.lines[row]}"

    def _read(self, name: str) -> NDArray[np.float64]:
        cells = self.texts(name)
        try:
            column = np.array([float(cell) for cell in cells])
            bad = np.flatnonzero(~np.isfinite(column))
        except ValueError:
            bad = np.array([row for row, cell in enumerate(cells) if not _is_number(cell)])
        if len(bad):
            cell = cells[bad[0]]
            advice = "Write decimals with a point" if is_decimal_comma(cell) else "Mend it"
            raise ValueError(
                f"{str(self.path)!r} has {cell!r} in {self.line(bad[0])} of column {name!r}, no finite "
                f"number. {advice}{_LEAVE_OUT}"
            )
        return column


class _ParquetTable(DataTable):
    """A Parquet file, whose columns have types."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise ImportError(
                f"{str(path)!r} is Parquet, which needs pyarrow ({error}). Install it: "
                'pip install "pnp-gcd[parquet]"; or save the table as .csv.'
            ) from error
        try:
            self._table = pyarrow.parquet.read_table(path)
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"{str(path)!r} cannot be read as Parquet: {error}. Write it again.") from error
        self.path, self.names, self.n_rows = path, self._table.column_names, self._table.num_rows
        if not self.n_rows or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"{str(path)!r} has {self.n_rows} rows under the columns {self.names[:8]}. It needs at least "
                "one row, and names that differ."
            )

    def texts(self, name: str) -> list[str]:
        return ["" if value is None else str(value) for value in self._table.column(name).to_pylist()]

    def numbers(self, names: Sequence[str]) -> NDArray[np.floating]:
        columns = [self._read(name) for name in names]
        return np.concatenate(columns, axis=1)

    def numeric_names(self, leave_out: Sequence[str | None]) -> list[str]:
        fields = [field for field in self._table.schema if field.name not in leave_out]
        return [field.name for field in fields if _holds_numbers(field.type)]

    def line(self, row: int) -> str:
        return f"row {row}"

    def _read(self, name: str) -> NDArray[np.floating]:
        values = self._table.column(name).to_pylist()
        try:
            column = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{str(self.path)!r} has no numbers, or lists of different lengths, in column {name!r}: "
                f"{error}. Name columns of numbers: --features."
            ) from error
        column = column.reshape(len(values), -1)
        bad = np.flatnonzero(~np.isfinite(column).all(axis=1))
        if len(bad):
            raise ValueError(
                f"{str(self.path)!r} has no finite number in {self.line(bad[0])} of column {name!r}. Mend "
                f"it{_LEAVE_OUT}"
            )
        return column


def _are_meant_as_numbers(cells: list[str]) -> bool:
    """Tell whether a column has a number; decimal commas alone are meant so, and are refused later."""
    return any(map(_is_number, cells)) or all(map(is_decimal_comma, cells))


def _is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False


def _holds_numbers(kind: Any) -> bool:
    import pyarrow.types as types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))
