"""Photographs with lists beside them: CUB-200-2011, Stanford Cars, FGVC-Aircraft, Oxford-IIIT Pets.

Knows their lists and paths: no image is opened, no estimator known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.layouts import (
    Layout,
    Part,
    Sizes,
    check_sizes,
    find_folder,
    keep_present,
    read_facts,
    read_pairs,
)

__all__ = ["load_cub200", "load_fgvc_aircraft", "load_oxford_pets", "load_stanford_cars"]

_CUB = Layout(
    "CUB-200-2011",
    ("CUB_200_2011",),
    ("images.txt", "image_class_labels.txt", "train_test_split.txt", "images"),
    (
        "CUB_200_2011/images.txt, image_class_labels.txt, train_test_split.txt",
        "CUB_200_2011/images/001.Black_footed_Albatross/*.jpg",
    ),
)
_CARS = Layout(
    "Stanford Cars",
    ("stanford_cars", "StanfordCars"),
    ("cars_train", "cars_test", "devkit"),
    (
        "cars_train/*.jpg, cars_test/*.jpg",
        "devkit/cars_meta.mat, cars_train_annos.mat, cars_test_annos_withlabels.mat",
    ),
)
_AIRCRAFT = Layout(
    "FGVC-Aircraft",
    ("fgvc-aircraft-2013b",),
    (
        "data/variants.txt",
        "data/images_variant_trainval.txt",
        "data/images_variant_test.txt",
        "data/images",
    ),
    (
        "fgvc-aircraft-2013b/data/variants.txt, images_variant_trainval.txt, images_variant_test.txt",
        "fgvc-aircraft-2013b/data/images/*.jpg",
    ),
)
_PETS = Layout(
    "Oxford-IIIT Pets",
    ("oxford-iiit-pet",),
    ("annotations/trainval.txt", "annotations/test.txt", "images"),
    ("annotations/trainval.txt, test.txt", "images/Abyssinian_1.jpg, …"),
)
_SIZES = {
    "cub200": Sizes(200, 5994, 5794),
    "stanford_cars": Sizes(196, 8144, 8041),
    "fgvc_aircraft": Sizes(100, 6667, 3333),
    "oxford_pets": Sizes(37, 3680, 3669),
}
_N_KNOWN_PETS = 19


def load_cub200(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load CUB-200-2011: 5,994 training and 5,794 test photographs of 200 birds, 100 of them known.

    Parameters
    ----------
    root : str or path
        ``CUB_200_2011``, or the folder that holds it.
    partial : bool, default=False
        Take a copy of which images or classes are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; known classes are those of the Semantic Shift Benchmark.
    """
    folder = find_folder(root, _CUB)
    lists = [
        dict(read_pairs(folder / f"{name}.txt"))
        for name in ("images", "image_class_labels", "train_test_split")
    ]
    images, numbers, splits = lists
    if not images.keys() == numbers.keys() == splits.keys():
        raise ValueError(
            f"root={str(root)!r} has lists of {len(images)}, {len(numbers)} and {len(splits)} images, which "
            "do not name the same ones. Get images.txt, image_class_labels.txt and train_test_split.txt anew."
        )
    names = _name_classes(
        folder / "image_class_labels.txt", ((numbers[key], Path(images[key]).parent.name) for key in images)
    )
    parts = []
    for is_training in ("1", "0"):
        keys = [key for key in images if splits[key] == is_training]
        paths = [folder / "images" / images[key] for key in keys]
        parts.append(keep_present(paths, [Path(images[key]).parent.name for key in keys], partial=partial))
    return _assemble("cub200", root, _CUB, parts, names, partial)


def load_stanford_cars(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load Stanford Cars: 8,144 training and 8,041 test photographs of 196 models, 98 of them known.

    Parameters
    ----------
    root : str or path
        The folder of ``cars_train``, ``cars_test`` and ``devkit``. The labels of test images,
        ``cars_test_annos_withlabels.mat``, may be in ``devkit`` or beside it.
    partial : bool, default=False
        Take a copy of which images, classes or the labels of test images are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; known classes are those of the Semantic Shift Benchmark.
    """
    folder = find_folder(root, _CARS)
    titles = np.atleast_1d(_read_mat(folder / "devkit" / "cars_meta.mat", "class_names"))
    names = {number: str(title) for number, title in enumerate(titles, start=1)}
    labels = [folder / place / "cars_test_annos_withlabels.mat" for place in ("devkit", "")]
    test = next((path for path in labels if path.is_file()), labels[0])
    parts = []
    for path, images in ((folder / "devkit" / "cars_train_annos.mat", "cars_train"), (test, "cars_test")):
        if partial and path == test and not path.is_file():
            parts.append(Part(np.empty(0, dtype=np.str_), np.empty(0, dtype=np.str_)))
            continue
        rows = np.atleast_1d(_read_mat(path, "annotations"))
        if rows.dtype.names is None or not {"class", "fname"} <= set(rows.dtype.names):
            raise ValueError(f"{str(path)!r} has no fields 'class' and 'fname'. Get the devkit anew.")
        numbers = [int(number) for number in rows["class"]]
        unnamed = [number for number in numbers if number not in names]
        if unnamed:
            raise ValueError(
                f"{str(path)!r} has class {unnamed[0]}, but cars_meta.mat names {len(names)}. Get the devkit "
                "anew."
            )
        paths = [folder / images / str(name) for name in rows["fname"]]
        parts.append(keep_present(paths, [names[number] for number in numbers], partial=partial))
    return _assemble("stanford_cars", root, _CARS, parts, names, partial)


def load_fgvc_aircraft(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load FGVC-Aircraft: 6,667 training and 3,333 test photographs of 100 variants, 50 of them known.

    Parameters
    ----------
    root : str or path
        ``fgvc-aircraft-2013b``, or the folder that holds it.
    partial : bool, default=False
        Take a copy of which images or classes are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; the official training and validation images together are ``X``. Known classes are those of the
        Semantic Shift Benchmark.
    """
    folder = find_folder(root, _AIRCRAFT) / "data"
    variants = [line.strip() for line in (folder / "variants.txt").read_text(encoding="utf-8").splitlines()]
    names = dict(enumerate(sorted(filter(None, variants)), start=1))
    parts = []
    for name in ("trainval", "test"):
        path = folder / f"images_variant_{name}.txt"
        pairs = read_pairs(path)
        unnamed = {label for _, label in pairs} - set(names.values())
        if unnamed:
            raise ValueError(
                f"{str(path)!r} has the variant {min(unnamed)!r}, which variants.txt does not name. Get both "
                "anew."
            )
        images = [folder / "images" / f"{number}.jpg" for number, _ in pairs]
        parts.append(keep_present(images, [label for _, label in pairs], partial=partial))
    return _assemble("fgvc_aircraft", root, _AIRCRAFT, parts, names, partial)


def load_oxford_pets(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load Oxford-IIIT Pets: 3,680 training and 3,669 test photographs of 37 breeds, the first 19 known.

    Parameters
    ----------
    root : str or path
        The folder of ``images`` and ``annotations``, or the one that holds it as ``oxford-iiit-pet``.
    partial : bool, default=False
        Take a copy of which images or classes are missing.

    Returns
    -------
    DiscoveryDataset
        Paths; classes in the order of their official numbers.
    """
    folder = find_folder(root, _PETS)
    lists = []
    for name in ("trainval", "test"):
        path = folder / "annotations" / f"{name}.txt"
        pairs = [(stem, rest.split()[0]) for stem, rest in read_pairs(path) if not stem.startswith("#")]
        lists.append([(number, stem.rpartition("_")[0], stem) for stem, number in pairs])
    names = _name_classes(
        folder / "annotations", ((number, label) for part in lists for number, label, _ in part)
    )
    parts = [
        keep_present(
            [folder / "images" / f"{stem}.jpg" for _, _, stem in part],
            [label for _, label, _ in part],
            partial=partial,
        )
        for part in lists
    ]
    return _assemble("oxford_pets", root, _PETS, parts, names, partial)


def _name_classes(path: Path, pairs: Iterable[tuple[str, str]]) -> dict[int, str]:
    """Return the names of classes by their numbers, ascending; two names of one number are an error."""
    names: dict[int, str] = {}
    for number, name in pairs:
        if not number.isdecimal() or not name:
            raise ValueError(f"{str(path)!r} has the class {number!r} for {name!r}. Get the lists anew.")
        if names.setdefault(int(number), name) != name:
            raise ValueError(
                f"{str(path)!r} has class {number} for both {names[int(number)]!r} and {name!r}. Get the "
                "lists anew."
            )
    return dict(sorted(names.items()))


def _read_mat(path: Path, key: str) -> Any:
    from scipy.io import loadmat

    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} is missing. It comes with the devkit; labels of test images are a file of their "
            "own, without which partial=True takes no test images."
        )
    try:
        return loadmat(path, squeeze_me=True)[key]
    except Exception as error:  # SciPy raises many kinds for files that are none of MATLAB's
        raise ValueError(f"{str(path)!r} has no {key!r} to read: {error}. Get the devkit anew.") from error


def _assemble(
    name: str,
    root: str | os.PathLike[str],
    layout: Layout,
    parts: list[Part],
    names: dict[int, str],
    partial: bool,
) -> DiscoveryDataset:
    train, test = parts
    found = Sizes(len(names), len(train.y), len(test.y))
    check_sizes(root, layout.title, found, _SIZES[name], partial=partial)
    if name == "oxford_pets":
        known = set(range(_N_KNOWN_PETS))
    else:
        known = set(read_facts("ssb_classes.json")[name]["known"])
    return DiscoveryDataset(
        name,
        "images",
        train.X,
        train.y,
        test.X,
        test.y,
        classes=np.array(list(names.values())),
        known_classes=np.array([title for number, title in names.items() if number - 1 in known], np.str_),
        preset=None if name == "oxford_pets" else name,
    )
