"""``pnp-gcd confirm``: labels of the classes that a person has named, to discover on with.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.commands.arguments import add_command, add_items, add_output_options, read_share
from pnp_gcd.commands.assignments import Given, read_given
from pnp_gcd.commands.bundles import ASSIGNMENTS, Bundle, open_bundle
from pnp_gcd.commands.cells import to_csv
from pnp_gcd.commands.items import Items
from pnp_gcd.commands.outputs import check_free, write_text

__all__ = ["add_confirm"]


def add_confirm(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "confirm",
        help="write the labels of named classes, for the next discover",
        description="Write the labels of items whose class is confirmed: known from the start, or named or "
        "merged by you. Items of other classes, and doubtful ones, are left out. Labels that discover was "
        "given stay as they were. The file is what discover --labels takes.",
        examples=[
            "pnp-gcd confirm found photos --out labels_2.csv",
            "pnp-gcd discover --images photos --labels labels_2.csv --out found_2",
        ],
    )
    add_items(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="CSV to write")
    parser.add_argument(
        "--min-probability",
        type=read_share,
        default=0.5,
        metavar="P",
        help="items less sure than this are left out (default: 0.5)",
    )
    add_output_options(parser, force="replace --out if it is there")
    parser.set_defaults(run=_run_confirm)


def _run_confirm(arguments: argparse.Namespace) -> int:
    check_free(arguments.out, force=arguments.force)
    bundle = open_bundle(arguments.model)
    items = bundle.read(arguments.items, id_column=arguments.id_column)
    given = _read_given(bundle, items)
    confirmed = {str(value) for value in bundle.model.confirmed_classes_.tolist()}
    found = bundle.model.confirm(items.rows, min_probability=arguments.min_probability)
    labels = dict(given)
    for name, value in zip(items.ids, np.asarray(found).tolist(), strict=True):
        if name not in given and str(value) in confirmed:
            labels[name] = str(value)
    rows = [(name, labels[name]) for name in items.ids if name in labels]
    write_text(arguments.out, to_csv(("id", "label"), rows))
    record = {
        "written": str(arguments.out),
        "items": len(items.ids),
        "labelled": len(labels),
        "given": len(given),
        "confirmed_classes": sorted(confirmed),
    }
    print(json.dumps(record, indent=2, ensure_ascii=False) if arguments.json else _tell(record))
    if not set(labels.values()) - {label for label in given.values()}:
        print(
            "pnp-gcd: warning: no class is confirmed that had no label before. Name some: pnp-gcd rename.",
            file=sys.stderr,
        )
    return 0


def _tell(record: dict[str, Any]) -> str:
    return (
        f"Written: {record['written']}, labels of {record['labelled']} of {record['items']} items "
        f"({record['given']} given before) in {len(record['confirmed_classes'])} confirmed classes."
    )


def _read_given(bundle: Bundle, items: Items) -> dict[str, str]:
    """Return the labels that ``discover`` was given, of the items that are shown now."""
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
    rows = items.rows[[there[name] for name in given]]
    is_other = _find_others(bundle, rows, list(given.values()))
    if is_other.any():
        print(f"pnp-gcd: warning: {_tell_others(items, is_other)}", file=sys.stderr)
    if is_other.any() and _are_numbered(items):  # of rows that have moved, the number says nothing
        return {}
    pairs = zip(given.items(), is_other, strict=True)
    return {name: told.label for (name, told), other in pairs if not other}


def _find_others(bundle: Bundle, rows: Any, given: list[Given]) -> NDArray[np.bool_]:
    """Tell which items only have the ids of those that were given labels: the model finds them unlike."""
    if not given:
        return np.zeros(0, dtype=bool)
    before, slack = (np.array([getattr(told, name) for told in given]) for name in ("typicality", "slack"))
    with np.errstate(invalid="ignore"):  # NaN: an image that could not be read
        out: NDArray[np.bool_] = np.abs(bundle.model.typicality(rows) - before) > slack
    return out


def _are_numbered(items: Items) -> bool:
    return items.recipe.kind != "images" and items.recipe.id_column is None


def _tell_others(items: Items, is_other: NDArray[np.bool_]) -> str:
    n_given, n_other = len(is_other), int(is_other.sum())
    told = f"{n_other} of {n_given} items with ids of labelled ones are not those that discover was shown"
    if _are_numbered(items):
        return f"{told}: rows are called by their numbers here. None of the labels given before is kept."
    return f"{told}, or have changed. Their labels of before are not kept."
