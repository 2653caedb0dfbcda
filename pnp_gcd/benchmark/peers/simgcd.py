"""SimGCD on feature vectors: a classifier of K prototypes that teaches itself.

Knows rows, codes and networks: no class names, no truth about unlabelled rows.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd._compat import Interval
from pnp_gcd.benchmark.peers.base import (
    COUNT,
    AtLeastOne,
    Clusters,
    Peer,
    nearest_centroid,
    place_known_first,
)
from pnp_gcd.benchmark.peers.counting import choose_n_clusters

if TYPE_CHECKING:
    from torch import Tensor, nn

    from pnp_gcd.objectives import LossTerms
    from pnp_gcd.optimisers import ParameterGroup
    from pnp_gcd.rows import LearningPart, VectorSource

__all__ = ["SimGCD"]

_Positive = Interval(numbers.Real, 0, None, closed="neither")
_NotNegative = Interval(numbers.Real, 0, None, closed="left")
# As in our own training: SGD's, and how long a gradient may be.
_WEIGHT_DECAY, _MOMENTUM, _MAX_GRADIENT = 5e-5, 0.9, 0.5


class SimGCD(Peer):
    """A classifier of cosine prototypes with self-distillation and mean-entropy regularisation [1]_.

    Of the paper's network the trained block of a vision transformer is replaced by the residual adapter
    that ``PNPDiscoverer`` learns with, and image crops by its views of feature vectors.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of classes, known ones included. None estimates it by Max-ACC, see :doc:`/peers`.
    max_clusters : int or None, default=None
        The largest estimate. None takes ten a known class, 1,000 and half of the rows at most.
    max_iter : int, default=30
        Epochs.
    batch_size : int, default=128
        Rows per step, half of them labelled.
    learning_rate : float, default=0.3
        Of SGD with momentum 0.9, falling by a cosine.
    supervised_weight : float, default=0.35
        Share λ of the two supervised terms; the two unsupervised ones get the rest.
    entropy_weight : float, default=2.0
        Weight ε of the mean-entropy term, relative to distillation.
    temperature : float, default=0.1
        Of the student's softmax.
    teacher_temperature : pair of float, default=(0.07, 0.04)
        Of the teacher's softmax at the start and after the first 15 in 100 epochs.
    contrastive_temperature, supervised_temperature : float, default=1.0, 0.07
        Of the contrastive term between views, and of the supervised one.
    view_noise, view_dropout, hidden_width, projection_width
        Views and adapter, as in :class:`~pnp_gcd.PNPDiscoverer`.
    missing_label : object, default="auto"
        What marks an unlabelled row in y.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    history_ : list of dict
        A row per epoch: every loss term.
    encoder_ : torch.nn.Module
        The trained adapter.

    References
    ----------
    .. [1] X. Wen, B. Zhao, X. Qi, "Parametric Classification for Generalized Category Discovery: A
       Baseline Study", ICCV 2023.

    Examples
    --------
    >>> rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    >>> peer = SimGCD(2, random_state=0).fit(rows[:5], ["east"] * 5, rows[5:])
    >>> peer.predict([[1.0, 0.0]]).tolist()
    ['east']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Peer._parameter_constraints,
        **COUNT,
        "max_iter": [AtLeastOne],
        "batch_size": [Interval(numbers.Integral, 2, None, closed="left")],
        "learning_rate": [_Positive],
        "supervised_weight": [Interval(numbers.Real, 0, 1, closed="both")],
        "entropy_weight": [_NotNegative],
        "temperature": [_Positive],
        "teacher_temperature": ["array-like"],
        "contrastive_temperature": [_Positive],
        "supervised_temperature": [_Positive],
        "view_noise": [_NotNegative],
        "view_dropout": [Interval(numbers.Real, 0, 1, closed="left")],
        "hidden_width": [AtLeastOne],
        "projection_width": ["array-like"],
    }

    encoder_: nn.Module

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        max_clusters: int | None = None,
        max_iter: int = 30,
        batch_size: int = 128,
        learning_rate: float = 0.3,
        supervised_weight: float = 0.35,
        entropy_weight: float = 2.0,
        temperature: float = 0.1,
        teacher_temperature: tuple[float, float] = (0.07, 0.04),
        contrastive_temperature: float = 1.0,
        supervised_temperature: float = 0.07,
        view_noise: float = 0.6,
        view_dropout: float = 0.1,
        hidden_width: int = 512,
        projection_width: tuple[int, int] = (256, 128),
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.supervised_weight = supervised_weight
        self.entropy_weight = entropy_weight
        self.temperature = temperature
        self.teacher_temperature = teacher_temperature
        self.contrastive_temperature = contrastive_temperature
        self.supervised_temperature = supervised_temperature
        self.view_noise = view_noise
        self.view_dropout = view_dropout
        self.hidden_width = hidden_width
        self.projection_width = projection_width
        self.missing_label = missing_label
        self.random_state = random_state

    def _cluster(self, rows: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Clusters:
        n_clusters = choose_n_clusters(
            self.n_clusters, rows, codes, max_clusters=self.max_clusters, seed=seed
        )
        prototypes = self._train(rows, codes, n_clusters, seed)
        homes = place_known_first(codes, n_clusters)
        return Clusters(nearest_centroid(self._features(rows), prototypes), prototypes, homes)

    def _features(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        from pnp_gcd.encoding import encode_rows

        return encode_rows(self.encoder_, rows)

    def _train(
        self, rows: NDArray[np.float32], codes: NDArray[np.int64], n_clusters: int, seed: int
    ) -> NDArray[np.float32]:
        """Train the adapter and return the prototypes: known classes in their order, then new ones."""
        import torch

        from pnp_gcd import schedules
        from pnp_gcd.geometry import unit_rows
        from pnp_gcd.objectives import LossTerms
        from pnp_gcd.optimisers import MomentumSGD
        from pnp_gcd.rows import VectorSource
        from pnp_gcd.settings import TrainingSettings
        from pnp_gcd.views import BalancedBatches

        seeds = np.random.SeedSequence(seed).generate_state(3)
        batches = BalancedBatches(codes, self.batch_size, np.random.default_rng(seeds[0]))
        settings = TrainingSettings(
            view_noise=self.view_noise, view_dropout=self.view_dropout, hidden_width=self.hidden_width
        )
        source = VectorSource(rows, settings, torch.Generator().manual_seed(int(seeds[1])))
        network = self._make_network(source, codes, n_clusters, int(seeds[2]))
        optimiser = MomentumSGD(network.groups(), momentum=_MOMENTUM, max_gradient=_MAX_GRADIENT)
        self.encoder_, self.history_ = network.encoder, []
        code_tensor = torch.from_numpy(codes)
        for epoch in range(self.max_iter):
            start, end = self.teacher_temperature
            sharp = schedules.teacher_temperature(epoch, self.max_iter, start=start, end=end)
            sums = np.zeros(len(LossTerms._fields))
            for batch, indices in enumerate(batches):
                terms = self._losses(network, torch.cat(source.take(indices)), code_tensor[indices], sharp)
                optimiser.forget_gradients()
                terms.total.backward()
                progress = (epoch + batch / len(batches)) / self.max_iter
                optimiser.step(schedules.cosine_learning_rate(progress, start=self.learning_rate))
                sums += [float(term.detach()) for term in terms]
            self.history_.append(dict(zip(LossTerms._fields, (sums / len(batches)).tolist(), strict=True)))
        return unit_rows(network.prototypes.detach().numpy())

    def _make_network(
        self, source: VectorSource, codes: NDArray[np.int64], n_clusters: int, seed: int
    ) -> _Network:
        """Return the network before training: known prototypes at class means, others at drawn rows."""
        import torch

        from pnp_gcd.clustering import mean_directions
        from pnp_gcd.encoders import ProjectionHead

        rows = source.start
        known = mean_directions(rows[codes >= 0], codes[codes >= 0])
        pool = np.flatnonzero(codes < 0)
        drawn = np.random.default_rng(seed).choice(pool, n_clusters - len(known), replace=False)
        with torch.random.fork_rng(devices=[]):  # the caller's global random state stays as it was
            torch.default_generator.manual_seed(seed)
            encoder = source.make_encoder()
            projection = ProjectionHead(rows.shape[1], *self.projection_width)
        prototypes = torch.nn.Parameter(torch.from_numpy(np.concatenate([known, rows[drawn]])))
        return _Network(source.learning_parts(encoder), projection, prototypes)

    def _losses(
        self, network: _Network, views: Tensor, codes: Tensor, teacher_temperature: float
    ) -> LossTerms:
        """Return every loss term of a batch: rows of the first view, then those of the second."""
        import torch

        from pnp_gcd import objectives

        features, both_codes = network.encoder(views), torch.cat([codes, codes])
        logits = objectives.prototype_logits(features, network.prototypes, self.temperature)
        # No teacher of its own: the same network at a lower temperature, without gradient.
        targets = objectives.teacher_probabilities(features, network.prototypes, teacher_temperature)
        first, second = logits.chunk(2)
        similarity = objectives.projection_similarity(network.projection(features))
        share = 1 - self.supervised_weight
        return objectives.combine_losses(
            distillation=objectives.distillation_loss(first, second, *targets.chunk(2)),
            entropy=objectives.mean_entropy_loss(first, second),
            known=objectives.known_class_loss(logits, both_codes),
            supervised=objectives.supervised_contrastive_from_similarity(
                similarity, both_codes, self.supervised_temperature
            ),
            unsupervised=objectives.contrastive_from_similarity(similarity, self.contrastive_temperature),
            weights=objectives.LossWeights.from_paper(share, self.entropy_weight, self.supervised_weight),
        )


class _Network(NamedTuple):
    parts: list[LearningPart]
    projection: nn.Module
    prototypes: nn.Parameter

    @property
    def encoder(self) -> nn.Module:
        return self.parts[0].module

    def groups(self) -> list[ParameterGroup]:
        """Return what learns."""
        from pnp_gcd.optimisers import ParameterGroup, group_parameters

        (encoder, rate), decay = self.parts[0], _WEIGHT_DECAY
        return [
            *group_parameters(encoder, weight_decay=decay, relative_rate=rate),
            *group_parameters(self.projection, weight_decay=decay),
            ParameterGroup([self.prototypes]),
        ]
