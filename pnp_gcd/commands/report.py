"""``pnp-gcd report``: the page of a model, for the items it is shown.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pnp_gcd.commands.arguments import add_command, add_items, add_output_options
from pnp_gcd.commands.bundles import Bundle, open_bundle
from pnp_gcd.commands.given_labels import find_given
from pnp_gcd.commands.items import Items
from pnp_gcd.commands.label_files import read_labels, type_like
from pnp_gcd.commands.outputs import check_free
from pnp_gcd.commands.pages import write_page

__all__ = ["add_report"]


def add_report(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "report",
        help="write the page that shows a model's groups",
        description="Write one HTML file that shows the groups of the items and needs no network.",
        examples=["pnp-gcd report found photos --out report.html --truth truth.csv"],
    )
    add_items(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="file to write, .html")
    parser.add_argument(
        "--truth",
        type=Path,
        metavar="FILE",
        help="table of the true classes: ids, under the name that they have for discover or id, and label",
    )
    parser.add_argument("--label-column", metavar="NAME", help="column of --truth (default: label)")
    parser.add_argument("--title", metavar="TEXT", help="of the page")
    add_output_options(parser, force="replace --out if it is there")
    parser.set_defaults(run=_run_report)


def _run_report(arguments: argparse.Namespace) -> int:
    check_free(arguments.out, force=arguments.force)
    bundle = open_bundle(arguments.model)
    items = bundle.read(arguments.items, id_column=arguments.id_column)
    truth = None if arguments.truth is None else _read_truth(arguments, bundle, items)
    seen = bundle.model.inspect(items.rows)
    given = find_given(bundle, items, typicality=seen.typicality)
    write_page(
        bundle.model,
        items,
        arguments.out,
        truth=truth,
        given=[given.get(name) for name in items.ids] if given else None,
        title=arguments.title,
        overwrite=True,
        seen=seen,
    )
    if arguments.json:
        print(json.dumps({"written": str(arguments.out), "items": len(items.ids)}))
    else:
        print(f"Written: {arguments.out}, of {len(items.ids)} items.")
    return 0


def _read_truth(arguments: argparse.Namespace, bundle: Bundle, items: Items) -> Any:
    labels = read_labels(
        arguments.truth,
        items.ids,
        id_column=arguments.id_column,
        label_column=arguments.label_column,
        likely_id_column=items.recipe.id_column or bundle.recipe.id_column,
        are_files=bundle.recipe.kind == "images",
        option="--truth",
    )
    return type_like(bundle.model.known_classes_, labels)
