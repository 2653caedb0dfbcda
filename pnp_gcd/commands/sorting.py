"""Sort images into a folder for each class, under names that every file system takes.

Knows paths and names: no model, no arguments.
"""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

__all__ = ["name_folders", "sort_images"]

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{kind}{digit}" for kind in ("com", "lpt") for digit in range(10)),
}
_N_BYTES = 120  # file systems take 255; a number and an ending need room
_UNSORTED = "_no_class"


def name_folders(classes: Sequence[Any]) -> dict[Any, str]:
    """Give each class a folder name that is safe on every system, and that no other class has.

    Parameters
    ----------
    classes : sequence

    Returns
    -------
    dict
        From class to name.

    Examples
    --------
    >>> from pnp_gcd.commands.sorting import name_folders
    >>> list(name_folders(["rose", "../etc", "CON", "Rose", ""]).values())
    ['rose', '_.._etc', '_CON', 'Rose-2', '_']
    """
    names: dict[Any, str] = {}
    taken: set[str] = {_fold(_UNSORTED)}
    for found in classes:
        names[found] = _find_free(_clean(str(found)), taken)
    return names


def sort_images(
    paths: Sequence[str], classes: Sequence[Any], folder: Path, *, by: Literal["copy", "link"]
) -> None:
    """Put images into a folder for each class.

    Parameters
    ----------
    paths : sequence of str
    classes : sequence
        Of the images; those of None go to a folder of their own.
    folder : Path
        Made here; nothing is written outside it.
    by : {"copy", "link"}
        Copies, or symbolic links to where the images are.
    """
    found = dict.fromkeys(value for value in classes if value is not None)
    rooms = {**name_folders(list(found)), None: _UNSORTED}
    taken: dict[str, set[str]] = {room: set() for room in rooms.values()}
    folder.mkdir()
    for path, value in zip(paths, classes, strict=True):
        room = folder / rooms[value]
        room.mkdir(exist_ok=True)
        source = Path(path)
        place = room / _find_free(source.name, taken[rooms[value]], suffix=source.suffix)
        if by == "link":
            os.symlink(source.resolve(), place)
        else:
            shutil.copyfile(source, place)


def _clean(text: str) -> str:
    name = _FORBIDDEN.sub("_", unicodedata.normalize("NFC", text))
    name = "".join(character for character in name if character.isprintable())
    name = name.encode("utf-8", "replace")[:_N_BYTES].decode("utf-8", "ignore").strip().rstrip(". ")
    is_reserved = name.partition(".")[0].rstrip().casefold() in _RESERVED
    return f"_{name}" if not name or name.startswith((".", "-")) or is_reserved else name


def _find_free(name: str, taken: set[str], suffix: str = "") -> str:
    """Return the name, or with a number in it the first that is free, and take it."""
    stem, number, free = name.removesuffix(suffix), 1, name
    while _fold(free) in taken:
        number += 1
        free = f"{stem}-{number}{suffix}"
    taken.add(_fold(free))
    return free


def _fold(name: str) -> str:
    """Return what file systems that mind neither case nor accents' spelling take for the same."""
    return unicodedata.normalize("NFC", name).casefold()
