"""The parameters of ``PNPDiscoverer``: what values they take, and how the loop is told them.

Knows the estimator's parameters: no rows, no labels, no torch.
"""

from __future__ import annotations

import numbers
import os
from typing import TYPE_CHECKING, Any, Literal

from pnp_gcd._compat import Interval, StrOptions

if TYPE_CHECKING:
    from pnp_gcd.discoverer import PNPDiscoverer
    from pnp_gcd.settings import TrainingSettings

__all__ = ["CONSTRAINTS", "read_settings"]

# Cosines are divided by it: below this the quotients leave the range of numbers.
_TEMPERATURE = Interval(numbers.Real, 1e-6, None, closed="left")

CONSTRAINTS: dict[str, list[Any] | str] = {
    "n_clusters": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "n_neighbors": [Interval(numbers.Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "similarity_threshold": [Interval(numbers.Real, 0, 1, closed="both"), StrOptions({"auto"})],
    "resolution": [Interval(numbers.Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "edge_weights": [StrOptions({"shared", "cosine"})],
    "merge_threshold": [Interval(numbers.Real, 0, None, closed="both"), StrOptions({"auto"})],
    "cluster_interval": [Interval(numbers.Integral, 1, None, closed="left")],
    "cluster_on": [StrOptions({"all", "unlabelled"})],
    "whitening": [StrOptions({"auto", "discriminant", "within", "soft-within", "soft-total"}), None],
    "n_components": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "max_iter": [Interval(numbers.Integral, 0, None, closed="left")],
    "max_samples": [Interval(numbers.Integral, 10, None, closed="left"), None],
    "batch_size": [Interval(numbers.Integral, 2, None, closed="left")],
    "learning_rate": [Interval(numbers.Real, 0, None, closed="neither")],
    "distillation_weight": [Interval(numbers.Real, 0, None, closed="left")],
    "entropy_weight": [Interval(numbers.Real, 0, None, closed="left")],
    "known_weight": [Interval(numbers.Real, 0, None, closed="left")],
    "supervised_weight": [Interval(numbers.Real, 0, None, closed="left")],
    "unsupervised_weight": [Interval(numbers.Real, 0, None, closed="left")],
    "temperature": [_TEMPERATURE],
    "teacher_temperature": ["array-like"],
    "contrastive_temperature": [_TEMPERATURE],
    "supervised_temperature": [_TEMPERATURE],
    "teacher": [StrOptions({"ema", "epoch"}), None],
    "teacher_momentum": ["array-like"],
    "potential_prototypes": [StrOptions({"trainable", "frozen"}), None],
    "prototypes_per_class": [Interval(numbers.Integral, 1, None, closed="left")],
    "distill_on": [StrOptions({"all", "unlabelled"})],
    "view_noise": [Interval(numbers.Real, 0, None, closed="left")],
    "view_dropout": [Interval(numbers.Real, 0, 1, closed="left")],
    "hidden_width": [Interval(numbers.Integral, 1, None, closed="left")],
    "projection_width": ["array-like"],
    "backbone": [str, None],
    "backbone_weights": [str, os.PathLike, None],
    "image_size": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "n_trainable_blocks": [Interval(numbers.Integral, 0, None, closed="left")],
    "augmentation": [StrOptions({"standard", "strong"})],
    "n_cached_views": [Interval(numbers.Integral, 0, None, closed="left")],
    "cache_size": [Interval(numbers.Integral, 0, None, closed="left"), str],
    "cache_dir": [str, os.PathLike, None],
    "on_bad_image": [StrOptions({"error", "skip"})],
    "device": [str],
    "missing_label": "no_validation",
    "checkpoint_dir": [str, os.PathLike, None],
    "on_interrupt": [StrOptions({"raise", "keep"})],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def read_settings(estimator: PNPDiscoverer, seed: int) -> TrainingSettings:
    """Return the parameters of an estimator as the loop takes them; pairs are checked here."""
    from pnp_gcd.objectives import LossWeights
    from pnp_gcd.settings import TrainingSettings

    return TrainingSettings(
        n_clusters=estimator.n_clusters,
        n_neighbors=None if estimator.n_neighbors == "auto" else int(estimator.n_neighbors),
        similarity_threshold=_number(estimator.similarity_threshold),
        resolution=_number(estimator.resolution),
        edge_weights=estimator.edge_weights,
        merge_cut=_number(estimator.merge_threshold),
        cluster_interval=int(estimator.cluster_interval),
        cluster_on=estimator.cluster_on,
        whitening=estimator.whitening,
        n_components=estimator.n_components,
        max_iter=estimator.max_iter,
        max_samples=estimator.max_samples,
        batch_size=estimator.batch_size,
        learning_rate=estimator.learning_rate,
        weights=LossWeights(
            distillation=estimator.distillation_weight,
            entropy=estimator.distillation_weight * estimator.entropy_weight,
            known=estimator.known_weight,
            supervised=estimator.supervised_weight,
            unsupervised=estimator.unsupervised_weight,
        ),
        temperature=estimator.temperature,
        teacher_temperature=_pair(estimator.teacher_temperature, "teacher_temperature"),
        contrastive_temperature=estimator.contrastive_temperature,
        supervised_temperature=estimator.supervised_temperature,
        teacher=estimator.teacher,
        teacher_momentum=_pair(estimator.teacher_momentum, "teacher_momentum", is_rising=True),
        potential_prototypes=estimator.potential_prototypes,
        prototypes_per_class=estimator.prototypes_per_class,
        distill_on=estimator.distill_on,
        view_noise=estimator.view_noise,
        view_dropout=estimator.view_dropout,
        hidden_width=estimator.hidden_width,
        projection_width=_pair(estimator.projection_width, "projection_width", kind=numbers.Integral),
        seed=seed,
        on_interrupt=estimator.on_interrupt,
        checkpoint_dir=_folder(estimator),
    )


def _folder(estimator: PNPDiscoverer) -> str | os.PathLike[str] | None:
    """Return where checkpoints go; without a seed no fit could go on from them."""
    if estimator.checkpoint_dir is not None and estimator.random_state is None:
        raise ValueError(
            f'checkpoint_dir="{os.fspath(estimator.checkpoint_dir)}" needs a seed: with random_state=None '
            "every fit draws another one, and none could go on where another stopped. Pass random_state=0."
        )
    return estimator.checkpoint_dir


def _number(value: float | Literal["auto"]) -> float | None:
    """Return a number, None for "auto"."""
    return None if value == "auto" else float(value)


def _pair(value: Any, name: str, *, kind: type = numbers.Real, is_rising: bool = False) -> tuple[Any, Any]:
    """Return ``value`` as a pair of positive numbers; a rising one goes from 0 to 1 at most."""
    try:
        first, second = value
        valid = isinstance(first, kind) and isinstance(second, kind)
        valid = valid and (0 <= first <= second <= 1 if is_rising else min(first, second) > 0)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        need = "rising numbers from 0 to 1" if is_rising else "positive numbers"
        whole = "whole " if kind is numbers.Integral else ""
        raise ValueError(f"{name}={value!r} must be a pair of {whole}{need}.")
    return first, second
