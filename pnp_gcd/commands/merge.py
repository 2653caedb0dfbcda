"""``pnp-gcd merge``: classes that are one, made one.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pnp_gcd.commands.arguments import UsageError, add_command, add_model, add_output_options
from pnp_gcd.commands.bundles import open_bundle
from pnp_gcd.commands.curating import find_class, merge_group, read_names, save_curated, tell_saved

__all__ = ["add_merge"]


def add_merge(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "merge",
        help="make one class of several",
        description="Make one class of two or more. If one of them is known, its name stays. The model's "
        "folder is changed in place, its assignments.csv too, unless --out names another.",
        examples=["pnp-gcd merge found novel_1 novel_4 --name orchid"],
    )
    add_model(parser)
    parser.add_argument("classes", nargs="+", metavar="CLASS", help="two classes or more")
    parser.add_argument(
        "--name", metavar="NAME", help="of the one class (default: the first, or the known one)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write a new folder; leave MODEL as it is")
    add_output_options(parser, force="replace what is in --out")
    parser.set_defaults(run=_run_merge)


def _run_merge(arguments: argparse.Namespace) -> int:
    if len(set(arguments.classes)) < 2:
        raise UsageError(f"{arguments.classes} are too few classes to merge. Name two that differ, or more.")
    bundle = open_bundle(arguments.model)
    wanted = [] if arguments.name is None else read_names(bundle.model, [arguments.name])
    group = [find_class(bundle.model, name) for name in dict.fromkeys(arguments.classes)]
    left = merge_group(bundle.model, group, *wanted)
    texts = {str(old): str(left) for old in group}
    saved = save_curated(bundle, texts, arguments.out, force=arguments.force)
    print(tell_saved(saved, {"renamed": texts}, as_json=arguments.json))
    return 0
