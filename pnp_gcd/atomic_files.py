"""Write files that appear whole or not at all, and that last; tell what a killed process left behind.

Knows paths and bytes: no formats, no arguments.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

__all__ = [
    "LOCK",
    "TEMPORARY",
    "lock_folder",
    "make_temporary_folder",
    "replace_file",
    "swap",
    "sweep_temporary_folders",
    "sync_folder",
    "take_lock",
    "write_new_file",
]

# How files begin that are not complete yet; one that was killed leaves them.
TEMPORARY = ".pnp-gcd-"
# The file by which a folder is known to be in use.
LOCK = "lock"
# Of Linux's renameat2: paths from where the process is, and each in the place of the other.
_HERE, _EXCHANGE = -100, 2


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


def swap(one: Path, other: Path) -> bool:
    """Put two files or folders in each other's places in one step; False if the system cannot.

    Parameters
    ----------
    one, other : Path
        Both there, on one disk.
    """
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old one
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


# --- locks -------------------------------------------------------------------------------------------------


def take_lock(path: Path) -> IO[str] | None:
    """Return an open file that is locked until it is closed or its process ends; None if another holds it.

    Where files cannot be locked this is an OSError, on Windows an open file.

    Parameters
    ----------
    path : Path
        Of a file that is made if need be, in a folder that exists.
    """
    file = path.open("a")
    try:
        is_ours = _lock(file.fileno(), path)
    except ImportError:  # Windows: fits that share a folder must not run at once
        return file
    except BaseException:
        file.close()
        raise
    if not is_ours:
        file.close()
        return None
    return file


def lock_folder(folder: Path) -> int | None:
    """Return a handle of a folder that is locked until it is closed; None if another process holds it.

    Where folders cannot be locked this is an OSError.

    Parameters
    ----------
    folder : Path
        A link is none.
    """
    if os.name == "nt":
        raise OSError(errno.ENOTSUP, "Windows locks no folders")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        is_ours = _lock(handle, folder)
    except BaseException:
        os.close(handle)
        raise
    if not is_ours:
        os.close(handle)
        return None
    return handle


def _lock(handle: int, path: Path) -> bool:
    """Lock what is open; False if another process holds it, or has removed it since it was opened."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except (BlockingIOError, FileNotFoundError):
        return False


def make_temporary_folder(prefix: str) -> tuple[Path, IO[str]]:
    """Make a folder for temporary files; it is in use until the file returned with it is closed.

    Parameters
    ----------
    prefix : str
        How its name begins.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        try:
            lock = take_lock(folder / LOCK)
        except OSError:  # no locks here: it is never taken for one that was left behind
            lock = (folder / LOCK).open("a")
        if lock is not None:  # else another process has just taken it for one that was left behind
            return folder, lock


def sweep_temporary_folders(prefix: str) -> None:
    """Remove temporary folders of processes that were killed: ours, with a lock that nobody holds.

    Parameters
    ----------
    prefix : str
        How their names begin.
    """
    try:
        import fcntl  # noqa: F401 - without it a lock says nothing
    except ImportError:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another process may be doing the same, or own it
            if folder.is_symlink() or not (folder / LOCK).is_file() or folder.stat().st_uid != os.getuid():
                continue
            lock = take_lock(folder / LOCK)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                lock.close()
