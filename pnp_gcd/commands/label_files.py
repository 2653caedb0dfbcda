"""Read labels of items from a file, or from the folders that images are in.

Knows ids and labels: no rows, no model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.commands.cells import restore_cell
from pnp_gcd.commands.tables import DataTable, open_table
from pnp_gcd.datasets.folders import read_image_folder

__all__ = ["is_integer", "read_folder_labels", "read_label_column", "read_labels", "type_labels", "type_like"]

_N_LISTED = 3
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NO_LABEL = ("", "-1")


def read_labels(
    path: Path,
    ids: Sequence[str],
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    likely_id_column: str | None = None,
    are_files: bool = False,
    option: str = "--labels",
) -> list[str | None]:
    """Read the labels of a file, in the order of the items.

    Parameters
    ----------
    path : Path
        Table with a column of ids and one of labels. Empty labels, and -1, mean none.
    ids : sequence of str
        Of the items. Those that the file does not name have no label.
    id_column, label_column : str or None
        Names of the columns that were asked for; None takes "id" and "label".
    likely_id_column : str or None
        Column of ids that is taken before "id", if it is there and none was asked for.
    are_files : bool, default=False
        Whether ids are paths, for which the file's name will do where only one has it.
    option : str, default="--labels"
        What messages call the file.

    Returns
    -------
    list of str or None
    """
    table = open_table(path)
    id_column = _find_column(table, "--id-column", id_column, (likely_id_column, "id"))
    label_column = _find_column(table, "--label-column", label_column, ("label",))
    places = _find_places(ids, are_files)
    labels: list[str | None] = [None] * len(ids)
    said: dict[int, int] = {}
    lost = []
    given = [_read_label(cell) for cell in table.texts(label_column)]
    for row, name in enumerate(map(restore_cell, table.texts(id_column))):
        position = places.get(name, places.get(_as_file(name)) if are_files else None)
        if position is None:
            lost.append(f"{name!r} ({table.line(row)})")
        elif position in said and labels[position] != given[row]:
            raise ValueError(
                f"{option} {str(path)!r} has two labels for {name!r}: {labels[position]!r} in "
                f"{table.line(said[position])}, {given[row]!r} in {table.line(row)}. Keep one of them."
            )
        else:
            labels[position], said[position] = given[row], row
    if lost:
        some = ", ".join(lost[:_N_LISTED]) + (", …" if len(lost) > _N_LISTED else "")
        raise ValueError(
            f"{option} {str(path)!r} has {len(lost)} ids that no item has: {some}. Items are called "
            f"{', '.join(map(repr, ids[:_N_LISTED]))}, …. Mend the ids, or name their column: --id-column."
        )
    return labels


def read_label_column(path: Path, label_column: str) -> list[str | None]:
    """Read the labels that stand in the table of the items itself."""
    table = open_table(path)
    table.check(label_column, "--label-column")
    return [_read_label(cell) for cell in table.texts(label_column)]


def read_folder_labels(root: Path, paths: Sequence[str]) -> list[str | None]:
    """Return the name of each image's sub-folder; below ``unlabelled``, ``-1`` and none there is no label."""
    folder = read_image_folder(root)
    labels = dict(zip(folder.X_labelled.tolist(), folder.y_labelled.tolist(), strict=True))
    return [None if (label := labels.get(path)) in _NO_LABEL else label for path in paths]


def type_labels(labels: Sequence[str]) -> NDArray[Any]:
    """Return labels as integers if all are, else as text."""
    if all(map(is_integer, labels)):
        return np.array([int(label) for label in labels], dtype=np.int64)
    return np.array(labels, dtype=object).astype(str)


def is_integer(text: str) -> bool:
    """Tell whether a label is written as integers are; "007" and "-0" are names."""
    return _INTEGER.fullmatch(text) is not None


def type_like(classes: NDArray[Any], labels: Sequence[str | None]) -> list[Any]:
    """Return labels with gaps as integers, if classes are and all labels are, else as text."""
    given = [label for label in labels if label is not None]
    as_integers = classes.dtype.kind in "iu" and all(map(is_integer, given))
    return [None if label is None else int(label) if as_integers else label for label in labels]


def _find_column(table: DataTable, option: str, asked: str | None, usual: Sequence[str | None]) -> str:
    """Return the column that was asked for, else the first usual one that is there."""
    if asked is not None:
        table.check(asked, option)
        return asked
    found = next((name for name in usual if name in table.names), None)
    if found is None:
        table.check(str(usual[-1]), advice=f"Name the column: {option}.")
    return str(found)


def _read_label(cell: str) -> str | None:
    label = restore_cell(cell.strip())
    return None if label in _NO_LABEL else label


def _find_places(ids: Sequence[str], are_files: bool) -> dict[str, int]:
    """Return where each id is; of files also by their names, where only one has it."""
    places = {}
    if are_files:
        having = defaultdict(list)
        for position, name in enumerate(ids):
            having[name.rpartition("/")[2]].append(position)
        places = {name: positions[0] for name, positions in having.items() if len(positions) == 1}
    return places | {name: position for position, name in enumerate(ids)}


def _as_file(name: str) -> str:
    """Return a path as ids write it, whatever system it comes from."""
    return name.replace("\\", "/").removeprefix("./")
