"""What the arguments of several commands have in common.

Knows argparse and text: no files, no estimator.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "UsageError",
    "add_command",
    "add_items",
    "add_model",
    "add_output_options",
    "read_assignment",
    "read_seed",
    "read_share",
    "read_value",
]

_LARGEST_SEED = 2**32 - 1
_EXIT_CODES = "exit codes: 0 all went well, 1 an error, 2 wrong arguments, 130 interrupted by Ctrl-C"


class UsageError(ValueError):
    """Arguments that do not go together; the command ends with 2, as for arguments that argparse refuses."""


def add_command(
    commands: Any, name: str, *, help: str, description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """Add a command whose help ends with examples and exit codes.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    name : str
    help : str
        The line in the list of commands.
    description : str
    examples : sequence of str
        Command lines.

    Returns
    -------
    ArgumentParser
        Of the command, for its own arguments.
    """
    lines = ["examples:" if len(examples) > 1 else "example:", *(f"  {line}" for line in examples)]
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog="\n".join([*lines, "", _EXIT_CODES]),
        formatter_class=_ExampleFormatter,
    )
    return parser


def add_output_options(parser: argparse._ActionsContainer, *, force: str) -> None:
    """Add ``--force``, whose help is given, and ``--json``."""
    parser.add_argument("--force", action="store_true", help=force)
    parser.add_argument("--json", action="store_true", help="print JSON in place of text")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the folder of a model."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="folder that discover wrote")


def add_items(parser: argparse.ArgumentParser) -> None:
    """Add a model and the items to show it."""
    add_model(parser)
    parser.add_argument(
        "items",
        type=Path,
        nargs="+",
        metavar="ITEMS",
        help="items of the kind that discover was given: a folder of images, or image files; a table, or - "
        "for a CSV from standard input; an array",
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column of ids (default: that of discover; else rows count from 0)",
    )


def read_share(text: str) -> float:
    """Read a number from 0 to 1."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0 to 1, such as 0.01.")
    return share


def read_seed(text: str) -> int:
    """Read a seed: an integer from 0 to 2³² − 1."""
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed <= _LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be an integer from 0 to {_LARGEST_SEED}. Pass one, such as 0."
        )
    return seed


def read_assignment(text: str) -> tuple[str, Any]:
    """Read ``NAME=VALUE``, a parameter and its value."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE, such as max_iter=20.")
    return name, read_value(value)


def read_value(text: str) -> Any:
    """Read a number, pair, True, None, inf, or else text."""
    if text in ("inf", "-inf"):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


class _ExampleFormatter(argparse.HelpFormatter):
    """Wraps descriptions, and leaves the lines of the epilog as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(("example:", "examples:")):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)
