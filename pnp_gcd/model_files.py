"""A folder of text and numbers that appears as a whole or not at all, and is believed only if it is whole.

``model.json`` holds plain values, safetensors files hold arrays: neither can hold code. Digests tell damage,
limits tell forgery. Knows JSON, arrays, digests and files: no estimator, no torch.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.atomic_files import lock_folder, swap, sync_folder, write_new_file
from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.plain_values import MAX_DIGITS

__all__ = ["FILE_NAMES", "FORMAT_VERSION", "Arrays", "ModelFiles", "read_folder", "write_folder"]

FORMAT_VERSION = 1
_FORMAT = "pnp_gcd.PNPDiscoverer"
_DOCUMENT = "model.json"
# All that a folder may hold; it is never overwritten if there is anything else in it.
FILE_NAMES = (_DOCUMENT, "arrays.safetensors", "backbone.safetensors")
# How folders end that are not complete yet, or no longer needed; one that was killed leaves them.
_SAVING = ".saving"
# Classes, history and calibration take far less; what is long is in arrays.
_MAX_DOCUMENT_BYTES = 2**28

Arrays = dict[str, NDArray[Any]]


class ModelFiles(NamedTuple):
    """What a folder holds.

    Attributes
    ----------
    content : dict
        Plain values: None, booleans, finite numbers, strings, lists and dicts of them.
    arrays : dict
        Of each safetensors file, its arrays by their names.
    versions : dict
        Of the packages that wrote it.
    """

    content: dict[str, Any]
    arrays: dict[str, Arrays]
    versions: dict[str, str]


# --- writing -----------------------------------------------------------------------------------------------


def write_folder(path: str | os.PathLike[str], files: ModelFiles, *, overwrite: bool = False) -> None:
    """Write a folder beside its place, then move it there: a failure leaves what was there before.

    Parameters
    ----------
    path : str or path
    files : ModelFiles
        Arrays by the name of their file, ``arrays.safetensors`` or ``backbone.safetensors``.
    overwrite : bool
        Replace a folder that was written here before; no other folder ever is.
    """
    target = Path(os.path.realpath(path))  # a link to a folder stays a link
    _check_target(target, path, overwrite)
    with _hidden_folder(target) as new:
        _fill(new, files)
        _put(new, target)
        sync_folder(target.parent)


@contextmanager
def _hidden_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside its place; what is there of it in the end is removed."""
    _sweep(target)
    handle = None
    while handle is None:  # else another process has just taken it for one that was left behind
        new = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_SAVING}")
        os.mkdir(new)
        try:
            handle = lock_folder(new)
        except OSError:  # no locks here: it is never taken for one that was left behind
            break
    try:
        yield new
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(new, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what processes left beside this place that were killed while they saved to it."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.????????{_SAVING}"):
        with suppress(OSError):
            handle = lock_folder(left)
            if handle is not None:
                if set(os.listdir(left)) <= set(FILE_NAMES):
                    shutil.rmtree(left, ignore_errors=True)
                os.close(handle)


def _put(new: Path, target: Path) -> None:
    """Put a folder in its place, and what was there before, if anything, in the folder's."""
    if not target.exists():
        os.rename(new, target)
    elif not swap(new, target):  # then it takes two steps
        old = new.with_suffix(".previous")
        os.rename(target, old)
        try:
            os.rename(new, target)
        except BaseException:
            os.rename(old, target)
            raise
        os.rename(old, new)


def _check_target(target: Path, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Refuse a place where something would be lost."""
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f'path="{os.fspath(path)}": there is no folder "{target.parent}". Make it first.'
        )
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise FileExistsError(
            f'path="{os.fspath(path)}" is there already. Choose another path, or pass overwrite=True to '
            "replace a model that was saved there."
        )
    if not target.is_dir():
        raise FileExistsError(f'path="{os.fspath(path)}" is a file, not a saved model. Choose another path.')
    found = sorted(entry.name for entry in target.iterdir())
    foreign = [name for name in found if name not in FILE_NAMES]
    if foreign or (found and not _looks_saved(target / _DOCUMENT)):
        told = f"holds {', '.join(foreign[:3])}" if foreign else f"has no {_DOCUMENT} of a saved model"
        raise FileExistsError(
            f'path="{os.fspath(path)}" {told}: only a folder with nothing but a saved model is overwritten. '
            "Choose another path, or move these files away."
        )


def _looks_saved(document: Path) -> bool:
    """Tell whether a file begins as a model's document does, be the rest damaged or not."""
    if not document.is_file():
        return False
    with document.open("rb") as stream:
        return f'"format": "{_FORMAT}"'.encode() in stream.read(200)


def _fill(folder: Path, files: ModelFiles) -> None:
    """Write and sync all files; the document, which tells their digests, last."""
    from safetensors.numpy import save

    described = {}
    for name, arrays in files.arrays.items():
        data = save({key: np.array(array, order="C") for key, array in arrays.items()})
        described[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        write_new_file(folder / name, data)
    document = {
        "format": _FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": files.versions,
        "files": described,
        "content": files.content,
    }
    head = {"format": _FORMAT, "format_version": FORMAT_VERSION, "sha256": _digest(document)}
    text = json.dumps(head | document, indent=1, allow_nan=False)
    write_new_file(folder / _DOCUMENT, text.encode("ascii"))
    sync_folder(folder)


def _digest(document: Mapping[str, Any]) -> str:
    """Return a digest of values, whatever their order and the white space between them."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


# --- reading -----------------------------------------------------------------------------------------------


def read_folder(path: str | os.PathLike[str]) -> ModelFiles:
    """Return what ``write_folder`` has written; what is damaged, of another kind or newer is an error."""
    folder = Path(path)
    if not folder.is_dir():
        _tell_missing(folder)
    document = _read_document(folder)
    described = document["files"]
    if not isinstance(described, dict) or not set(described) <= set(FILE_NAMES[1:]):
        raise _damaged(folder / _DOCUMENT, "its list of files is none")
    arrays = {name: _read_arrays(folder / name, facts) for name, facts in described.items()}
    if not isinstance(document["content"], dict) or not isinstance(document["versions"], dict):
        raise _damaged(folder / _DOCUMENT, "it holds no content")
    return ModelFiles(document["content"], arrays, document["versions"])


def _tell_missing(folder: Path) -> None:
    if folder.exists():
        raise ModelFileError(
            f'path="{folder}" is a file, but a saved model is a folder. Pass the folder that save has made.'
        )
    place = folder.absolute()
    cut_short = sorted(place.parent.glob(f".{place.name}.????????.previous")) if place.name else []
    hint = f' An overwrite was cut short: rename "{cut_short[0]}" to get the model back.' if cut_short else ""
    raise FileNotFoundError(f'path="{folder}" does not exist. Pass the folder that save has made.{hint}')


def _damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f'"{path}" is damaged or was changed: {why}. Copy the saved model again, or save it again from the '
        "session or script that fitted it."
    )


def _read_bytes(path: Path, limit: int) -> bytes:
    """Return a file's bytes; only of a plain file, and no more than ``limit``."""
    try:
        status = path.stat()
    except OSError as error:
        raise _damaged(path, "the file is missing" if not path.exists() else str(error)) from error
    if not stat.S_ISREG(status.st_mode):  # a pipe would never end
        raise _damaged(path, "it is no plain file")
    if status.st_size > limit:
        raise _damaged(path, f"it has {status.st_size} bytes, more than {limit}")
    with path.open("rb") as stream:
        return stream.read(limit + 1)


def _read_document(folder: Path) -> dict[str, Any]:
    path = folder / _DOCUMENT
    if not path.exists():
        raise ModelFileError(
            f'"{folder}" is no saved model: it has no {_DOCUMENT}. Pass the folder that save has made.'
        )
    data = _read_bytes(path, _MAX_DOCUMENT_BYTES)
    try:
        document = json.loads(
            data.decode("ascii"), parse_constant=_refuse, parse_int=_take_short, object_pairs_hook=_take_once
        )
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"it is no JSON as save writes it ({_first_line(error)})") from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise ModelFileError(f'"{path}" is not of a saved PNPDiscoverer. Pass the folder that save has made.')
    _check_version(path, document)
    told = document.pop("sha256", None)
    try:
        is_whole = told == _digest(document)
    except (ValueError, RecursionError):  # a number that is infinite
        is_whole = False
    if not is_whole or not {"files", "versions", "content"} <= set(document):
        raise _damaged(path, "its sha256 is another")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _take_short(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number has {len(digits)} digits")
    return int(digits)


def _take_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name is given twice")
    return values


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _check_version(path: Path, document: dict[str, Any]) -> None:
    version = document.get("format_version")
    if type(version) is not int or version < 1:
        raise _damaged(path, f"format_version={version!r} is none")
    if version > FORMAT_VERSION:
        written = document.get("versions")
        by = str(written.get("pnp_gcd"))[:40] if isinstance(written, dict) else "a newer version"
        raise ModelFileError(
            f'"{path}" is of format {version}, written by pnp_gcd {by}, and this pnp_gcd reads formats up to '
            f"{FORMAT_VERSION}. Upgrade pnp_gcd."
        )


def _read_arrays(path: Path, facts: Any) -> Arrays:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    size = facts.get("bytes") if isinstance(facts, dict) else None
    if type(size) is not int or size < 0:
        raise _damaged(path.with_name(_DOCUMENT), f"it does not tell the size of {path.name}")
    data = _read_bytes(path, size)
    if len(data) != size:
        raise _damaged(path, f"it has {len(data)} bytes instead of {size}")
    if hashlib.sha256(data).hexdigest() != facts.get("sha256"):
        raise _damaged(path, "its sha256 is another")
    try:
        # Copies: what is read shares the memory of the file's bytes, and cannot be written to.
        return {name: np.array(array) for name, array in load(data).items()}
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise _damaged(path, f"it is no safetensors file ({_first_line(error)})") from error
