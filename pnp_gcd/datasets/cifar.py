"""CIFAR-10 and CIFAR-100 from their official archives, in the Python or the binary version.

Knows their files: no torch, no estimator.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets.dataset import DiscoveryDataset
from pnp_gcd.datasets.layouts import Layout, Sizes, check_sizes, find_folder
from pnp_gcd.datasets.pickles import read_pickle

__all__ = ["load_cifar10", "load_cifar100"]

_N_PIXELS = 3 * 32 * 32


class _Version(NamedTuple):
    """One archive: how it lies, its files, and where names and labels are in them."""

    layout: Layout
    train: tuple[str, ...]
    test: tuple[str, ...]
    names: str
    names_key: str = ""
    labels_key: str = ""
    n_label_bytes: int = 0  # before the pixels; the label is the last of them


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_CIFAR10 = (
    _Version(
        Layout(
            "CIFAR-10",
            ("cifar-10-batches-py",),
            ("batches.meta",),
            ("cifar-10-batches-py/batches.meta, data_batch_1 … data_batch_5, test_batch",),
        ),
        _BATCHES,
        ("test_batch",),
        "batches.meta",
        names_key="label_names",
        labels_key="labels",
    ),
    _Version(
        Layout("CIFAR-10", ("cifar-10-batches-bin",), ("batches.meta.txt",), ()),
        tuple(f"{name}.bin" for name in _BATCHES),
        ("test_batch.bin",),
        "batches.meta.txt",
        n_label_bytes=1,
    ),
)
_CIFAR100 = (
    _Version(
        Layout("CIFAR-100", ("cifar-100-python",), ("meta",), ("cifar-100-python/meta, train, test",)),
        ("train",),
        ("test",),
        "meta",
        names_key="fine_label_names",
        labels_key="fine_labels",
    ),
    _Version(
        Layout("CIFAR-100", ("cifar-100-binary",), ("fine_label_names.txt",), ()),
        ("train.bin",),
        ("test.bin",),
        "fine_label_names.txt",
        n_label_bytes=2,  # the coarse label comes first
    ),
)


def load_cifar10(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load CIFAR-10: 50,000 training and 10,000 test images of 10 classes, of which the first 5 are known.

    Parameters
    ----------
    root : str or path
        ``cifar-10-batches-py`` or ``cifar-10-batches-bin``, or the folder that holds it. The pickles of the
        former are read without executing anything of them.
    partial : bool, default=False
        Take a copy of which batches are missing.

    Returns
    -------
    DiscoveryDataset
        Images as (n_rows, 32, 32, 3) uint8, classes by name.
    """
    return _load("cifar10", root, _CIFAR10, Sizes(10, 50_000, 10_000), 5, partial)


def load_cifar100(root: str | os.PathLike[str], *, partial: bool = False) -> DiscoveryDataset:
    """Load CIFAR-100: 50,000 training and 10,000 test images of 100 classes, of which the first 80 are known.

    Parameters
    ----------
    root : str or path
        ``cifar-100-python`` or ``cifar-100-binary``, or the folder that holds it. The pickles of the former
        are read without executing anything of them.
    partial : bool, default=False
        Take a copy with fewer rows.

    Returns
    -------
    DiscoveryDataset
        Images as (n_rows, 32, 32, 3) uint8, (fine) classes by name.
    """
    return _load("cifar100", root, _CIFAR100, Sizes(100, 50_000, 10_000), 80, partial)


def _load(
    name: str,
    root: str | os.PathLike[str],
    versions: tuple[_Version, _Version],
    expected: Sizes,
    n_known: int,
    partial: bool,
) -> DiscoveryDataset:
    version, folder = _find_version(root, versions)
    names = _read_names(folder, version)
    X, codes = _read_files(folder, version.train, version, len(names), partial)
    X_test, codes_test = _read_files(folder, version.test, version, len(names), partial)
    found = Sizes(len(names), len(X), len(X_test))
    check_sizes(root, version.layout.title, found, expected, partial=partial)
    return DiscoveryDataset(
        name,
        "images",
        X,
        names[codes],
        X_test,
        names[codes_test],
        classes=names,
        known_classes=names[:n_known],
        preset=name,
    )


def _find_version(root: str | os.PathLike[str], versions: tuple[_Version, _Version]) -> tuple[_Version, Path]:
    python, binary = versions
    try:
        return binary, find_folder(root, binary.layout)
    except FileNotFoundError:
        return python, find_folder(root, python.layout)


def _read_names(folder: Path, version: _Version) -> NDArray[np.str_]:
    path = folder / version.names
    if version.names_key:
        names = _look_up(path, read_pickle(path), version.names_key)
    else:
        names = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    return np.array([str(name).strip() for name in names])


def _read_files(
    folder: Path, files: tuple[str, ...], version: _Version, n_classes: int, partial: bool
) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    pixels = [np.empty((0, _N_PIXELS), dtype=np.uint8)]
    codes = [np.empty(0, dtype=np.intp)]
    for name in files:
        path = folder / name
        if not path.is_file():
            if partial:
                continue
            raise FileNotFoundError(
                f"{str(path)!r} is missing. Unpack the archive anew, or pass partial=True to take what is "
                "there."
            )
        rows, labels = _read_python(path, version) if version.labels_key else _read_binary(path, version)
        if rows.shape != (len(labels), _N_PIXELS) or rows.dtype != np.uint8:
            raise ValueError(
                f"{str(path)!r} has pixels of the shape {rows.shape} and type {rows.dtype} and {len(labels)} "
                f"labels; expected are {_N_PIXELS} of uint8 for each label. Unpack the archive anew."
            )
        if len(labels) and not 0 <= labels.min() <= labels.max() < n_classes:
            raise ValueError(
                f"{str(path)!r} has labels from {labels.min()} to {labels.max()}, but {n_classes} classes "
                "have names. Unpack the archive anew."
            )
        pixels.append(rows)
        codes.append(labels)
    images = np.concatenate(pixels).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.concatenate(codes)


def _read_python(path: Path, version: _Version) -> tuple[NDArray[Any], NDArray[np.intp]]:
    content = read_pickle(path)
    labels = _look_up(path, content, version.labels_key)
    return np.asarray(_look_up(path, content, "data")), np.asarray(labels, dtype=np.intp)


def _look_up(path: Path, content: Any, key: str) -> Any:
    if not isinstance(content, dict) or key not in content:
        raise ValueError(f"{str(path)!r} has no entry {key!r}. Unpack the archive anew.")
    return content[key]


def _read_binary(path: Path, version: _Version) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
    content = np.fromfile(path, dtype=np.uint8)
    length = version.n_label_bytes + _N_PIXELS
    if len(content) % length:
        raise ValueError(
            f"{str(path)!r} has {len(content)} bytes, no multiple of {length}, the length of a row. Unpack "
            "the archive anew."
        )
    rows = content.reshape(-1, length)
    return rows[:, version.n_label_bytes :], rows[:, version.n_label_bytes - 1].astype(np.intp)
