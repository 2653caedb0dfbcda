"""Write a model's page with what there is to show of its items.

Knows the report's interface: no files of items, no arguments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pnp_gcd.commands.items import Items

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.fitted import Inspection

__all__ = ["write_page"]


def write_page(
    model: PNPDiscoverer,
    items: Items,
    path: Path,
    *,
    truth: Any = None,
    given: Sequence[str | None] | None = None,
    title: str | None = None,
    overwrite: bool = False,
    seen: Inspection | None = None,
) -> None:
    """Write the page.

    Parameters
    ----------
    model : PNPDiscoverer
    items : Items
    path : Path
    truth : array or None
        True classes, if they are known.
    given : sequence of str or None, or None
        Labels that items were given, as text.
    title : str or None
    overwrite : bool, default=False
    seen : Inspection or None
        What the model has said of the items already.
    """
    from pnp_gcd.report import write_report

    shown = items.shown
    if isinstance(shown, dict):
        shown = _as_frame(shown)
    elif items.recipe.kind == "embeddings" and shown is not None and not all(map(os.path.isfile, shown)):
        shown = [f"id {name}" for name in shown]  # names of pictures that are not here are no pictures
    classes = {str(value): value for value in model.classes_.tolist()}
    write_report(
        model,
        items.rows,
        path,
        items=shown,
        truth=truth,
        given=None if given is None else [None if label is None else classes[label] for label in given],
        title=title,
        overwrite=overwrite,
        inspection=seen,
    )


def _as_frame(columns: dict[str, list[str]]) -> Any:
    """Return columns as a data frame, or, where no library of data frames is installed, as texts."""
    try:
        import pandas
    except ImportError:
        return _as_texts(columns)
    return pandas.DataFrame(columns)


def _as_texts(columns: dict[str, list[str]]) -> Sequence[str]:
    rows = zip(*columns.values(), strict=True)
    return [", ".join(f"{name}: {cell}" for name, cell in zip(columns, row, strict=True)) for row in rows]
