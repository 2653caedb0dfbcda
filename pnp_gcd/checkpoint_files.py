"""A folder in which a fit keeps its state, and files that are believed only if they are whole.

A file is safetensors: arrays, and the rest as JSON in its header, with a digest over both. It appears as a
whole or not at all. Knows JSON, arrays, digests and files: no training, no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.atomic_files import LOCK, TEMPORARY, replace_file, take_lock
from pnp_gcd.exceptions import ModelFileError
from pnp_gcd.plain_values import from_plain, to_plain

__all__ = ["CheckpointFolder", "DamagedCheckpointError", "State", "digest_state"]

_ENDING = ".safetensors"


class DamagedCheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why."""


class State(NamedTuple):
    """A state at one moment.

    Attributes
    ----------
    values : dict
        Plain values, as :func:`~pnp_gcd.plain_values.to_plain` takes them.
    arrays : dict
        Arrays by name; C or Fortran order is kept, because products round by it.
    """

    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def digest_state(text: str, arrays: dict[str, NDArray[Any]]) -> str:
    """Return a digest of JSON and arrays, by which damage shows."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _is_turned(array: NDArray[Any]) -> bool:
    return array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous


class CheckpointFolder:
    """The folder of one fit, locked as long as this is open.

    Made by :meth:`open`.
    """

    def __init__(self, folder: Path, lock: IO[str]) -> None:
        self.folder, self._lock = folder, lock

    @classmethod
    def open(cls, checkpoint_dir: str | os.PathLike[str], fingerprint: str) -> CheckpointFolder | None:
        """Return the folder of the fit with this fingerprint; None while another process has it open."""
        folder = Path(checkpoint_dir) / f"fit-{fingerprint[:24]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = take_lock(folder / LOCK)
        except OSError as error:
            raise ValueError(
                f'checkpoint_dir="{os.fspath(checkpoint_dir)}" cannot be used: {error}. Pass a folder that '
                "can be written to."
            ) from error
        if lock is None:
            return None
        for left in folder.glob(f"{TEMPORARY}*"):  # by a process that was killed while writing
            with suppress(OSError):
                left.unlink()
        return cls(folder, lock)

    def path(self, name: str) -> Path:
        """Return where the state of this name is."""
        return self.folder / f"{name}{_ENDING}"

    def write(self, name: str, state: State) -> str:
        """Put a state in the place of the one before, and return its digest; a failure leaves that one."""
        from safetensors.numpy import save

        turned = sorted(key for key, array in state.arrays.items() if _is_turned(array))
        arrays = {
            key: np.array(array.T if key in turned else array, order="C")
            for key, array in state.arrays.items()
        }
        text = json.dumps({"values": to_plain(state.values), "turned": turned}, allow_nan=False)
        digest = digest_state(text, arrays)
        data = save(arrays, metadata={"state": text, "sha256": digest})
        replace_file(self.path(name), lambda temporary: temporary.write_bytes(data))
        return digest

    def read(self, name: str) -> tuple[State, str] | None:
        """Return a state and its digest, None if there is none; one that is not whole is an error."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        path = self.path(name)
        if path.exists() and not path.is_file():  # a pipe would never end
            raise DamagedCheckpointError("it is no plain file")
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedCheckpointError(str(error)) from error
        try:
            # Copies: what is read shares the memory of the file's bytes, and cannot be written to.
            arrays = {key: np.array(array) for key, array in load(data).items()}
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
            text, digest = header["state"], header["sha256"]
            if digest_state(text, arrays) != digest:
                raise DamagedCheckpointError("its sha256 is another")
            document = json.loads(text)
            values = from_plain(document["values"])
            for key in document["turned"]:
                arrays[key] = arrays[key].T
        except (
            SafetensorError,
            ModelFileError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            raise DamagedCheckpointError(f"it is no checkpoint ({type(error).__name__})") from error
        except DamagedCheckpointError:
            raise
        except (ValueError, OverflowError) as error:
            raise DamagedCheckpointError(f"it is no checkpoint ({type(error).__name__})") from error
        return State(values, arrays), digest

    def remove(self) -> None:
        """Remove the folder and what was written here; files of others stay, and with them the folder."""
        with suppress(OSError):
            for path in sorted(self.folder.glob(f"*{_ENDING}"), reverse=True):  # each rest is a valid state
                path.unlink()
            (self.folder / LOCK).unlink()
            self.folder.rmdir()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()
