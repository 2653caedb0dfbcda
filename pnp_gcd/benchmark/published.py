"""The numbers of the paper's tables, with their places, and where the paper disagrees with itself.

Knows ``published.json`` only: no run, no record.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any, NamedTuple

__all__ = [
    "PublishedRow",
    "describe_disagreements",
    "name_table",
    "published_rows",
    "published_table",
    "read_published",
]


class PublishedRow(NamedTuple):
    """One method on one data set, as printed: percents, None where the paper has a dash."""

    method: str
    mark: str | None
    given_k: bool
    all: float | None
    known: float | None
    novel: float | None
    table: str


def read_published() -> dict[str, Any]:
    """Return all that ``published.json`` holds.

    Returns
    -------
    dict
        ``source``, ``reading`` (what the entries mean), ``datasets``, ``methods``, ``tables`` by their
        labels, ``class_counts``, ``claims`` and ``disagreements``.

    Examples
    --------
    >>> from pnp_gcd.benchmark.published import read_published
    >>> published = read_published()
    >>> published["tables"]["tab:ssb"]["rows"][-1]["scores"]["stanford_cars"]
    [57.3, 70.2, 51.1]
    >>> published["tables"]["tab:time"]["rows"][1]["seconds"]["herbarium19"]
    123.0
    """
    content: dict[str, Any] = json.loads(_read_text())
    return content


def published_rows(dataset: str) -> list[PublishedRow]:
    """Return the methods that the paper compares on a data set, those given the number of classes first.

    A row that several tables repeat comes once, from the first of them.

    Parameters
    ----------
    dataset : str
        A name of the project, such as ``"cub200"``.

    Returns
    -------
    list of PublishedRow
        Empty if the paper does not know the data set.

    Examples
    --------
    >>> from pnp_gcd.benchmark.published import published_rows
    >>> row = published_rows("oxford_pets")[-1]
    >>> row.method, row.given_k, row.all, row.known, row.novel, row.table
    ('PNP', False, 89.7, 87.6, 90.8, 'tab:ssb_new')
    """
    rows: dict[tuple[str, bool], PublishedRow] = {}
    for label, table in read_published()["tables"].items():
        for row in table["rows"]:
            scores = row.get("scores", {}).get(dataset)
            if "given_k" not in row or scores is None or all(score is None for score in scores):
                continue
            accuracies = dict(zip(("all", "known", "novel"), scores, strict=True))
            found = PublishedRow(row["method"], row["mark"], row["given_k"], **accuracies, table=label)
            rows.setdefault((row["method"], row["given_k"]), found)
    return sorted(rows.values(), key=lambda row: not row.given_k)


def name_table(label: str) -> str:
    """Return what a reader of the paper calls one of its tables.

    Parameters
    ----------
    label : str
        In the paper's source.

    Returns
    -------
    str

    Examples
    --------
    >>> from pnp_gcd.benchmark.published import name_table
    >>> name_table("tab:ssb")
    'Table 2'
    """
    table = read_published()["tables"].get(label)
    return label if table is None else f"Table {table['number']}"


def describe_disagreements(dataset: str) -> list[str]:
    """Say where the paper's numbers for a data set disagree with each other.

    Parameters
    ----------
    dataset : str

    Returns
    -------
    list of str
        A sentence each.

    Examples
    --------
    >>> from pnp_gcd.benchmark.published import describe_disagreements
    >>> describe_disagreements("cifar100")[0]
    'The paper disagrees with itself on PNP (same method and data set): All/Known/Novel 80.0/81.7/76.3 in
    Table 3, Table 5 and Table 7, 80.0/80.7/76.3 in Table 10.'
    """
    shown = {row.table for row in published_rows(dataset)}
    found = [entry for entry in read_published()["disagreements"] if entry["dataset"] == dataset]
    sentences = []
    for entry in found:
        if entry["kind"] == "repeated":
            places = ", ".join(
                f"{_join(place['value'])} in {_list(place['where'])}" for place in entry["places"]
            )
            about = f"{entry['method']} ({entry['about']})"
            sentences.append(f"The paper disagrees with itself on {about}: All/Known/Novel {places}.")
    odd = [
        entry for entry in found if entry["kind"] == "arithmetic" and shown & set(entry["places"][0]["where"])
    ]
    if odd:
        rows = "; ".join(
            f"{entry['method']} {_join(entry['scores'])} in {_say_place(entry)}" for entry in odd
        )
        sentences.append(
            "Beyond rounding, All is not the mean of Known and Novel weighted by the paper's numbers of rows "
            f"in these published rows: {rows}."
        )
    return sentences


def published_table(label: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return one of the paper's analyses as text.

    Parameters
    ----------
    label : str
        In the paper's source.

    Returns
    -------
    header : tuple of str
    rows : list of tuple of str
        All/Known/Novel, or seconds, for each data set.

    Examples
    --------
    >>> from pnp_gcd.benchmark.published import published_table
    >>> header, rows = published_table("tab:ablat_losses")
    >>> header, rows[0]
    (('variant', 'cub200', 'cifar100'), ('without L_crl', '55.0/46.2/59.0', '74.6/77.4/69.0'))
    """
    rows = read_published()["tables"][label]["rows"]
    kind = "scores" if "scores" in rows[0] else "seconds"
    datasets = tuple(rows[0][kind])
    header = ("variant", *(name if kind == "scores" else f"{name}, s" for name in datasets))
    cells = [
        (_name_variant(row), *(_say_entry(row[kind].get(dataset)) for dataset in datasets)) for row in rows
    ]
    return header, cells


def _name_variant(row: dict[str, Any]) -> str:
    """Name a row by what its table varies."""
    if "known_percent" in row:
        return f"{row['method']}, {row['known_percent']}% known"
    if "without" in row:
        return f"without {row['without']}" if row["without"] else "all terms"
    if "ema" in row:
        on = {"PP": row["potential_prototypes"], "teacher": row["teacher"], "EMA": row["ema"]}
        return ", ".join(name for name, is_on in on.items() if is_on) or "none of them"
    if "n_classes" in row:
        state = row["parameters"]["potential_prototypes"]
        return f"{state or 'without'} potential prototypes, {row['n_classes']} classes found"
    return str(row["method"])


def _say_entry(entry: list[float] | float | None) -> str:
    if entry is None:
        return "–"
    return _join(entry) if isinstance(entry, list) else f"{entry:.0f}"


@functools.cache
def _read_text() -> str:
    return resources.files("pnp_gcd.benchmark").joinpath("published.json").read_text(encoding="utf-8")


def _join(scores: list[float]) -> str:
    return "/".join(f"{score:.1f}" for score in scores)


def _list(labels: list[str]) -> str:
    names = sorted(map(name_table, labels), key=lambda name: (len(name), name))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _say_place(entry: dict[str, Any]) -> str:
    printed, expected = entry["places"]
    return f"{_list(printed['where'])} (their mean would be {expected['value']:.1f})"
