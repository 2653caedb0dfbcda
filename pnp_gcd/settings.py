"""All that a fit is told, besides its rows.

Knows names and defaults only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

from pnp_gcd.clustering import EdgeWeights
from pnp_gcd.geometry import Whitening
from pnp_gcd.objectives import LossWeights
from pnp_gcd.prober import PotentialPrototypes, Teacher

__all__ = ["TrainingSettings"]


@dataclass(frozen=True)
class TrainingSettings:
    """All that a fit is told, besides its rows; nothing writes to it.

    The names are those of :class:`~pnp_gcd.PNPDiscoverer`, which explains them. None stands
    for "choose from the data".
    """

    n_clusters: int | None = None
    n_neighbors: int | None = None
    similarity_threshold: float | None = None
    resolution: float | None = None
    edge_weights: EdgeWeights = "shared"
    merge_cut: float | None = None
    cluster_interval: int = 4
    cluster_on: Literal["all", "unlabelled"] = "all"
    whitening: Whitening | Literal["auto"] = "auto"
    n_components: int | None = 256
    max_iter: int = 4
    max_samples: int | None = None
    batch_size: int = 256
    learning_rate: float = 0.15
    weights: LossWeights = field(default_factory=LossWeights.from_paper)
    temperature: float = 0.1
    teacher_temperature: tuple[float, float] = (0.07, 0.04)
    contrastive_temperature: float = 1.0
    supervised_temperature: float = 0.07
    teacher: Teacher = "ema"
    teacher_momentum: tuple[float, float] = (0.7, 0.99)
    potential_prototypes: PotentialPrototypes = "trainable"
    prototypes_per_class: int = 4
    distill_on: Literal["all", "unlabelled"] = "all"
    view_noise: float = 0.6
    view_dropout: float = 0.1
    hidden_width: int = 512
    projection_width: tuple[int, int] = (256, 128)
    seed: int = 0
    on_interrupt: Literal["raise", "keep"] = "raise"
    checkpoint_dir: str | os.PathLike[str] | None = None
