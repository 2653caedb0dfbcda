"""Folders of images as arguments of ``fit``.

Knows paths only: no image is opened, no estimator known.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ImageFolder", "read_image_folder"]

_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}


class ImageFolder(NamedTuple):
    """Paths of images, in the order of the arguments of ``fit``.

    Attributes
    ----------
    X_labelled : ndarray of shape (n_labelled,), str
        Paths of images whose class is known.
    y_labelled : ndarray of shape (n_labelled,), str
        Their classes: names of sub-folders.
    X_unlabelled : ndarray of shape (n_unlabelled,), str
        Paths of the others.
    """

    X_labelled: NDArray[np.str_]
    y_labelled: NDArray[np.str_]
    X_unlabelled: NDArray[np.str_]


def read_image_folder(root: str | os.PathLike[str], *, unlabelled: str = "unlabelled") -> ImageFolder:
    """List the images of a folder with a sub-folder for each class, and one for what is unlabelled.

    Sub-folders of these are searched too. Hidden files and folders, and files that are no images by their
    ending, are passed over.

    Parameters
    ----------
    root : str or path
    unlabelled : str, default="unlabelled"
        Name of the sub-folder of images without a label.

    Returns
    -------
    ImageFolder
        Sorted paths, ready for ``model.fit(*read_image_folder(root))``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pnp_gcd.datasets import read_image_folder
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("cat/1.jpg", "cat/2.jpg", "dog/1.png", "unlabelled/a.jpg"):
    ...     (root / name).parent.mkdir(exist_ok=True)
    ...     (root / name).touch()
    >>> folder = read_image_folder(root)
    >>> folder.y_labelled.tolist(), len(folder.X_unlabelled)
    (['cat', 'cat', 'dog'], 1)
    """
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"root={str(root)!r} is no folder. Pass one with a sub-folder for each class.")
    folders = sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))
    names = [folder.name for folder in folders]
    if unlabelled not in names:
        raise ValueError(
            f"root={str(root)!r} has no sub-folder {unlabelled!r}, but {names[:5]}. Put the images without a "
            "label there, or name theirs: unlabelled=."
        )
    images = {folder.name: list_images(folder) for folder in folders}
    empty = [name for name, paths in images.items() if not paths]
    if empty:
        raise ValueError(
            f"root={str(root)!r} has no image in {empty[:5]}. Fill or remove these folders; images end in "
            f"{', '.join(sorted(_SUFFIXES))}."
        )
    pool = images.pop(unlabelled)
    if not images:
        raise ValueError(
            f"root={str(root)!r} has no class beside {unlabelled!r}. Put labelled images into a sub-folder "
            "for each class, or fit on paths alone with y=None."
        )
    labels = [name for name, paths in images.items() for _ in paths]
    paths = [path for class_paths in images.values() for path in class_paths]
    return ImageFolder(np.array(paths), np.array(labels), np.array(pool))


def list_images(folder: str | os.PathLike[str]) -> list[str]:
    """List the images in a folder and its sub-folders, sorted level by level."""
    found = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                found += list_images(entry.path)
            elif os.path.splitext(entry.name)[1].lower() in _SUFFIXES and entry.is_file():
                found.append(entry.path)
    return found


def list_classes(
    root: str | os.PathLike[str], parameter: str = "root"
) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """List the images of a folder with a sub-folder for each class: paths, and their classes."""
    if not os.path.isdir(root):
        raise FileNotFoundError(
            f"{parameter}={str(root)!r} is no folder. Pass one with a sub-folder for each class."
        )
    images = {name: list_images(os.path.join(root, name)) for name in list_subfolders(root)}
    empty = [name for name, paths in images.items() if not paths]
    if empty or not images:
        where = f"in {empty[:5]}" if empty else "in sub-folders"
        raise ValueError(
            f"{parameter}={str(root)!r} has no image {where}. Put those of each class into a sub-folder of "
            f"its own; images end in {', '.join(sorted(_SUFFIXES))}."
        )
    labels = [name for name, paths in images.items() for _ in paths]
    return np.array([path for paths in images.values() for path in paths]), np.array(labels)


def list_subfolders(root: str | os.PathLike[str]) -> list[str]:
    """List the names of the sub-folders of a folder, sorted; hidden ones are passed over."""
    with os.scandir(root) as entries:
        return sorted(entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
