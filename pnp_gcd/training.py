"""The loop of the paper: encode, cluster, refresh the prototypes, train an epoch.

Knows arrays, codes and settings: no scikit-learn estimators, no class names, no truth about
unlabelled rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pnp_gcd import objectives, schedules
from pnp_gcd.calibration import Calibration, Request, calibrate
from pnp_gcd.clustering import mean_directions
from pnp_gcd.encoders import ProjectionHead
from pnp_gcd.exceptions import DiscoveryWarning
from pnp_gcd.geometry import reduce_rows, unit_rows
from pnp_gcd.grouping import Grouping
from pnp_gcd.labelling import (
    Labelling,
    classify_rows,
    fit_sharpness,
    label_groups,
    measure_closeness,
    score_classes,
)
from pnp_gcd.objectives import LossTerms
from pnp_gcd.optimisers import MomentumSGD, ParameterGroup, group_parameters
from pnp_gcd.prober import Prober, count_taken, make_teacher, refresh_memory, update_teacher
from pnp_gcd.probing import Probe, ProbeSettings, probe_classes
from pnp_gcd.rows import Copies, Rows, Source
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.views import BalancedBatches

__all__ = ["Discovery", "discover"]

_WEIGHT_DECAY = 5e-5
_MAX_GRADIENT = 0.5
# With fewer different rows than this, copies are kept.
_FEWEST_ROWS = 10
# Rows by which the probabilities are calibrated.
_MAX_SCORED_ROWS = 20_000


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
    report: Callable[[str, dict[str, Any]], bool] = lambda stage, row: False,
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
    copies = rows.find_copies()
    merged = _merge_codes(codes, copies)
    # Copies of a row would fill its list of neighbours: they count once, if that leaves rows enough.
    if len(copies.first) < len(rows) and _has_enough(merged, codes, settings):
        found = discover(rows.take(copies.first), merged, settings, report=report)
        return replace(found, row_classes=found.row_classes[copies.place])
    seeds = np.random.SeedSequence(settings.seed).generate_state(4)
    calibration = _calibrate(rows.describe(), codes, settings, int(seeds[0]), report)
    source = rows.place(calibration.geometry, settings, torch.Generator().manual_seed(int(seeds[3]) + 1))
    trainer = _Trainer(source, codes, _probe_settings(calibration, codes, settings), settings, seeds)
    history: list[dict[str, float]] = []
    try:
        for epoch in range(settings.max_iter):
            report("begin", {"epoch": float(epoch)})
            history.append(trainer.run_epoch(epoch))
            if report("epoch", history[-1]):
                break
    except KeyboardInterrupt:
        if settings.on_interrupt == "raise":
            raise
    encoder = trainer.student.encoder.eval()
    features = source.encode(encoder)
    encoder = encoder.cpu()  # a model may be loaded where there is no GPU
    n_taken = count_taken(trainer.student, features)
    labelling = trainer.label(features)
    row_classes = classify_rows(features, labelling, settings.temperature)
    return Discovery(
        encoder,
        labelling,
        row_classes,
        _sharpness(features[codes < 0], labelling, settings.temperature, calibration.accuracy),
        _usual_closeness(features, labelling),
        _interval(labelling, calibration, settings, n_taken),
        calibration,
        history,
    )


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
    report: Callable[[str, dict[str, Any]], bool],
) -> Calibration:
    request = Request(
        n_neighbors=settings.n_neighbors,
        similarity_threshold=settings.similarity_threshold,
        resolution=settings.resolution,
        edge_weights=settings.edge_weights,
        whitenings=None if settings.whitening == "auto" else [settings.whitening],
        temperature=settings.temperature,
    )
    return calibrate(
        reduce_rows(features, n_components=settings.n_components),
        codes,
        request,
        seed=seed,
        report=lambda row: report("calibration", row),
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


class _Trainer:
    """The networks, the optimiser and the batches of one fit."""

    def __init__(
        self,
        source: Source,
        codes: NDArray[np.int64],
        probing: ProbeSettings,
        settings: TrainingSettings,
        seeds: NDArray[np.unsignedinteger[Any]],
    ) -> None:
        self.source, self.codes, self.probing, self.settings = source, codes, probing, settings
        self.device = source.device
        self.n_known = int(codes.max(initial=-1)) + 1
        self.infomap_seed = int(seeds[1])
        self.rng = np.random.default_rng(seeds[2])
        # The caller's global random state stays as it was.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(seeds[3]))  # the CPU's alone
            encoder = source.make_encoder()
            self.projection = ProjectionHead(source.start.shape[1], *settings.projection_width)
        self.batches = BalancedBatches(codes, settings.batch_size, self.rng)
        self.code_tensor = torch.from_numpy(codes).to(self.device)
        memory = torch.from_numpy(self._draw_rows(source.start, self._buffer_size(0)))
        self.student = Prober(encoder, memory).to(self.device)
        self.projection = self.projection.to(self.device)
        self.teacher = make_teacher(self.student) if settings.teacher else None
        known = mean_directions(source.start[codes >= 0], codes[codes >= 0], self.n_known)
        self.known_prototypes = nn.Parameter(torch.from_numpy(known).to(self.device))
        self.optimiser = self._make_optimiser()
        self.step = 0
        self.has_warned = False
        self.last_probe: Probe | None = None

    def _buffer_size(self, n_clusters: int) -> int:
        """Return K^t: some prototypes per known class; twice the clusters where none is known."""
        per_class = self.settings.prototypes_per_class * self.n_known
        return max(2, per_class if self.n_known else 2 * n_clusters)

    def _draw_rows(self, rows: NDArray[np.float32], n_rows: int) -> NDArray[np.float32]:
        """Draw rows with a little noise: where a potential prototype starts."""
        drawn = rows[self.rng.integers(len(rows), size=n_rows)]
        noise = self.rng.normal(size=drawn.shape) / np.sqrt(rows.shape[1])
        return unit_rows(drawn + noise)

    def _make_optimiser(self) -> MomentumSGD:
        groups = [
            *(
                group
                for module, rate in self.source.learning_parts(self.student.encoder)
                for group in group_parameters(module, weight_decay=_WEIGHT_DECAY, relative_rate=rate)
            ),
            *group_parameters(self.projection, weight_decay=_WEIGHT_DECAY),
            ParameterGroup([self.known_prototypes] if self.n_known else []),
            ParameterGroup([self.student.memory]),
        ]
        # Few classes in a batch can make the supervised contrastive term steep: clipped, one such step
        # cannot throw every row onto one point.
        return MomentumSGD(groups, momentum=0.9, max_gradient=_MAX_GRADIENT)

    def probe(self, features: NDArray[np.float32]) -> Probe:
        """Find the classes in the current features; their number may move within the interval counted."""
        return probe_classes(features, self.codes, self.probing, seed=self.infomap_seed)

    def label(self, features: NDArray[np.float32]) -> Labelling:
        """Return the final prototypes and classes."""
        if not (self.codes < 0).any():
            grouping = Grouping(self.codes, self.n_known)
            return label_groups(features, self.codes, grouping, self.codes, n_known=self.n_known)
        probe = self.probe(features)
        return label_groups(
            features,
            self.codes,
            probe.grouping,
            probe.homes,
            n_known=self.n_known,
            n_clusters=self.settings.n_clusters,
            temperature=self.settings.temperature,
        )

    def run_epoch(self, epoch: int) -> dict[str, float]:
        """Probe, refresh the memories, train on every batch; return the history's row."""
        started = time.perf_counter()
        is_due = epoch % self.settings.cluster_interval == 0
        row = {"epoch": float(epoch), **self.refresh(is_due=is_due)}
        teacher_temperature = schedules.teacher_temperature(
            epoch,
            self.settings.max_iter,
            start=self.settings.teacher_temperature[0],
            end=self.settings.teacher_temperature[1],
        )
        sums = np.zeros(len(LossTerms._fields))
        for indices in self.batches:
            terms = self.train_batch(indices, teacher_temperature)
            sums += [float(term) for term in terms]
        means = (sums / len(self.batches)).tolist()
        row |= dict(zip(LossTerms._fields, means, strict=True))
        row["seconds"] = time.perf_counter() - started
        return row

    def refresh(self, *, is_due: bool = True) -> dict[str, float]:
        """Write the classes' current prototypes into both memories; find classes anew if that is due."""
        features = self.source.encode(self.student.encoder)
        n_taken = count_taken(self.student, features)
        if (self.codes < 0).any():
            if is_due or self.last_probe is None:
                self.last_probe = self.probe(features)
            found, n_communities = self.last_probe.grouping.rows, self.last_probe.n_communities
        else:
            found, n_communities = self.codes, self.n_known
        if not (found >= 0).any():  # no community is large enough to be a class
            found = np.zeros(len(features), dtype=np.int64)
        present, dense = np.unique(found[found >= 0], return_inverse=True)
        centroids = mean_directions(features[found >= 0], dense, len(present))
        if self.n_known and len(centroids) > self._buffer_size(0):
            self._warn_once(len(centroids))
        wanted = max(self._buffer_size(len(centroids)), len(centroids))
        origin = refresh_memory(
            self.student,
            self.teacher,
            centroids,
            potential_prototypes=self.settings.potential_prototypes,
            spare=self._draw_rows(features, max(wanted - len(self.student.memory), 0)),
        )
        self._follow_memory(origin)
        if self.teacher is not None and self.settings.teacher == "epoch":
            update_teacher(self.teacher, self.student, 0.0)
        return {
            "n_communities": float(n_communities),
            "n_active": float(self.student.n_active),
            "n_prototypes": float(len(self.student.memory)),
            "n_taken": float(n_taken),
        }

    def _warn_once(self, n_clusters: int) -> None:
        if not self.has_warned:
            self.has_warned = True
            warnings.warn(
                f"{n_clusters} clusters were found, more than the {self._buffer_size(0)} prototypes that "
                f"prototypes_per_class={self.settings.prototypes_per_class} gives {self.n_known} known "
                "classes: the memory grows to hold them. Raise prototypes_per_class to leave room for "
                "potential prototypes.",
                DiscoveryWarning,
                stacklevel=2,
            )

    def _follow_memory(self, origin: NDArray[np.int64]) -> None:
        """Point the optimiser at the student's memory; rows that go on keep their momentum."""
        group = self.optimiser.groups[-1]
        old, new = group.parameters[0], self.student.memory
        if old is new and (origin == np.arange(len(origin))).all():
            return
        group.parameters = [new]
        velocity = self.optimiser.velocities.pop(old, None)
        if velocity is not None:
            moved = torch.zeros_like(new)
            goes_on = torch.from_numpy(origin >= 0).to(self.device)
            moved[goes_on] = velocity[torch.from_numpy(origin[origin >= 0]).to(self.device)]
            self.optimiser.velocities[new] = moved

    def train_batch(self, indices: Tensor, teacher_temperature: float) -> LossTerms:
        """Take one step of the optimiser and move the teacher."""
        progress = self.step / (self.settings.max_iter * len(self.batches))
        rate = schedules.cosine_learning_rate(progress, start=self.settings.learning_rate)
        terms = self.losses(indices, teacher_temperature)
        self.optimiser.forget_gradients()
        terms.total.backward()
        before = self.student.memory.detach().clone()
        self.optimiser.step(rate)
        if self.settings.potential_prototypes == "frozen":  # momentum would move them without a gradient
            potential = ~self.student.is_active
            self.student.memory.data[potential] = before[potential]
        self.step += 1
        if self.teacher is not None and self.settings.teacher == "ema":
            low, high = self.settings.teacher_momentum
            update_teacher(
                self.teacher, self.student, schedules.teacher_momentum(progress, low=low, high=high)
            )
        return LossTerms(*(term.detach() for term in terms))

    def losses(self, indices: Tensor, teacher_temperature: float) -> LossTerms:
        """Return every loss term of one batch; a pair of terms whose weights are 0 is not computed."""
        weights, codes = self.settings.weights, self.code_tensor[indices.to(self.device)]
        both = torch.cat(self.source.take(indices))
        features = self.student.encoder(both)
        none = features[:0].sum()  # 0, and part of the graph, so that backward() always works
        distillation = entropy = known = supervised = unsupervised = none
        if weights.distillation or weights.entropy:
            distillation, entropy = self._self_distillation(both, features, codes, teacher_temperature)
        both_codes = torch.cat([codes, codes])
        if weights.known and self.n_known:
            logits = objectives.prototype_logits(features, self.known_prototypes, self.settings.temperature)
            known = objectives.known_class_loss(logits, both_codes)
        if weights.supervised or weights.unsupervised:
            similarity = objectives.projection_similarity(self.projection(features))
            supervised = objectives.supervised_contrastive_from_similarity(
                similarity, both_codes, self.settings.supervised_temperature
            )
            unsupervised = objectives.contrastive_from_similarity(
                similarity, self.settings.contrastive_temperature
            )
        return objectives.combine_losses(
            distillation=distillation,
            entropy=entropy,
            known=known,
            supervised=supervised,
            unsupervised=unsupervised,
            weights=weights,
        )

    def _self_distillation(
        self, both: Tensor, features: Tensor, codes: Tensor, teacher_temperature: float
    ) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy between teacher and student, and the mean-entropy term."""
        if self.teacher is None:
            targets = objectives.teacher_probabilities(features, self.student.memory, teacher_temperature)
        else:
            with torch.no_grad():
                slow = self.teacher.encoder(both)
            targets = objectives.teacher_probabilities(slow, self.teacher.memory, teacher_temperature)
        logits = objectives.prototype_logits(features, self.student.memory, self.settings.temperature)
        if self.settings.distill_on == "unlabelled":
            chosen = torch.cat([codes < 0, codes < 0])
            logits, targets = logits[chosen], targets[chosen]
        first, second = logits.chunk(2)
        return (
            objectives.distillation_loss(first, second, *targets.chunk(2)),
            objectives.mean_entropy_loss(first, second),
        )
