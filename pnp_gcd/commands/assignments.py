"""What a model says of items, as rows of a table.

Knows a fitted model and files of text: no images, no embedders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.commands.cells import restore_cell, to_csv
from pnp_gcd.datasets.tables import read_table

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.fitted import Inspection

__all__ = ["COLUMNS", "Assignments", "Given", "assign", "read_given", "rewrite_classes"]

COLUMNS = ("id", "class", "status", "label", "probability", "novelty", "typicality")


@dataclass(frozen=True)
class Assignments:
    """The class of each item, and how sure that is.

    Parameters
    ----------
    ids : list of str
    classes : ndarray of shape (n_items,), object
        None for items that were turned away, or whose image could not be read.
    is_known : ndarray of shape (n_items,), bool
    labels : list of str or None, or None
        Labels that were given; None if labels do not matter.
    probability, novelty, typicality : ndarray of shape (n_items,)
    """

    ids: list[str]
    classes: NDArray[Any]
    is_known: NDArray[np.bool_]
    labels: Sequence[str | None] | None
    probability: NDArray[np.float64]
    novelty: NDArray[np.float64]
    typicality: NDArray[np.float64]

    def to_csv(self) -> str:
        """Return the text of a CSV."""
        names = [name for name in COLUMNS if name != "label" or self.labels is not None]
        return to_csv(names, self._cells())

    def to_json(self) -> str:
        """Return a list of objects, one for each item."""
        records = []
        for row, name in enumerate(self.ids):
            found = self.classes[row]
            record = {"id": name, "class": found, "status": self._status(row)}
            if self.labels is not None:
                record["label"] = self.labels[row]
            for measure in ("probability", "novelty", "typicality"):
                value = float(getattr(self, measure)[row])
                record[measure] = None if np.isnan(value) else round(value, 6)
            records.append(record)
        return json.dumps(records, indent=1, ensure_ascii=False)

    def _cells(self) -> Iterator[list[str]]:
        for row, name in enumerate(self.ids):
            found = self.classes[row]
            cells = [name, "" if found is None else str(found), self._status(row) or ""]
            cells += [] if self.labels is None else [self.labels[row] or ""]
            yield cells + [
                _decimal(measure[row]) for measure in (self.probability, self.novelty, self.typicality)
            ]

    def _status(self, row: int) -> str | None:
        if self.classes[row] is None:
            return None
        return "known" if self.is_known[row] else "novel"


def assign(
    model: PNPDiscoverer,
    rows: Any,
    ids: list[str],
    *,
    seen: Inspection | None = None,
    labels: Sequence[str | None] | None = None,
    reject_below: float | None = None,
) -> Assignments:
    """Ask a model about items, which are encoded once.

    Parameters
    ----------
    model : PNPDiscoverer
    rows : array
        As for ``predict``.
    ids : list of str
    seen : Inspection or None
        What ``model.inspect(rows)`` has said already.
    labels : sequence of str or None, or None
        Labels that were given, which are then the classes of their items.
    reject_below : float or None
        Items less typical than this have no class.

    Returns
    -------
    Assignments
    """
    seen = model.inspect(rows) if seen is None else seen
    is_read = ~np.isnan(seen.typicality)
    known = set(model.known_classes_.tolist())
    is_novel = np.array([value not in known for value in model.classes_.tolist()])
    best = np.where(is_read, np.nan_to_num(seen.probabilities).argmax(axis=1), -1)
    if labels is not None:
        place = {str(value): index for index, value in enumerate(model.classes_.tolist())}
        given = np.array([-1 if label is None else place[label] for label in labels])
        best = np.where(given >= 0, given, best)
    if reject_below is not None:
        best = np.where(seen.typicality < reject_below, -1, best)
    names = np.array([*model.classes_.tolist(), None], dtype=object)
    novelty = seen.probabilities[:, is_novel].sum(axis=1)
    if not is_novel.any() or is_novel.all():
        novelty = model.novelty_score(rows)
    chosen = np.take_along_axis(seen.probabilities, np.maximum(best, 0)[:, None], axis=1)[:, 0]
    return Assignments(
        ids=ids,
        classes=names[best],
        is_known=~np.append(is_novel, True)[best],
        labels=labels,
        probability=np.where(best >= 0, chosen, np.nan),
        novelty=novelty,
        typicality=seen.typicality,
    )


def rewrite_classes(
    path: Path, rename: Callable[[str], str], is_known: Callable[[str], bool]
) -> list[list[str]]:
    """Return the rows of an assignments file with other names of classes; other columns stay.

    But if a class has become known, the novelty of all rows is another, and is left empty.

    Parameters
    ----------
    path : Path
    rename : callable
        From the name of a class to its new name.
    is_known : callable
        Whether a class, by its new name, is known.

    Returns
    -------
    list of list of str
        In the order of ``COLUMNS``.
    """
    rows, is_novelty_true = [], True
    for name, found, before, label, *measures in _read_rows(path):
        found, label = (rename(text) if text else "" for text in (found, label))
        status = ("known" if is_known(found) else "novel") if found else ""
        is_novelty_true &= status == before
        rows.append([name, found, status, label, *measures])
    if not is_novelty_true:
        place = COLUMNS.index("novelty")
        rows = [[*row[:place], "", *row[place + 1 :]] for row in rows]
    return rows


class Given(NamedTuple):
    """The label that an item was given, and what the model said of the item then.

    Attributes
    ----------
    label : str
    typicality : float
        NaN where the file does not tell.
    slack : float
        How far that may be off by rounding alone.
    """

    label: str
    typicality: float
    slack: float


def read_given(path: Path) -> dict[str, Given]:
    """Return the labels that were given, by the ids of their items.

    Parameters
    ----------
    path : Path
        An assignments file.

    Returns
    -------
    dict
    """
    rows = _read_rows(path)
    slack = 0.001 + 2 / len(rows)  # decimals of the file, and two of the rows that typicality counts
    return {name: Given(label, _number(last), slack) for name, _, _, label, *_, last in rows if label}


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _read_rows(path: Path) -> list[list[str]]:
    table = read_table(path)
    if tuple(table.names) != COLUMNS:
        raise ValueError(
            f"{str(path)!r} has the columns {table.names[:8]} in place of {list(COLUMNS)}. Put the file back "
            "that discover wrote, or move it away."
        )
    return [[restore_cell(cell) for cell in row] for row in table.rows]


def _decimal(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"
