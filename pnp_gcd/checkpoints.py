"""What of a fit is kept while it runs, and how a later fit with the same settings and rows goes on from it.

Knows a fit's calibration, its trainer and its fingerprint: no epochs' order, no scikit-learn.
"""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._warn import warn_user
from pnp_gcd.calibration import Calibration
from pnp_gcd.checkpoint_files import CheckpointFolder, DamagedCheckpointError, State
from pnp_gcd.clustering import GraphSettings
from pnp_gcd.counting import ClassCount
from pnp_gcd.exceptions import CheckpointWarning
from pnp_gcd.geometry import Geometry
from pnp_gcd.merging import ClassSizes
from pnp_gcd.plain_values import to_plain
from pnp_gcd.rows import Rows
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.trainer import Trainer

__all__ = ["Checkpoints", "describe_fit", "fingerprint_fit"]

_LOG = logging.getLogger(__name__)
# Of the files; another number is another fingerprint.
_FORMAT = 2
# What changes nothing in a result.
_WITHOUT_EFFECT = ("on_interrupt", "checkpoint_dir")
# Packages whose other versions may give other last digits.
_PACKAGES = ("pnp-gcd", "torch", "numpy", "scipy", "scikit-learn", "infomap", "faiss-cpu", "timm")
_CALIBRATION, _EPOCH = "calibration", "epoch"
# What a state of the wrong kind may raise, if its digest is right all the same.
_PROVOKED = (ValueError, TypeError, LookupError, AttributeError, RuntimeError)


def fingerprint_fit(rows: Rows, codes: NDArray[np.int64], settings: TrainingSettings) -> str:
    """Return a digest of all that a result depends on: settings, seed, versions, rows and codes."""
    facts = describe_fit(rows, codes, settings)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def describe_fit(rows: Rows, codes: NDArray[np.int64], settings: TrainingSettings) -> dict[str, Any]:
    """Return all that a result depends on, rows and codes as digests."""
    told = {name: value for name, value in asdict(settings).items() if name not in _WITHOUT_EFFECT}
    return {
        "format": _FORMAT,
        "versions": {package: _version(package) for package in _PACKAGES},
        "settings": _unify(told),
        "rows": rows.fingerprint(),
        "codes": hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest(),
    }


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _unify(value: Any) -> Any:
    """Return plain values in which a number is the same whatever its type: 1, 1.0 and numpy's 1."""
    if isinstance(value, dict):
        return {name: _unify(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unify(item) for item in value]
    return str(float(value)) if isinstance(value, int | float | np.number) else to_plain(value)


class Checkpoints:
    """The checkpoints of one fit; without a folder, none.

    Made by :meth:`open`, to be closed after use. A state that cannot be read is told and not used; one that
    cannot be written is told, and the fit goes on: what was computed is worth more than its safety net.
    """

    def __init__(self, folder: CheckpointFolder | None = None) -> None:
        self.folder = folder
        self._calibration = ""  # its digest, by which an epoch's state belongs to it
        self._pending: State | None = None  # a calibration that could not be written yet
        self._has_warned = False

    @classmethod
    def open(cls, rows: Rows, codes: NDArray[np.int64], settings: TrainingSettings) -> Checkpoints:
        """Open the folder of this fit, if checkpoints are asked for and no other process is at it.

        Of several workers, the first one alone keeps them.
        """
        if settings.checkpoint_dir is None or not rows.world.is_first:
            return cls()
        folder = CheckpointFolder.open(settings.checkpoint_dir, fingerprint_fit(rows, codes, settings))
        if folder is None:
            warn_user(
                "Another fit with the same settings and rows is now using "
                f'checkpoint_dir="{settings.checkpoint_dir}": this one keeps no checkpoints. '
                "Nothing else changes.",
                CheckpointWarning,
            )
        return cls(folder)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        if self.folder is not None:
            self.folder.close()

    def read_calibration(self) -> Calibration | None:
        """Return the calibration of the fit that goes on here, if it came so far."""
        read = self._read(_CALIBRATION)
        if read is None:
            return None
        try:
            calibration = _unpack_calibration(read[0])
        except _PROVOKED as error:
            self._tell_damaged(_CALIBRATION, str(error))
            return None
        self._calibration = read[1]
        _LOG.info("calibration read from the checkpoint %s", self._where(_CALIBRATION))
        return calibration

    def write_calibration(self, calibration: Calibration) -> None:
        """Keep a calibration."""
        if self.folder is not None:
            self._pending = _pack_calibration(calibration)
            self._write_pending()

    def _write_pending(self) -> None:
        if self._pending is not None:
            self._calibration = self._write(_CALIBRATION, self._pending) or ""
            self._pending = None if self._calibration else self._pending

    def restore(self, trainer: Trainer) -> list[dict[str, float]]:
        """Put a trainer into the state of the last epoch kept, and return the history until then."""
        read = self._read(_EPOCH)
        if read is None:
            return []
        state = read[0]
        start = trainer.state()
        try:
            if state.values["calibration"] != self._calibration:
                raise DamagedCheckpointError("it belongs to another calibration")
            history: list[dict[str, float]] = [dict(row) for row in state.values["history"]]
            trainer.restore(State(state.values["trainer"], state.arrays))
        except _PROVOKED as error:
            trainer.restore(start)
            self._tell_damaged(_EPOCH, str(error))
            return []
        _LOG.info("training goes on after epoch %d, from %s", len(history), self._where(_EPOCH))
        return history

    def write_epoch(self, state: State, history: list[dict[str, float]]) -> None:
        """Keep the state after an epoch in the place of the one before."""
        self._write_pending()
        if self.folder is None or not self._calibration:  # without it, nobody could go on from here
            return
        values = {"calibration": self._calibration, "history": history, "trainer": state.values}
        self._write(_EPOCH, State(values, state.arrays))

    def remove(self) -> None:
        """Remove what was kept: the fit has come to its end."""
        if self.folder is not None:
            self.folder.remove()

    def _where(self, name: str) -> str:
        return "" if self.folder is None else str(self.folder.path(name))

    def _read(self, name: str) -> tuple[State, str] | None:
        if self.folder is None:
            return None
        try:
            return self.folder.read(name)
        except DamagedCheckpointError as error:
            self._tell_damaged(name, str(error))
        return None

    def _write(self, name: str, state: State) -> str | None:
        if self.folder is None:
            return None
        try:
            digest = self.folder.write(name, state)
        except OSError as error:
            _LOG.warning("checkpoint %s not written: %s", self._where(name), error)
            if not self._has_warned:
                self._has_warned = True
                warn_user(
                    f'The checkpoint "{self._where(name)}" could not be written: {error}. The fit goes on, '
                    "and the checkpoint before it, if there was one, is as it was. Make room, or pass "
                    "another checkpoint_dir.",
                    CheckpointWarning,
                )
            return None
        _LOG.info("checkpoint %s written", self._where(name))
        return digest

    def _tell_damaged(self, name: str, why: str) -> None:
        begins = "calibration" if name == _CALIBRATION else "training"
        warn_user(
            f'The checkpoint "{self._where(name)}" is damaged: {why}. It is not used, and '
            f"{begins} begins anew.",
            CheckpointWarning,
        )


# --- calibration -------------------------------------------------------------------------------------------


def _pack_calibration(calibration: Calibration) -> State:
    geometry, usual, count = calibration.geometry, calibration.usual, calibration.count
    arrays: dict[str, NDArray[Any]] = {
        "centre": geometry.centre,
        "axes": geometry.axes,
        "scaling": geometry.scaling,
    }
    if usual is not None:
        arrays["usual.known"] = usual.known
    values = {
        "lift": geometry.lift,
        "whitening": geometry.whitening,
        "graph": asdict(calibration.graph),
        "count": None if count is None else list(count),
        "usual": None if usual is None else [usual.mean, usual.spread, usual.shift],
        "cut_part": calibration.cut_part,
        "is_balanced": calibration.is_balanced,
        "accuracy": calibration.accuracy,
        "table": calibration.table,
    }
    return State(values, arrays)


def _unpack_calibration(state: State) -> Calibration:
    values, arrays = state
    usual = values["usual"]
    return Calibration(
        Geometry(arrays["centre"], arrays["axes"], arrays["scaling"], values["lift"], values["whitening"]),
        GraphSettings(**values["graph"]),
        None if values["count"] is None else ClassCount(*values["count"]),
        None if usual is None else ClassSizes(usual[0], usual[1], usual[2], arrays["usual.known"]),
        cut_part=values["cut_part"],
        is_balanced=values["is_balanced"],
        accuracy=values["accuracy"],
        table=values["table"],
    )
