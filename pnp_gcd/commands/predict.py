"""``pnp-gcd predict``: the classes of new items, as a table that pipes well.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pnp_gcd.commands.arguments import add_command, add_items, add_output_options, read_share
from pnp_gcd.commands.assignments import assign
from pnp_gcd.commands.bundles import open_bundle
from pnp_gcd.commands.outputs import check_free, write_text

__all__ = ["add_predict"]


def add_predict(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "predict",
        help="give new items one of the classes that were found",
        description="Print the class of each item, known or new, as CSV with the columns id, class, status, "
        "probability, novelty and typicality.",
        examples=[
            "pnp-gcd predict found tomorrow.csv --out classes.csv",
            "pnp-gcd predict found photos/today/*.jpg --reject-below 0.01",
            "generate_mails | pnp-gcd predict found - | head",
        ],
    )
    add_items(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file, not to standard output")
    parser.add_argument(
        "--reject-below",
        type=read_share,
        metavar="P",
        help="leave the class of items empty whose typicality is below this, such as 0.01",
    )
    add_output_options(parser, force="replace --out if it is there")
    parser.set_defaults(run=_run_predict)


def _run_predict(arguments: argparse.Namespace) -> int:
    if arguments.out is not None:
        check_free(arguments.out, force=arguments.force)
    bundle = open_bundle(arguments.model)
    items = bundle.read(arguments.items, id_column=arguments.id_column)
    assigned = assign(bundle.model, items.rows, items.ids, reject_below=arguments.reject_below)
    text = assigned.to_json() + "\n" if arguments.json else assigned.to_csv()
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        write_text(arguments.out, text)
    return 0
