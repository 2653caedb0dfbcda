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

from pnp_gcd.commands.arguments import add_command, add_items, add_output_options, read_share
from pnp_gcd.commands.bundles import open_bundle
from pnp_gcd.commands.cells import to_csv
from pnp_gcd.commands.given_labels import find_given
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
    given = find_given(bundle, items)
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
