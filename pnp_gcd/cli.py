"""The command ``pnp-gcd``: its commands, its exit codes, and what is said when something goes wrong.

Knows arguments and text. What is slow to import waits until a command needs it.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pnp_gcd import __version__
from pnp_gcd.commands.arguments import CommandParser, UsageError, word_for_shell

__all__ = ["main"]

_EPILOG = """the way through:
  pnp-gcd discover --images photos --labels labels.csv --out found
  pnp-gcd rename found "novel_0=orchid"
  pnp-gcd confirm found photos --out labels_2.csv
  pnp-gcd discover --images photos --labels labels_2.csv --out found_2

pnp-gcd COMMAND --help shows the options of a command, and examples.
exit codes: 0 all went well, 1 an error, 2 wrong arguments, 130 interrupted by Ctrl-C"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None, default=None
        Arguments after the program's name; ``None`` takes those of the process.

    Returns
    -------
    int
        Exit code: 0 if all went well, 1 on an error, 2 without a command, 130 on Ctrl-C. Wrong
        arguments leave through ``SystemExit(2)``, as argparse does.
    """
    arguments = argparse.Namespace()
    try:
        parser = _build_parser()
        arguments = _parse(parser, argv)
        if arguments.command is None:
            parser.print_help(sys.stderr)
            return 2
        with _one_line_warnings():
            code: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\npnp-gcd: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads, such as head, has enough
        _forget_output()
        return 0
    except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
        weights = "--weights" if hasattr(arguments, "weights") else "--backbone-weights"
        print(f"pnp-gcd: error: {word_for_shell(_on_one_line(error), weights=weights)}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return code


def _parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments; those that are left over are told by the command's own parser."""
    arguments, strange = parser.parse_known_args(argv)
    if strange:
        getattr(arguments, "parser", parser).error(f"unrecognized arguments: {' '.join(strange)}")
    return arguments


def _build_parser() -> argparse.ArgumentParser:
    from pnp_gcd.benchmark.analyse_command import add_analyse
    from pnp_gcd.benchmark.command import add_bench
    from pnp_gcd.commands.confirm import add_confirm
    from pnp_gcd.commands.demo import add_demo
    from pnp_gcd.commands.discover import add_discover
    from pnp_gcd.commands.merge import add_merge
    from pnp_gcd.commands.predict import add_predict
    from pnp_gcd.commands.rename import add_rename
    from pnp_gcd.commands.report import add_report

    parser = CommandParser(
        prog="pnp-gcd",
        description="Find the known and the new classes in unlabelled rows, and how many there are.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in (add_demo, add_discover, add_predict, add_report, add_rename, add_merge, add_confirm):
        add(commands)
    add_bench(commands)
    add_analyse(commands)
    return parser


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show warnings once, and without the line of code that gave them."""
    shown = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        text = _on_one_line(message)
        if text not in shown:
            print(f"pnp-gcd: warning: {text}", file=sys.stderr)
        shown.add(text)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _on_one_line(message: object) -> str:
    text = " ".join(line.strip() for line in str(message).splitlines())
    if isinstance(message, MemoryError):
        return f"the memory is full: {text or 'no more could be had'}. Pass fewer items."
    return text or type(message).__name__


def _forget_output() -> None:
    """Let what is still to be printed go nowhere, so that the interpreter ends without complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
