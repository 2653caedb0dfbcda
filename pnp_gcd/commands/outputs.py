"""Write folders whole or not at all, and refuse places where something would be lost.

Knows paths: no items, no model.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from pnp_gcd.atomic_files import replace_file

__all__ = ["StagedFolder", "check_free", "check_parent", "write_text"]


def check_free(path: Path, *, force: bool, option: str = "--out") -> None:
    """Refuse a file that is there already, or that cannot be written.

    Parameters
    ----------
    path : Path
    force : bool
        Whether a file may be replaced.
    option : str, default="--out"
        What messages call the path.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{option} {str(path)!r} is a folder. Name a file in it.")
    if path.exists() and not force:
        raise FileExistsError(f"{option} {str(path)!r} is there already. Name another, or pass --force.")
    check_parent(path, option)


def check_parent(path: Path, option: str) -> None:
    """Refuse a path in a folder that is not there, or not to be written to."""
    parent = path.resolve().parent
    if not parent.is_dir():
        raise FileNotFoundError(f"{option} {str(path)!r} is in no folder that exists. Make {parent} first.")
    if not os.access(parent, os.W_OK):
        raise PermissionError(f"{option} {str(path)!r} cannot be written in {parent}. Name another place.")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Parameters
    ----------
    path : Path
    text : str
    """
    replace_file(path, lambda temporary: temporary.write_text(text, encoding="utf-8", newline=""))


class StagedFolder:
    """A folder that is filled out of sight and appears when it is complete.

    Used in a ``with`` statement; what was not committed when it ends is gone.

    Parameters
    ----------
    target : Path
        What becomes of it. If it is there already, only its pieces of the same names are replaced.
    """

    def __init__(self, target: Path) -> None:
        self.target = target.resolve()

    def __enter__(self) -> StagedFolder:
        parent, prefix = self.target.parent, f".{self.target.name}-"
        self._rooms = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        self.path, self._old = self._rooms / "new", self._rooms / "old"
        self.path.mkdir()
        self._old.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _without_interrupts():
            shutil.rmtree(self._rooms, ignore_errors=True)

    def commit(self, *, remove: Iterable[str] = ()) -> None:
        """Put all pieces in their places, or, if one cannot be put there, leave all as it was.

        Parameters
        ----------
        remove : iterable of str
            Pieces of the target that go, if nothing has replaced them.
        """
        with _without_interrupts():
            if not self.target.exists():
                os.rename(self.path, self.target)
                return
            new = sorted(os.listdir(self.path))
            gone = [name for name in {*new, *remove} if os.path.lexists(self.target / name)]
            moves = [(self.target / name, self._old / name) for name in gone]
            moves += [(self.path / name, self.target / name) for name in new]
            _move_all(moves)


def _move_all(moves: list[tuple[Path, Path]]) -> None:
    done: list[tuple[Path, Path]] = []
    try:
        for source, place in moves:
            os.rename(source, place)
            done.append((source, place))
    except OSError:
        for source, place in reversed(done):
            os.rename(place, source)
        raise


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until some renames are done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[int] = []

    def remember(number: int, frame: Any) -> None:
        asked.append(number)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
