"""The networks of a fit, and one epoch of their training: refresh the prototypes, learn from every batch.

Knows rows of a source, codes and settings: no calibration, no class names.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pnp_gcd import objectives, schedules
from pnp_gcd._warn import warn_user
from pnp_gcd.checkpoint_files import State
from pnp_gcd.clustering import mean_directions
from pnp_gcd.encoders import ProjectionHead
from pnp_gcd.exceptions import DiscoveryWarning
from pnp_gcd.geometry import unit_rows
from pnp_gcd.grouping import Grouping
from pnp_gcd.labelling import Labelling, label_groups
from pnp_gcd.objectives import LossTerms
from pnp_gcd.optimisers import MomentumSGD, ParameterGroup, group_parameters
from pnp_gcd.prober import Prober, count_taken, make_teacher, refresh_memory, update_teacher, write_memory
from pnp_gcd.probing import Probe, ProbeSettings, probe_classes
from pnp_gcd.rows import Source
from pnp_gcd.settings import TrainingSettings
from pnp_gcd.views import BalancedBatches
from pnp_gcd.workers import run_any

__all__ = ["NotFiniteError", "Trainer"]

_LOG = logging.getLogger(__name__)

_WEIGHT_DECAY = 5e-5
_MAX_GRADIENT = 0.5


class NotFiniteError(ArithmeticError):
    """A loss or a weight is no longer a finite number; the message names it."""


class Trainer:
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
        self.device, self.world = source.device, source.world
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
        self.learner = self.world.share_gradients(self.student.encoder)
        self.follow_first()

    def follow_first(self) -> None:
        """Take over the first worker's state: other machines may round differently, and drift apart."""
        state = self.world.broadcast(self.state()) if self.world.size > 1 else None
        if state is not None and not self.world.is_first:
            self.restore(state)

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
            values = np.array([float(term) for term in terms])
            if not np.isfinite(values).all():
                named = dict(zip(LossTerms._fields, values.tolist(), strict=True))
                raise NotFiniteError(f"the loss of step {self.step} was {named}")
            if _LOG.isEnabledFor(logging.DEBUG):
                _LOG.debug("epoch %d, step %d: loss %.6g", epoch + 1, self.step, values[-1])
            sums += values
        self._check_weights()
        means = (sums / len(self.batches)).tolist()
        row |= dict(zip(LossTerms._fields, means, strict=True))
        row["seconds"] = time.perf_counter() - started
        return row

    def _check_weights(self) -> None:
        """Refuse to go on with weights that are not finite: the last step can spoil them after its loss."""
        for name, weight in self.student.named_parameters():
            if not bool(torch.isfinite(weight).all()):
                raise NotFiniteError(f"the weights {name} were not finite after step {self.step}")

    def state(self) -> State:
        """Return copies of all that changes in an epoch."""
        arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._tensors().items()}
        arrays["generator"] = self.source.generator.get_state().numpy().copy()
        for place, parameters in enumerate(group.parameters for group in self.optimiser.groups):
            for number, parameter in enumerate(parameters):
                velocity = self.optimiser.velocities.get(parameter)
                if velocity is not None:
                    arrays[f"velocity.{place}.{number}"] = velocity.cpu().numpy().copy()
        values = {
            "step": self.step,
            "rng": self.rng.bit_generator.state,
            "n_drawn": self.source.n_drawn,
            "has_warned": self.has_warned,
            "probe": None,
        }
        if self.last_probe is not None:
            grouping, homes, n_communities, recall = self.last_probe
            values["probe"] = {
                "n_classes": int(grouping.n_classes),
                "n_communities": int(n_communities),
                "recall": float(recall),
            }
            arrays |= {"probe.rows": grouping.rows.copy(), "probe.homes": homes.copy()}
        return State(values, arrays)

    def restore(self, state: State) -> None:
        """Return to a state of this trainer, or of one that was made from the same rows and settings."""
        values, arrays = state
        for prober, name in ((self.student, "student"), (self.teacher, "teacher")):
            if prober is not None:
                write_memory(
                    prober,
                    torch.from_numpy(arrays[f"{name}.memory"]),
                    torch.from_numpy(arrays[f"{name}.is_active"]),
                )
        self.optimiser.groups[-1].parameters = [self.student.memory]
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                given = torch.from_numpy(arrays[name])
                if given.shape != tensor.shape:
                    raise ValueError(f"{name} has shape {tuple(given.shape)}, not {tuple(tensor.shape)}")
                tensor.copy_(given)
        self.optimiser.velocities = {
            parameter: torch.from_numpy(arrays[name]).clone().to(self.device)
            for place, group in enumerate(self.optimiser.groups)
            for number, parameter in enumerate(group.parameters)
            if (name := f"velocity.{place}.{number}") in arrays
        }
        self.source.generator.set_state(torch.from_numpy(arrays["generator"]).clone())
        self.source.n_drawn = values["n_drawn"]
        self.rng.bit_generator.state = values["rng"]
        self.step, self.has_warned = values["step"], values["has_warned"]
        self.last_probe = None
        if values["probe"] is not None:
            grouping = Grouping(arrays["probe.rows"].copy(), values["probe"]["n_classes"])
            n_communities, recall = values["probe"]["n_communities"], values["probe"]["recall"]
            self.last_probe = Probe(grouping, arrays["probe.homes"].copy(), n_communities, recall)

    def _tensors(self) -> dict[str, Tensor]:
        """Return all tensors of the networks by name, also those that state_dict leaves out."""
        modules = {"student": self.student, "teacher": self.teacher, "projection": self.projection}
        tensors: dict[str, Tensor] = {"known_prototypes": self.known_prototypes}
        for prefix, module in modules.items():
            if module is not None:
                named = [*module.named_parameters(), *module.named_buffers()]
                tensors |= {f"{prefix}.{name}": tensor for name, tensor in named}
        return tensors

    def refresh(self, *, is_due: bool = True) -> dict[str, float]:
        """Write the classes' current prototypes into both memories; find classes anew if that is due."""
        features = self.source.encode(self.student.encoder)
        row = self.world.on_first(lambda: self._refresh(features, is_due))
        self.follow_first()
        return row

    def _refresh(self, features: NDArray[np.float32], is_due: bool) -> dict[str, float]:
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
            "recall": 1.0 if self.last_probe is None else self.last_probe.recall,
        }

    def _warn_once(self, n_clusters: int) -> None:
        if not self.has_warned:
            self.has_warned = True
            warn_user(
                f"{n_clusters} clusters were found, more than the {self._buffer_size(0)} prototypes that "
                f"prototypes_per_class={self.settings.prototypes_per_class} gives {self.n_known} known "
                "classes: the memory grows to hold them. Raise prototypes_per_class to leave room for "
                "potential prototypes.",
                DiscoveryWarning,
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
        """Return every loss term of one batch; a pair of terms whose weights are 0 is not computed.

        Each worker encodes its own rows, and computes the loss of all.
        """
        weights, codes = self.settings.weights, self.code_tensor[indices.to(self.device)]
        both = torch.cat(self.source.take(indices))
        owners = np.tile(self.source.owners[indices.numpy()], 2)
        features = self.world.join(run_any(self.learner, both), owners)
        none = features[:0].sum()  # 0, and part of the graph, so that backward() always works
        distillation = entropy = known = supervised = unsupervised = none
        if weights.distillation or weights.entropy:
            distillation, entropy = self._self_distillation(
                both, owners, features, codes, teacher_temperature
            )
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
        self,
        both: Tensor,
        owners: NDArray[np.int64],
        features: Tensor,
        codes: Tensor,
        teacher_temperature: float,
    ) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy between teacher and student, and the mean-entropy term."""
        if self.teacher is None:
            targets = objectives.teacher_probabilities(features, self.student.memory, teacher_temperature)
        else:
            with torch.no_grad():
                slow = self.world.join(run_any(self.teacher.encoder, both), owners)
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
