"""What the loaders share: find a folder, read lists, refuse copies that are not whole.

Knows paths and lines of text: no data set by name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Layout",
    "Part",
    "Sizes",
    "check_sizes",
    "find_folder",
    "keep_present",
    "read_facts",
    "read_pairs",
]


class Layout(NamedTuple):
    """How a data set lies on disk: its title, names its folder may have, files that show it, a drawing."""

    title: str
    folders: tuple[str, ...]
    markers: tuple[str, ...]
    drawing: tuple[str, ...]


class Sizes(NamedTuple):
    """Published numbers of classes, training rows and test rows."""

    n_classes: int
    n_train: int
    n_test: int


class Part(NamedTuple):
    """Rows and their classes."""

    X: NDArray[Any]
    y: NDArray[Any]


def find_folder(root: str | os.PathLike[str], layout: Layout) -> Path:
    """Return the folder of a data set: ``root`` itself or a sub-folder of one of its usual names."""
    for folder in (Path(root), *(Path(root) / name for name in layout.folders)):
        if all((folder / marker).exists() for marker in layout.markers):
            return folder
    folder = next((Path(root) / name for name in layout.folders if (Path(root) / name).is_dir()), Path(root))
    missing = [marker for marker in layout.markers if not (folder / marker).exists()]
    drawing = "".join(f"\n  {line}" for line in layout.drawing)
    raise FileNotFoundError(
        f"root={str(root)!r} has no {layout.title}: {str(folder / missing[0])!r} is missing. Pass the folder "
        f"that holds it; nothing is downloaded. Expected:{drawing}"
    )


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Read lines of a word and the rest, such as ``12 001.Albatross/a.jpg``; empty lines are passed over."""
    pairs = []
    with path.open(encoding="utf-8") as file:
        try:
            for number, line in enumerate(file, start=1):
                words = line.strip().split(maxsplit=1)
                if len(words) == 2:
                    pairs.append((words[0], words[1]))
                elif words:
                    raise ValueError(
                        f"{str(path)!r} has {line.strip()!r} in line {number}, where two words or more are "
                        "expected. Get the file anew."
                    )
        except UnicodeDecodeError as error:
            raise ValueError(f"{str(path)!r} is no text: {error}. Get the file anew.") from error
    return pairs


def keep_present(paths: Sequence[Path], labels: Sequence[str], *, partial: bool) -> Part:
    """Return the images that are on disk; without ``partial`` a missing one is an error."""
    names: dict[Path, set[str]] = {}
    for folder in {path.parent for path in paths}:
        names[folder] = set(os.listdir(folder)) if folder.is_dir() else set()
    there = [path.name in names[path.parent] for path in paths]
    if not all(there) and not partial:
        missing = there.index(False)
        raise FileNotFoundError(
            f"{str(paths[missing])!r} is missing, and {there.count(False) - 1} more of {len(paths)} images "
            "that the lists name. Complete the copy, or pass partial=True to take what is there."
        )
    kept = [
        (str(path), label) for path, label, is_there in zip(paths, labels, there, strict=True) if is_there
    ]
    return Part(
        np.array([path for path, _ in kept], dtype=np.str_), np.array([name for _, name in kept], np.str_)
    )


def check_sizes(
    root: str | os.PathLike[str], title: str, found: Sizes, expected: Sizes, *, partial: bool
) -> None:
    """Refuse a copy whose numbers are not the published ones, unless ``partial`` allows it."""
    if found.n_train == 0:
        raise ValueError(f"root={str(root)!r} has no training row of {title}. Complete the copy.")
    if found != expected and not partial:
        raise ValueError(
            f"root={str(root)!r} has {found.n_classes} classes, {found.n_train} training and {found.n_test} "
            f"test rows of {title}, but {expected.n_classes}, {expected.n_train} and {expected.n_test} are "
            "published. Complete the copy, or pass partial=True to take what is there: results are then not "
            "comparable."
        )


def read_facts(name: str) -> dict[str, Any]:
    """Read a JSON file that ships with the package."""
    text = resources.files("pnp_gcd.datasets").joinpath(name).read_text(encoding="utf-8")
    facts: dict[str, Any] = json.loads(text)
    return facts
