"""What the arguments of several commands have in common.

Knows argparse and text: no files, no estimator.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

__all__ = [
    "CommandParser",
    "UsageError",
    "add_command",
    "add_items",
    "add_model",
    "add_output_options",
    "read_assignment",
    "read_seed",
    "read_share",
    "read_value",
    "word_for_shell",
]

_LARGEST_SEED = 2**32 - 1
_EXIT_CODES = "exit codes: 0 all went well, 1 an error, 2 wrong arguments, 130 interrupted by Ctrl-C"
# What messages of the library advise in Python, and how a command line says it.
_WORDINGS = (
    (
        r"backbone_weights= the path of a file, or None for random weights",
        "{weights} FILE, or {weights} none for random weights",
    ),
    (r"backbone_weights=(?=[\"'])", "{weights} "),
    (r"merge_classes\(\[\[(.+?), …\]\]\)", r"pnp-gcd merge MODEL \1 OTHER"),
)


class CommandParser(argparse.ArgumentParser):
    """A parser that takes no option by its beginning alone, and names the nearest to a misspelt one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Leave with 2, and say what was probably meant."""
        wrong = re.search(r"unrecognized arguments: (-\S*?)(?:[=\s]|$)|invalid choice: '([^']*)'", message)
        if wrong is not None:
            option, command = wrong.groups()
            known = list(self._option_string_actions) if option else self._command_names()
            close = difflib.get_close_matches(option or command, known, n=1)
            message += f". Did you mean {close[0]}?" if close else ""
        super().error(message)

    def _command_names(self) -> list[str]:
        actions = [action for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        return [name for action in actions for name in action.choices]


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
    parser.set_defaults(parser=parser)
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


def word_for_shell(message: str, *, weights: str = "--backbone-weights") -> str:
    """Return a message of the library with options and commands in place of Python.

    Parameters
    ----------
    message : str
    weights : str, default="--backbone-weights"
        The command's option for a network's weights.

    Returns
    -------
    str

    Examples
    --------
    >>> from pnp_gcd.commands.arguments import word_for_shell
    >>> word_for_shell("Make them one class by merge_classes([['rose', …]]).")
    "Make them one class by pnp-gcd merge MODEL 'rose' OTHER."
    """
    for python, shell in _WORDINGS:
        message = re.sub(python, shell.replace("{weights}", weights), message)
    return message


class _ExampleFormatter(argparse.HelpFormatter):
    """Wraps descriptions, and leaves the lines of the epilog as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(("example:", "examples:")):
            return "\n".join(indent + line for line in text.splitlines())
        return super()._fill_text(text, width, indent)
