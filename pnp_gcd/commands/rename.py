"""``pnp-gcd rename``: names for the classes that were found.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pnp_gcd.commands.arguments import UsageError, add_command, add_model, add_output_options
from pnp_gcd.commands.bundles import open_bundle
from pnp_gcd.commands.curating import find_class, merge_group, read_names, save_curated, tell_saved

if TYPE_CHECKING:
    from pnp_gcd import PNPDiscoverer

__all__ = ["add_rename"]


def add_rename(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    parser = add_command(
        commands,
        "rename",
        help="give classes their names",
        description="Name classes, which confirms them. The model's folder is changed in place, its "
        "assignments.csv too, unless --out names another; an interruption leaves it as it was.",
        examples=[
            'pnp-gcd rename found "novel_3=orchid" "novel_0=slipper orchid"',
            "pnp-gcd rename found --from names.json --out named",
        ],
    )
    add_model(parser)
    parser.add_argument("names", nargs="*", metavar="OLD=NEW", help="a class, and its name from now on")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="names.json that report.html saved, whose classes that are one are merged too; or any JSON "
        'object {"novel_3": "orchid"}',
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write a new folder; leave MODEL as it is")
    add_output_options(parser, force="replace what is in --out")
    parser.set_defaults(run=_run_rename)


def _run_rename(arguments: argparse.Namespace) -> int:
    if not arguments.names and arguments.source is None:
        raise UsageError('no class is named. Pass "OLD=NEW", or --from FILE.')
    bundle = open_bundle(arguments.model)
    model = bundle.model
    pairs, groups = ([], []) if arguments.source is None else _read_file(arguments.source)
    pairs += [_split(text, model.classes_.tolist()) for text in arguments.names]
    names: dict[Any, Any] = {}
    for (old, _), new in zip(pairs, read_names(model, [new for _, new in pairs]), strict=True):
        found = find_class(model, old)
        if found in names:
            raise ValueError(
                f"the class {old!r} is given two names: {str(names[found])!r} and {new!r}. Keep one."
            )
        names[found] = new
    texts = _apply(model, names, [[find_class(model, name) for name in group] for group in groups])
    saved = save_curated(bundle, texts, arguments.out, force=arguments.force)
    print(tell_saved(saved, {"renamed": texts}, as_json=arguments.json))
    return 0


def _apply(model: PNPDiscoverer, names: dict[Any, Any], groups: list[list[Any]]) -> dict[str, str]:
    """Merge groups, name what is left, and return what each class is called now."""
    known = set(model.known_classes_.tolist())
    merged: dict[Any, Any] = {}
    for group in groups:
        given = list(dict.fromkeys(names.pop(value) for value in group if value in names))
        if len(given) > 1:
            raise ValueError(f"{group} become one class, but are given the names {given}. Keep one.")
        if len(known.intersection(group)) > 1:  # which has no name unless it is given one
            left = merge_group(model, group, *given)
        else:
            left = merge_group(model, group)
            names.update((left, name) for name in given)
        merged |= dict.fromkeys(group, left)
    if names:
        model.rename_classes(names)  # at once: classes may take over each other's names
    texts = {str(old): str(names.get(left, left)) for old, left in merged.items()}
    return texts | {str(old): str(new) for old, new in names.items() if old not in merged}


def _split(text: str, classes: list[Any]) -> tuple[str, str]:
    """Cut at the first "=" that leaves a class before it; names may hold one themselves."""
    known = {str(name) for name in classes}
    parts = text.split("=")
    cuts = [("=".join(parts[:place]), "=".join(parts[place:])) for place in range(1, len(parts))]
    if not cuts:
        raise UsageError(f'{text!r} must be "OLD=NEW", such as "novel_3=orchid".')
    return next((cut for cut in cuts if cut[0] in known), cuts[0])


def _read_file(path: Path) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Return pairs of old and new names, and groups of classes that are one."""
    from pnp_gcd.report import read_names as read_names_file

    try:
        names = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(
            f'--from {str(path)!r} cannot be read as JSON: {error}. Write {{"novel_3": "orchid"}}.'
        ) from error
    if isinstance(names, dict) and "format" in names and "version" in names:
        told = read_names_file(path)
        groups = [[str(value) for value in group] for group in told.merge]
        return [(str(old), new) for old, new in told.rename.items()], groups
    if not isinstance(names, dict) or not all(isinstance(name, str | int) for name in names.values()):
        raise ValueError(
            f'--from {str(path)!r} must hold one object of names. Write {{"novel_3": "orchid"}}.'
        )
    return [(old, str(new)) for old, new in names.items()], []
