"""Records of runs: what was run, on what, where, and what came out.

Knows JSON, digests and files: no method, no scores of its own.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import subprocess  # nosec B404 - git alone, with arguments of ours
import warnings
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pnp_gcd
from pnp_gcd.atomic_files import replace_file
from pnp_gcd.datasets import DiscoveryData, DiscoveryDataset
from pnp_gcd.exceptions import DiscoveryWarning

__all__ = [
    "FORMAT",
    "are_files",
    "describe_environment",
    "digest_data",
    "digest_file",
    "digest_files",
    "digest_labels",
    "digest_rows",
    "digest_sources",
    "digest_split",
    "digest_texts",
    "read_record",
    "read_records",
    "write_arrays",
    "write_record",
]

FORMAT = 1
_PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "pillow",
    "faiss-cpu",
    "faiss-gpu-cu12",
    "infomap",
    "scikit-learn",
    "numpy",
    "scipy",
)
_PARTS = ("settings", "parameters", "given", "data", "split", "scores", "seconds", "environment", "started")


def describe_environment() -> dict[str, Any]:
    """Say what a run's figures may depend on beside its settings.

    Returns
    -------
    dict
        Versions of the package, Python and its parties; digest of the package's own sources; the commit, if
        they are a git clone; platform and number of processors.

    Examples
    --------
    >>> from pnp_gcd.benchmark.records import describe_environment
    >>> sorted(describe_environment())[:3]
    ['git', 'n_cpus', 'packages']
    """
    package = Path(pnp_gcd.__file__).parent
    return {
        "pnp_gcd": pnp_gcd.__version__,
        "sources_sha256": digest_sources(),
        "git": _describe_git(package),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _find_version(name)) is not None},
        "platform": platform.platform(),
        "processor": _name_processor(),
        "n_cpus": os.cpu_count(),
    }


def digest_rows(X: NDArray[Any], root: str | None = None) -> str:
    """Return a digest of rows: of their bytes, or of texts; of paths below ``root`` the part behind it."""
    if X.dtype.kind in "USO":
        return digest_labels(X if root is None else [_name_file(path, root) for path in X.tolist()])
    digest = hashlib.sha256(f"{X.dtype.str} {X.shape}\n".encode())
    for block in np.array_split(X, max(1, X.nbytes >> 26)):  # a copy of each, not of all
        digest.update(block.tobytes())
    return digest.hexdigest()


def digest_files(paths: NDArray[Any], root: str) -> str:
    """Return a digest of files: of their names below ``root`` and their contents."""
    digest = hashlib.sha256()
    for path in paths.tolist():
        digest.update(f"{_name_file(path, root)}\t{digest_file(path)}\n".encode())
    return digest.hexdigest()


def digest_labels(labels: Iterable[Any]) -> str:
    """Return a digest of labels by value and order: 1 and "1" differ, 1 and a 1 of NumPy do not."""
    digest = hashlib.sha256()
    for label in np.asarray(labels).tolist():
        digest.update(f"{label!r}\n".encode())
    return digest.hexdigest()


def digest_data(dataset: DiscoveryDataset, root: str | None) -> str:
    """Return a digest of all rows and classes of a data set, training and test, and which are known."""
    rows = (dataset.X, dataset.X_test)
    known = dataset.known_classes
    parts = [
        *(digest_files(X, root) if root and are_files(dataset.kind, X) else digest_rows(X) for X in rows),
        *map(digest_labels, (dataset.y, dataset.y_test, dataset.classes)),
        "" if known is None else digest_labels(known),
    ]
    return digest_texts(*parts)


def digest_split(data: DiscoveryData, root: str | None) -> str:
    """Return a digest of which rows are labelled, unlabelled and unseen; ``root`` is that of files."""
    rows = (data.X_labelled, data.X_unlabelled, data.X_unseen)
    return digest_texts(*(digest_rows(X, root) for X in rows), digest_labels(data.y_labelled))


def digest_texts(*texts: str) -> str:
    """Return one digest of several texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def are_files(kind: str, X: NDArray[Any]) -> bool:
    """Tell whether rows are paths of images."""
    return kind == "images" and X.dtype.kind in "US"


def digest_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_record(record: dict[str, Any], path: Path) -> None:
    """Write a record whole or not at all."""
    text = json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False)
    _replace(path, lambda temporary: temporary.write_text(text + "\n", encoding="utf-8"))


def write_arrays(arrays: dict[str, NDArray[Any]], path: Path) -> None:
    """Write arrays whole or not at all."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    _replace(path, write)


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read one record.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
    """
    try:
        record: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{str(path)!r} is no record of a run: {error}. Pass a file that bench wrote."
        ) from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{str(path)!r} is no record of format {FORMAT}. Pass one that this version wrote.")
    missing = [part for part in _PARTS if part not in record]
    if missing:
        raise ValueError(
            f"{str(path)!r} is a damaged record: it lacks {missing}. Remove it and run it again."
        )
    return record


def read_records(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read all records of a folder, in the order of their file names.

    Parameters
    ----------
    folder : str or path
        Other JSON files in it, and damaged records, are passed over with a warning.

    Returns
    -------
    list of dict
    """
    if not Path(folder).is_dir():
        raise ValueError(f"folder={str(folder)!r} does not exist. Pass the --out folder of a run of bench.")
    records = []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            records.append(read_record(path))
        except ValueError as error:
            warnings.warn(f"Left out: {error}", DiscoveryWarning, stacklevel=2)
    if not records:
        raise ValueError(f"folder={str(folder)!r} holds no record. Run bench with --out {folder} first.")
    return records


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, write)


def _name_file(path: str, root: str) -> str:
    """Return a path from ``root`` on, alike on all systems."""
    try:
        return Path(path).relative_to(root).as_posix()
    except ValueError:
        return Path(path).as_posix()


def _find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _name_processor() -> str:
    """Name what images and epochs run on: the graphics card if there is one."""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else platform.machine()


@functools.cache
def digest_sources() -> str:
    """Return a digest of the package's own files, as they were when first asked for."""
    package, digest = Path(pnp_gcd.__file__).parent, hashlib.sha256()
    for path in sorted(path for suffix in ("*.py", "*.json") for path in package.rglob(suffix)):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _describe_git(package: Path) -> dict[str, Any] | None:
    """Return the commit of a clone whose package is tracked, and whether anything was changed since."""
    command = ["git", "-C", str(package)]
    try:
        tracked = subprocess.run(  # nosec B603 - no shell, nothing of a user in it
            [*command, "ls-files", "--error-unmatch", "__init__.py"], capture_output=True, timeout=10
        )
        if tracked.returncode:
            return None  # not a clone, or one of something else
        commit = subprocess.run(  # nosec B603 - as above
            [*command, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
        status = subprocess.run(  # nosec B603 - as above
            [*command, "status", "--porcelain", "--", "."], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"commit": commit.stdout.strip(), "is_clean": not status.stdout.strip()}
