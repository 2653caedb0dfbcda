"""The loop of the paper: calibrate, train epoch by epoch, label.

Knows arrays, codes and settings: no scikit-learn estimators, no class names, no truth about
unlabelled rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pnp_gcd.calibration import Calibration, Request, calibrate
from pnp_gcd.checkpoints import Checkpoints, describe_fit
from pnp_gcd.diagnosis import warn_of_divergence, warn_of_result
from pnp_gcd.geometry import reduce_rows
from pnp_gcd.labelling import Labelling, classify_rows, fit_sharpness, measure_closeness, score_classes
from pnp_gcd.prober import count_taken
from pnp_gcd.probing import ProbeSettings
from pnp_gcd.rows import Copies, Rows
from pnp_gcd.sampling import draw_rows
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.trainer import NotFiniteError, Trainer

__all__ = ["Discovery", "discover"]

_LOG = logging.getLogger(__name__)
_Report = Callable[[str, dict[str, Any]], bool]

# With fewer different rows than this, copies are kept.
_FEWEST_ROWS = 10
# Rows by which the probabilities are calibrated.
_MAX_SCORED_ROWS = 5_000


@dataclass(frozen=True)
class Discovery:
    """What a fit found.

    Attributes
    ----------
    encoder : nn.Module
        The student's encoder; the teacher, the memory and the heads are dropped.
    labelling : Labelling
        Prototypes in the encoder's space and the class of each.
    row_classes : ndarray of shape (n,)
        Class of each row by its prototypes and class means.
    sharpness : float
        Factor on log-scores that makes probabilities as sure as the classes are right.
    usual_closeness : ndarray of shape (q,)
        Cosines with the nearest class mean that the rows of the fit have, quantiles in rising order.
    interval : tuple of int
        Lowest and highest number of classes that the evidence allows.
    calibration : Calibration
    history : list of dict
        A row per epoch.
    """

    encoder: nn.Module
    labelling: Labelling
    row_classes: NDArray[np.int64]
    sharpness: float
    usual_closeness: NDArray[np.float64]
    interval: tuple[int, int]
    calibration: Calibration
    history: list[dict[str, float]]

    def spread_over(self, is_used: NDArray[np.bool_]) -> Discovery:
        """Return this for more rows: those that took no part get class −1."""
        row_classes = np.full(len(is_used), -1, dtype=np.int64)
        row_classes[is_used] = self.row_classes
        return replace(self, row_classes=row_classes)


def discover(
    rows: Rows,
    codes: NDArray[np.int64],
    settings: TrainingSettings,
    *,
    report: _Report = lambda stage, row: False,
) -> Discovery:
    """Learn features and prototypes from labelled and unlabelled rows.

    Parameters
    ----------
    rows : Rows
        n feature vectors or images.
    codes : ndarray of shape (n,)
        Known-class codes 0 … C−1, −1 for unlabelled rows.
    settings : TrainingSettings
    report : callable
        Told ``("calibration", row)`` and ``("epoch", row)`` as they are made, and ``("begin", …)`` before an
        epoch. True after an epoch ends
        the training there.
    """
    if rows.world.size > 1:
        told = describe_fit(rows, codes, settings)
        named = {"rows": told["rows"], "labels": told["codes"], "parameters": repr(told["settings"])}
        rows.world.agree(named | {"versions": repr(told["versions"])})
    return _discover_with_all(rows, codes, settings, report)


def _discover_with_all(
    rows: Rows, codes: NDArray[np.int64], settings: TrainingSettings, report: _Report
) -> Discovery:
    """Discover from the rows that a fit needs, and give all of them a class."""
    if settings.max_samples is not None and len(rows) > settings.max_samples:
        return _discover_by_sample(rows, codes, settings, report)
    copies = rows.find_copies()
    merged = _merge_codes(codes, copies)
    # Copies of a row would fill its list of neighbours: they count once, if that leaves rows enough.
    if len(copies.first) < len(rows) and _has_enough(merged, codes, settings):
        found = _discover_with_all(rows.take(copies.first), merged, settings, report)
        return replace(found, row_classes=found.row_classes[copies.place])
    with Checkpoints.open(rows, codes, settings) as checkpoints:
        return _discover(rows, codes, settings, checkpoints, report)


def _discover(
    rows: Rows,
    codes: NDArray[np.int64],
    settings: TrainingSettings,
    checkpoints: Checkpoints,
    report: _Report,
) -> Discovery:
    seeds = np.random.SeedSequence(settings.seed).generate_state(4)
    world = rows.world
    world.note("while worker 0 calibrated")
    calibration = world.on_first(checkpoints.read_calibration)
    if calibration is None:
        described = rows.describe()
        calibration = world.on_first(
            lambda: _calibrate(described, codes, settings, int(seeds[0]), report),
        )
        checkpoints.write_calibration(calibration)
    _log_calibration(calibration)
    source = rows.place(calibration.geometry, settings, torch.Generator().manual_seed(int(seeds[3]) + 1))
    trainer = Trainer(source, codes, _probe_settings(calibration, codes, settings), settings, seeds)
    history, is_cut_short = _train(trainer, settings, checkpoints, report)
    world.note("while worker 0 labelled the rows")
    features = source.encode(trainer.student.encoder.eval())
    found = world.on_first(lambda: _conclude(trainer, features, calibration, history))
    if not is_cut_short:  # else a later fit may still go on
        checkpoints.remove()
    _LOG.info("%d classes, %d of them known", found.labelling.n_classes, found.labelling.n_known)
    warn_of_result(found.row_classes, codes, found.labelling, calibration, settings)
    return found


def _conclude(
    trainer: Trainer,
    features: NDArray[np.float32],
    calibration: Calibration,
    history: list[dict[str, float]],
) -> Discovery:
    """Return what a trained encoder and its features say."""
    settings, codes = trainer.settings, trainer.codes
    n_taken = count_taken(trainer.student, features)
    labelling = trainer.label(features)
    return Discovery(
        trainer.student.encoder.cpu(),  # a model may be loaded where there is no GPU
        labelling,
        classify_rows(features, labelling, settings.temperature),
        _sharpness(features[codes < 0], labelling, settings.temperature, calibration.accuracy),
        _usual_closeness(features, labelling),
        _interval(labelling, calibration, settings, n_taken),
        calibration,
        history,
    )


def _train(
    trainer: Trainer, settings: TrainingSettings, checkpoints: Checkpoints, report: _Report
) -> tuple[list[dict[str, float]], bool]:
    """Run the epochs that are left; return the history, and whether Ctrl-C cut it short.

    However training ends, the trainer is then in the state after the last row of the history. Epochs of
    an earlier fit that goes on here are reported once more, so that whoever listens hears of every epoch.
    """
    world = trainer.world
    history = world.on_first(lambda: checkpoints.restore(trainer))
    trainer.follow_first()
    last = trainer.state()
    try:
        with world.hold_interrupts() as decide:
            for epoch in range(settings.max_iter):
                world.note(f"in epoch {epoch + 1} of {settings.max_iter}")
                report("begin", {"epoch": float(epoch)})
                if epoch >= len(history):
                    row = trainer.run_epoch(epoch)
                    last, history = trainer.state(), [*history, row]  # both or, on Ctrl-C, none
                    _log_epoch(row, epoch, settings)
                    checkpoints.write_epoch(last, history)
                if decide(report("epoch", history[epoch])):
                    break
    except KeyboardInterrupt:
        if settings.on_interrupt == "raise":
            raise
        _LOG.info("interrupted: kept as it was after epoch %d", len(history))
        trainer.restore(last)
        return history, True
    except NotFiniteError as error:
        trainer.restore(last)
        warn_of_divergence(error, len(history), settings)
    return history, False


def _log_epoch(row: dict[str, float], epoch: int, settings: TrainingSettings) -> None:
    _LOG.info(
        "epoch %d of %d: loss %.6g, %d clusters, %.3g s",
        epoch + 1,
        settings.max_iter,
        row["total"],
        row["n_active"],
        row["seconds"],
    )


def _log_calibration(calibration: Calibration) -> None:
    graph = calibration.graph
    _LOG.info(
        "calibration: whitening %s, %d neighbours, threshold %.3g, resolution %.3g, %d settings tried",
        calibration.geometry.whitening,
        graph.n_neighbors,
        graph.similarity_threshold,
        graph.resolution,
        len(calibration.table),
    )


def _discover_by_sample(
    rows: Rows,
    codes: NDArray[np.int64],
    settings: TrainingSettings,
    report: Callable[[str, dict[str, Any]], bool],
) -> Discovery:
    """Learn from some of the rows, and give all of them their class as new rows get it."""
    assert settings.max_samples is not None
    drawn = draw_rows(codes, settings.max_samples, settings.seed)
    learning = replace(settings, max_samples=None)
    found = _discover_with_all(rows.take(drawn), codes[drawn], learning, report)
    classes = [
        classify_rows(features, found.labelling, settings.temperature)
        for features in rows.encode_in_blocks(found.calibration.geometry, found.encoder)
    ]
    return replace(found, row_classes=np.concatenate(classes))


def _merge_codes(codes: NDArray[np.int64], copies: Copies) -> NDArray[np.int64]:
    """Return one code for the copies of each row: the first label that one of them has."""
    merged = np.full(len(copies.first), -1, dtype=np.int64)
    labelled = np.flatnonzero(codes >= 0)[::-1]  # backwards, so that the first one is written last
    merged[copies.place[labelled]] = codes[labelled]
    return merged


def _has_enough(merged: NDArray[np.int64], codes: NDArray[np.int64], settings: TrainingSettings) -> bool:
    """Tell whether rows without their copies still satisfy what was asked for, with a label a class."""
    n_new = (settings.n_clusters or 0) - (int(codes.max(initial=-1)) + 1)
    least = max(_FEWEST_ROWS, (settings.n_neighbors or 0) + 2)
    has_classes = len(np.unique(merged[merged >= 0])) == len(np.unique(codes[codes >= 0]))
    return has_classes and len(merged) >= least and int((merged < 0).sum()) >= max(1, n_new)


def _calibrate(
    features: NDArray[np.floating],
    codes: NDArray[np.int64],
    settings: TrainingSettings,
    seed: int,
    report: _Report,
) -> Calibration:
    request = Request(
        n_neighbors=settings.n_neighbors,
        similarity_threshold=settings.similarity_threshold,
        resolution=settings.resolution,
        edge_weights=settings.edge_weights,
        whitenings=None if settings.whitening == "auto" else [settings.whitening],
        temperature=settings.temperature,
    )

    def tell(row: dict[str, Any]) -> None:
        _LOG.debug("tried: %s", row)
        report("calibration", row)

    return calibrate(
        reduce_rows(features, n_components=settings.n_components),
        codes,
        request,
        seed=seed,
        report=tell,
    )


def _probe_settings(
    calibration: Calibration, codes: NDArray[np.int64], settings: TrainingSettings
) -> ProbeSettings:
    """Merge to the number of classes asked for, else at the cut asked for, else to the number counted."""
    n_classes, interval = settings.n_clusters, None
    if n_classes is None and settings.merge_cut is None and calibration.count is not None:
        n_known = int(codes.max(initial=-1)) + 1
        n_classes = n_known + round(calibration.count.n_new)
        interval = calibration.count.interval(n_known)
    return ProbeSettings(
        graph=calibration.graph,
        n_classes=n_classes,
        interval=interval,
        usual=calibration.usual if settings.merge_cut is None else None,
        is_balanced=calibration.is_balanced,
        merge_cut=float("inf") if settings.merge_cut is None else settings.merge_cut,
        cluster_on=settings.cluster_on,
        temperature=settings.temperature,
        cut_part=calibration.cut_part,
        may_drop_threshold=settings.similarity_threshold is None,
        may_make_finer=settings.resolution is None,
    )


def _thin(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return every n-th row, so that not many more than enough are scored."""
    return rows[:: max(1, len(rows) // _MAX_SCORED_ROWS)]


def _sharpness(
    features: NDArray[np.float32], labelling: Labelling, temperature: float, accuracy: float | None
) -> float:
    """Return the factor on log-scores; 1 where nothing could be held back to learn it from."""
    if accuracy is None or not len(features) or labelling.n_classes < 2:
        return 1.0
    sample = _thin(features)
    return fit_sharpness(score_classes(sample, labelling, temperature), accuracy)


def _usual_closeness(features: NDArray[np.float32], labelling: Labelling) -> NDArray[np.float64]:
    sample = _thin(features)
    out: NDArray[np.float64] = np.quantile(measure_closeness(sample, labelling), np.linspace(0, 1, 1001))
    return out


def _interval(
    labelling: Labelling, calibration: Calibration, settings: TrainingSettings, n_taken: int
) -> tuple[int, int]:
    """Return the counted interval, widened to hold the number reported; a number given is certain.

    Each potential prototype that took members speaks for one class more than were reported.
    """
    n_classes = labelling.n_classes
    if settings.n_clusters is not None or calibration.count is None:
        return n_classes, n_classes
    low, high = calibration.count.interval(labelling.n_known)
    return min(low, n_classes), max(high, n_classes + n_taken)
