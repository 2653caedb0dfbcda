"""Write files that appear whole or not at all, and that last.

Knows paths and bytes: no formats, no arguments.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = ["TEMPORARY", "replace_file", "sync_folder", "take_lock", "write_new_file"]

# How files begin that are not complete yet; one that was killed leaves them.
TEMPORARY = ".pnp-gcd-"


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` fill a file beside ``path``, and put it in its place when it is complete.

    Whatever ``write`` raises leaves what was there before, and nothing else.

    Parameters
    ----------
    path : Path
        In a folder that exists. A link is replaced, and what it leads to stays as it is.
    write : callable
        Takes the path to write to, an empty file with the ending of ``path``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pnp_gcd.atomic_files import replace_file
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> replace_file(path, lambda temporary: temporary.write_text("rose"))
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('rose', 1)
    """
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{path.suffix}")
    try:
        temporary.touch(exist_ok=False)  # with the rights that files usually get
        write(temporary)
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_new_file(path: Path, data: bytes) -> None:
    """Write a file that is not there yet, through to the disk.

    Parameters
    ----------
    path : Path
    data : bytes
    """
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make names of files last through a power cut, where the system can.

    Parameters
    ----------
    folder : Path
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def take_lock(path: Path) -> IO[str] | None:
    """Return an open file that is locked until it is closed or its process ends; None if another holds it.

    Parameters
    ----------
    path : Path
        Of a file that is made if need be, in a folder that exists.
    """
    file = path.open("a")
    try:
        import fcntl
    except ImportError:  # Windows: fits that share a folder must not run at once
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever held it may have removed it since it was opened.
        is_there = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        is_there = False
    if not is_there:
        file.close()
        return None
    return file
