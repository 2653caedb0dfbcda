"""What was found, in a few lines or as a record.

Knows a fitted model's classes: no files.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pnp_gcd.commands.assignments import Assignments

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer

__all__ = ["summarise", "to_record"]

_LIMITS = {"known": 10, "novel": 20}  # lines of a table of very many classes


def to_record(
    model: PNPDiscoverer, assigned: Assignments, out: Path, written: list[str], seconds: float
) -> dict[str, Any]:
    """Return what was found as values that JSON knows; classes are sorted by status and size.

    Parameters
    ----------
    model : PNPDiscoverer
    assigned : Assignments
    out : Path
        Folder that was written.
    written : list of str
        Its pieces.
    seconds : float
        That the fit took.

    Returns
    -------
    dict
    """
    from pnp_gcd import __version__

    assert assigned.labels is not None
    n_items = Counter(assigned.classes.tolist())
    n_given = Counter(
        found for found, label in zip(assigned.classes, assigned.labels, strict=True) if label is not None
    )
    known = set(model.known_classes_.tolist())
    classes = [
        {
            "class": name,
            "status": "known" if name in known else "novel",
            "items": n_items[name],
            "labelled": n_given[name],
        }
        for name in model.classes_.tolist()
    ]
    classes.sort(key=lambda row: (row["status"], -row["items"]))
    return {
        "version": __version__,
        "out": str(out),
        "written": written,
        "items": len(assigned.ids),
        "labelled": sum(n_given.values()),
        "without_class": n_items[None],
        "n_clusters": int(model.n_clusters_),
        "n_clusters_interval": [int(end) for end in model.n_clusters_interval_],
        "known": len(known),
        "novel": int(model.n_clusters_) - len(known),
        "classes": classes,
        "epochs": int(model.n_iter_),
        "seconds": round(seconds, 1),
    }


def summarise(record: dict[str, Any]) -> str:
    """Return a record as text.

    Parameters
    ----------
    record : dict
        That ``to_record`` made.

    Returns
    -------
    str
    """
    low, high = record["n_clusters_interval"]
    likely = f" ({low} to {high} are likely)" if low < high else ""
    lines = [
        f"{record['items']} items, {record['labelled']} with a label: {record['n_clusters']} "
        f"classes{likely}, {record['known']} known and {record['novel']} new."
    ]
    if record["without_class"]:
        n = record["without_class"]
        lines.append(f"{n} {'items' if n > 1 else 'item'} could not be read and got no class.")
    lines += ["", *_format_classes(record["classes"])]
    return "\n".join([*lines, "", f"Written to {record['out']}: {', '.join(record['written'])}"])


def _format_classes(classes: list[dict[str, Any]]) -> list[str]:
    """Return a table of the classes; of many, the largest known and new ones."""
    width = max(len("class"), *(len(_shorten(row["class"])) for row in classes)) + 2
    lines = [f"{'class':<{width}}{'status':<8}{'items':>7}{'labelled':>10}"]
    for status, limit in _LIMITS.items():
        rows = [row for row in classes if row["status"] == status]
        n_shown = len(rows) if len(classes) <= sum(_LIMITS.values()) else limit
        lines += [
            f"{_shorten(row['class']):<{width}}{status:<8}{row['items']:>7}{row['labelled']:>10}"
            for row in rows[:n_shown]
        ]
        if len(rows) > n_shown:
            lines.append(f"… and {len(rows) - n_shown} more that are {status}")
    return lines


def _shorten(name: Any) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= 40 else text[:39] + "…"
