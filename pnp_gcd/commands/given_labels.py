"""Labels that ``discover`` was given, for the commands that come after it.

Knows a model's folder and items: no arguments.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.commands.assignments import Given, read_given
from pnp_gcd.commands.bundles import ASSIGNMENTS, Bundle
from pnp_gcd.commands.items import Items

__all__ = ["find_given"]


def find_given(
    bundle: Bundle, items: Items, *, typicality: NDArray[np.float64] | None = None
) -> dict[str, str]:
    """Return the labels that ``discover`` was given, of the items that are shown now.

    Items that only have the ids of others get none, which a warning tells.

    Parameters
    ----------
    bundle : Bundle
    items : Items
    typicality : ndarray of shape (n_items,) or None
        What the model has said of the items already.

    Returns
    -------
    dict
        From id to label.
    """
    path = None if bundle.folder is None else bundle.folder / ASSIGNMENTS
    if path is None or not path.exists():
        return {}
    there = {name: row for row, name in enumerate(items.ids)}
    given = {name: told for name, told in read_given(path).items() if name in there}
    classes = {str(value) for value in bundle.model.classes_.tolist()}
    strange = sorted({told.label for told in given.values()} - classes)
    if strange:
        raise ValueError(
            f"{str(path)!r} has given labels that are no classes of the model: {strange[:3]}. Put the file "
            "back that discover or rename wrote, or remove it."
        )
    if not given:
        return {}
    places = [there[name] for name in given]
    now = bundle.model.typicality(items.rows[places]) if typicality is None else typicality[places]
    is_other = _find_others(now, list(given.values()))
    if is_other.any():
        print(f"pnp-gcd: warning: {_tell_others(items, is_other)}", file=sys.stderr)
    if is_other.any() and _are_numbered(items):  # of rows that have moved, the number says nothing
        return {}
    pairs = zip(given.items(), is_other, strict=True)
    return {name: told.label for (name, told), other in pairs if not other}


def _find_others(now: NDArray[np.float64], given: list[Given]) -> NDArray[np.bool_]:
    """Tell which items only have the ids of those that were given labels: the model finds them unlike."""
    before, slack = (np.array([getattr(told, name) for told in given]) for name in ("typicality", "slack"))
    with np.errstate(invalid="ignore"):  # NaN: an image that could not be read
        out: NDArray[np.bool_] = np.abs(now - before) > slack
    return out


def _are_numbered(items: Items) -> bool:
    return items.recipe.kind != "images" and items.recipe.id_column is None


def _tell_others(items: Items, is_other: NDArray[np.bool_]) -> str:
    n_given, n_other = len(is_other), int(is_other.sum())
    told = f"{n_other} of {n_given} items with ids of labelled ones are not those that discover was shown"
    if _are_numbered(items):
        return f"{told}: rows are called by their numbers here. None of the labels given before is kept."
    return f"{told}, or have changed. Their labels of before are not kept."
