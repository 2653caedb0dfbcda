"""The file in which a person has named classes, and said which are the same.

Knows JSON and labels: no estimator, no page. Nothing of the file is executed.
"""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FORMAT", "VERSION", "NamesFile", "read_names"]

FORMAT = "pnp-gcd names"
VERSION = 1
# Names of ten thousand classes need less than a tenth of it.
_LARGEST_FILE = 10 * 2**20
_LONGEST_NAME = 1000
_KEYS = {"format", "version", "rename", "merge"}


class NamesFile(NamedTuple):
    """What a person said about classes. All labels are those of the model that the page shows.

    Attributes
    ----------
    rename : dict
        New name of a class, by its label. Of classes that are merged, the name of one is the name of all.
    merge : list of list
        Groups of two or more labels that are one class; a label is in one group at most.
    """

    rename: dict[Any, str]
    merge: list[list[Any]]


def read_names(path: str | os.PathLike[str]) -> NamesFile:
    """Read and check the ``names.json`` that a report's page has saved.

    Parameters
    ----------
    path : str or path
        The file. ``rename`` in it is a list of pairs, or an object where all labels are strings.

    Returns
    -------
    NamesFile
        Named tuple of ``rename`` and ``merge``.

    Raises
    ------
    ValueError
        Where the file is none of names, or contradicts itself; the message says where.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pnp_gcd.report import read_names
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "names.json"
    >>> _ = path.write_text('{"format": "pnp-gcd names", "version": 1, "rename": [[3, "orchid"]]}')
    >>> read_names(path).rename
    {3: 'orchid'}
    """
    path = Path(path)
    content = _parse(path)
    unknown = sorted(set(content) - _KEYS)
    if unknown:
        raise ValueError(
            f"{path} has the entries {reprlib.repr(unknown)}, which no file of names has. Remove them."
        )
    rename = _read_rename(content.get("rename", []), path)
    merge = _read_merge(content.get("merge", []), path)
    _check_together(rename, merge, path)
    return NamesFile(rename, merge)


def _parse(path: Path) -> dict[str, Any]:
    """Return the file's JSON object, if it is one of names."""
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is no file. Save names.json with the button on the report's page, and pass its path."
        )
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ValueError(
            f"{path} has {size:,} bytes, but a file of names has at most {_LARGEST_FILE:,}. "
            "Pass the names.json that the report's page has saved."
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON that can be read: {error}. Save names.json again.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(
            f'{path} is no file of names: it lacks "format": "{FORMAT}". '
            "Pass the names.json that the report's page has saved."
        )
    version = content.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise ValueError(
            f"{path} has version {reprlib.repr(version)}, but this pnp_gcd reads version {VERSION}. "
            "Save it again from a page that this version of pnp_gcd has written."
        )
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no label")


def _read_rename(given: Any, path: Path) -> dict[Any, str]:
    pairs = [[label, name] for label, name in given.items()] if isinstance(given, dict) else given
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError(
            f'{path}: "rename" must be a list of pairs [label, name], got {reprlib.repr(given)}. '
            'Write for example [["novel_3", "orchid"]].'
        )
    for label, name in pairs:
        _check_label(label, path, "rename")
        if not isinstance(name, str) or not name.strip():
            raise ValueError(
                f'{path}: "rename" gives the class {label!r} the name {reprlib.repr(name)}. A name is a text '
                "that is not blank; write one, or leave the class out."
            )
        if len(name) > _LONGEST_NAME:
            raise ValueError(
                f'{path}: "rename" gives the class {label!r} a name of {len(name):,} characters, but '
                f"{_LONGEST_NAME:,} are the most. Shorten it."
            )
    _refuse_twice([label for label, _ in pairs], path, '"rename" names the class {} more than once')
    return {label: name.strip() for label, name in pairs}


def _read_merge(given: Any, path: Path) -> list[list[Any]]:
    if not isinstance(given, list) or not all(isinstance(group, list) and len(group) >= 2 for group in given):
        raise ValueError(
            f'{path}: "merge" must be a list of groups of two or more labels, got {reprlib.repr(given)}. '
            'Write for example [["novel_1", "novel_4"]].'
        )
    labels = [label for group in given for label in group]
    for label in labels:
        _check_label(label, path, "merge")
    _refuse_twice(labels, path, '"merge" holds the class {} more than once')
    return [list(group) for group in given]


def _check_label(label: Any, path: Path, entry: str) -> None:
    if not isinstance(label, str | int | float) or (isinstance(label, float) and not math.isfinite(label)):
        raise ValueError(
            f'{path}: "{entry}" holds {reprlib.repr(label)} where a class label must be: a text, a number, '
            "true or false. Write the label as the model's classes_ has it."
        )


def _refuse_twice(values: list[Any], path: Path, sentence: str) -> None:
    twice = [value for value, n in Counter(values).items() if n > 1]
    if twice:
        raise ValueError(f"{path}: {sentence.format(reprlib.repr(twice[0]))}. Keep one of them.")


def _check_together(rename: dict[Any, str], merge: list[list[Any]], path: Path) -> None:
    """Refuse two names for one merged class, and one name for classes that are not merged."""
    group_of = {label: place for place, group in enumerate(merge) for label in group}
    holders: dict[str, Any] = {}
    for label, name in rename.items():
        group = ("merged", group_of[label]) if label in group_of else ("alone", label)
        if holders.setdefault(name, group) != group:
            raise ValueError(
                f"{path}: two classes get the name {name!r}. Merge them if they are one class, or name one "
                "of them differently."
            )
    for merged in merge:
        names = {rename[label] for label in merged if label in rename}
        if len(names) > 1:
            raise ValueError(
                f"{path}: the merged classes {reprlib.repr(merged)} get the names "
                f"{' and '.join(map(repr, sorted(names)))}. Keep one name."
            )
