"""Images in a folder for each class: ImageNet-100 and Herbarium 19.

Knows folders and paths: no image is opened, no estimator known.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.folders import list_images, list_subfolders
from pnp_gcd.datasets.layouts import Layout, Part, Sizes, check_sizes, find_folder, read_facts
from pnp_gcd.datasets.pickles import read_pickle

__all__ = ["load_herbarium19", "load_imagenet100"]

_IMAGENET = Layout(
    "ImageNet",
    ("ILSVRC/Data/CLS-LOC", "Data/CLS-LOC", "CLS-LOC"),
    ("train", "val"),
    ("train/n01440764/*.JPEG, …", "val/n01440764/*.JPEG, …"),
)
_HERBARIUM = Layout(
    "Herbarium 19",
    ("herbarium_19", "herbarium19"),
    ("small-train", "small-validation"),
    ("small-train/0/*.jpg, … 682", "small-validation/0/*.jpg, … 682"),
)
_HERBARIUM_SIZES = Sizes(683, 34_225, 2_679)
_FEWEST, _MOST, _N_VALIDATION = 732, 1300, 50  # images of an ImageNet class


def load_imagenet100(
    root: str | os.PathLike[str],
    *,
    classes: Sequence[str] | str | os.PathLike[str] | None = None,
    partial: bool = False,
) -> DiscoveryDataset:
    """Load ImageNet-100: the images of 100 ImageNet classes, of which the first 50 are known.

    Parameters
    ----------
    root : str or path
        The folder of ``train`` and ``val``, each with a sub-folder for each class, or the one that holds it
        as ``ILSVRC/Data/CLS-LOC``. Other classes may be there too.
    classes : sequence of str, path or None, default=None
        WordNet numbers such as ``"n01440764"``, or a text file with one in each line. The first half of them,
        sorted, is known. None: the 100 classes that the protocol samples.
    partial : bool, default=False
        Take a copy of which images or classes are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; the validation images are the test rows.
    """
    folder = find_folder(root, _IMAGENET)
    wanted = _read_wordnet(classes)
    known = wanted[: len(wanted) // 2]
    parts = []
    for name in ("train", "val"):
        there = set(list_subfolders(folder / name))
        missing = [label for label in wanted if label not in there]
        if missing and not partial:
            raise FileNotFoundError(
                f"{str(folder / name)!r} has no folder {missing[0]!r}, and {len(missing) - 1} more of "
                f"{len(wanted)} classes are missing. Sort images into a folder for each class, pass classes= "
                "for another sample, or partial=True to take what is there."
            )
        parts.append(_list_classes(folder / name, [label for label in wanted if label in there]))
    train, test = parts
    if not partial:
        _check_imagenet(folder / "train", train, wanted, _FEWEST, _MOST)
        _check_imagenet(folder / "val", test, wanted, _N_VALIDATION, _N_VALIDATION)
    found = Sizes(len(wanted), len(train.y), len(test.y))
    check_sizes(root, "ImageNet-100", found, found, partial=partial)
    return DiscoveryDataset(
        "imagenet100", "images", *train, *test, np.array(wanted), np.array(known, np.str_), "imagenet100"
    )


def load_herbarium19(
    root: str | os.PathLike[str],
    *,
    split_file: str | os.PathLike[str] | None = None,
    draw_known: bool = False,
    partial: bool = False,
) -> DiscoveryDataset:
    """Load Herbarium 19: 34,225 training and 2,679 validation images of 683 species, 341 of them known.

    Parameters
    ----------
    root : str or path
        The folder of ``small-train`` and ``small-validation``, each with a sub-folder for each class.
    split_file : str, path or None, default=None
        Which classes are known: a ``.json`` with a list under ``"known"`` or ``"Old"``, or the published
        ``herbarium_19_class_splits.pkl``, of which nothing is executed. The list has names of folders (str),
        or positions (int) among the folders sorted as text: 0, 1, 10, 100, 101, …
    draw_known : bool, default=False
        Do without ``split_file``: the known classes are drawn by the seed of the split. Results are then not
        comparable with published ones.
    partial : bool, default=False
        Take a copy of which images or classes are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; the validation images are the test rows.
    """
    folder = find_folder(root, _HERBARIUM)
    if (split_file is None) is not draw_known:
        raise ValueError(
            f"split_file={split_file!r} and draw_known={draw_known!r} do not say which classes are known. "
            "Pass split_file=, the protocol's herbarium_19_class_splits.pkl (data/ssb_splits of "
            'github.com/sgvaze/generalized-category-discovery) or a JSON such as {"known": [3, 17, 20]}; or '
            "draw_known=True alone."
        )
    names = list_subfolders(folder / "small-train")
    train = _list_classes(folder / "small-train", names)
    test = _list_classes(folder / "small-validation", list_subfolders(folder / "small-validation"))
    found = Sizes(len(names), len(train.y), len(test.y))
    check_sizes(root, _HERBARIUM.title, found, _HERBARIUM_SIZES, partial=partial)
    known = None if split_file is None else _read_known(Path(split_file), names, partial)
    return DiscoveryDataset(
        "herbarium19", "images", *train, *test, np.array(names), known, preset="herbarium19"
    )


def _list_classes(folder: Path, names: Sequence[str]) -> Part:
    paths: list[str] = []
    labels: list[str] = []
    for name in names:
        found = list_images(folder / name)
        paths += found
        labels += [name] * len(found)
    return Part(np.array(paths, dtype=np.str_), np.array(labels, dtype=np.str_))


def _read_wordnet(classes: Sequence[str] | str | os.PathLike[str] | None) -> list[str]:
    if classes is None:
        names: list[str] = read_facts("imagenet100_classes.json")["classes"]
        return names
    if isinstance(classes, (str, os.PathLike)):
        if not Path(classes).is_file():
            raise FileNotFoundError(
                f"classes={str(classes)!r} is no file. Pass a list, or a file of one a line."
            )
        classes = Path(classes).read_text(encoding="utf-8").split()
    wanted = sorted(classes)
    if len(wanted) < 2 or len(set(wanted)) < len(wanted):
        raise ValueError(
            f"classes has {len(wanted)} names, {len(set(wanted))} of them different. Pass at least two, each "
            "once."
        )
    return wanted


def _check_imagenet(folder: Path, part: Part, names: list[str], fewest: int, most: int) -> None:
    counts = Counter(part.y.tolist())
    for name in names:
        count = counts[name]
        if not fewest <= count <= most:
            raise ValueError(
                f"{str(folder / name)!r} has {count} images, but ImageNet's classes have "
                f"{f'{fewest} to {most}' if fewest < most else fewest} there. Complete the copy, or pass "
                "partial=True to take what is there: results are then not comparable."
            )


def _read_known(path: Path, names: list[str], partial: bool) -> NDArray[np.str_]:
    if not path.is_file():
        raise FileNotFoundError(
            f"split_file={str(path)!r} is no file. Pass a .json or .pkl of known classes."
        )
    content = _read_json(path) if path.suffix.lower() == ".json" else read_pickle(path)
    keys = [key for key in ("known", "Old") if isinstance(content, dict) and key in content]
    listed = content[keys[0]] if keys else None
    if not isinstance(listed, (list, np.ndarray)) or len(listed) == 0:
        raise ValueError(f"split_file={str(path)!r} has no list under 'known' or 'Old'. Write one.")
    labels = np.asarray(listed, dtype=object).tolist()
    if any(isinstance(label, int) for label in labels):
        labels = _name_positions(path, labels, names)
    wrong = [label for label in labels if label not in names]
    if len(set(labels)) < len(labels) or (wrong and not partial):
        raise ValueError(
            f"split_file={str(path)!r} has {len(labels)} known classes, {len(set(labels))} of them "
            f"different, and {len(wrong)} are not there{f', such as {wrong[0]!r}' if wrong else ''}. Write "
            "each name of a folder once."
        )
    known = set(labels) - set(wrong)
    return np.array([name for name in names if name in known], dtype=np.str_)


def _name_positions(path: Path, positions: list[Any], names: list[str]) -> list[str]:
    """Return the folders at these positions, which mean something only where no folder is missing."""
    wrong = [
        place for place in positions if not isinstance(place, int) or not 0 <= place < _HERBARIUM_SIZES[0]
    ]
    if wrong or len(names) != _HERBARIUM_SIZES[0]:
        raise ValueError(
            f"split_file={str(path)!r} has positions{f', such as {wrong[0]!r},' if wrong else ''} for "
            f"{len(names)} folders; they must be from 0 to {_HERBARIUM_SIZES[0] - 1}, among all "
            f"{_HERBARIUM_SIZES[0]}. Complete the copy, or write names of folders."
        )
    return [names[place] for place in positions]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"split_file={str(path)!r} is no JSON: {error}. Mend it.") from error
