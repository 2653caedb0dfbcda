"""One run of one method: divide the rows, fit, ask, score, describe.

A method sees labelled rows, their labels and the pool's rows, and the number of classes if it is given that.
The truth of the pool meets its answers in ``scoring``, after the fit.
"""

from __future__ import annotations

import datetime
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.benchmark.methods import RESERVED, Task, build_method, find_method
from pnp_gcd.benchmark.records import (
    FORMAT,
    are_files,
    describe_environment,
    digest_labels,
    digest_split,
)
from pnp_gcd.benchmark.scoring import score_answers
from pnp_gcd.benchmark.settings import RunSettings, to_plain
from pnp_gcd.datasets import DiscoveryData, DiscoveryDataset

__all__ = ["Answers", "OneRun", "answer", "build_for", "check_visible", "list_parameters", "run_once"]

# What a fitted estimator chose from the data, where it has it.
_CHOSEN = (
    "n_neighbors_",
    "similarity_threshold_",
    "resolution_",
    "whitening_",
    "n_clusters_interval_",
    "n_iter_",
)


class Answers(NamedTuple):
    """What a fitted method says: of the pool, of unseen rows, how novel the pool's rows are, and how long."""

    model: Any
    found: NDArray[Any]
    found_unseen: NDArray[Any]
    novelty: NDArray[np.floating] | None
    seconds_fit: float
    seconds_predict: float


class OneRun(NamedTuple):
    """A record, and the arrays that are kept beside it.

    Arrays are ``found`` and ``truth`` of the pool, ``found_unseen`` and ``truth_unseen``, ``known_classes``,
    and ``features`` of the pool if they are to be kept.
    """

    record: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def run_once(
    settings: RunSettings,
    dataset: DiscoveryDataset,
    *,
    cache_dir: str | None = None,
    keep_features: bool = False,
    verbose: int = 0,
) -> OneRun:
    """Divide a data set, fit, score.

    Parameters
    ----------
    settings : RunSettings
    dataset : DiscoveryDataset
        As the method will see it.
    cache_dir : str or None, default=None
        Where kept views of images outlive an interrupted fit.
    keep_features : bool, default=False
    verbose : int, default=0

    Returns
    -------
    OneRun
    """
    check_visible(settings, dataset)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    split = settings.split
    data = dataset.split(split.seed, known=split.known, labelled=split.labelled, unseen=split.unseen)
    model = build_for(
        settings,
        has_images=dataset.kind == "images",
        preset=dataset.preset,
        n_true=data.count_classes(),
        cache_dir=cache_dir,
        verbose=verbose,
    )
    answers = answer(model, data.X_labelled, data.y_labelled, data.X_unlabelled, data.X_unseen)
    found, found_unseen = answers.found, answers.found_unseen
    record = {
        "format": FORMAT,
        "settings": settings.to_json(),
        "parameters": list_parameters(model),
        "given": "nothing" if getattr(model, "n_clusters", None) is None else "the number of classes",
        "data": _describe_data(dataset),
        "split": _describe_split(data, settings.data if are_files(dataset.kind, dataset.X) else None),
        "scores": score_answers(
            data, found, found_unseen, n_clusters=model.n_clusters_, novelty=answers.novelty
        ),
        "chosen": _describe_choice(model),
        "history": to_plain(getattr(model, "history_", [])),
        "seconds": {"fit": round(answers.seconds_fit, 3), "predict": round(answers.seconds_predict, 3)},
        "sha256": {"unlabelled": digest_labels(found), "unseen": digest_labels(found_unseen)},
        "environment": describe_environment(),
        "started": started,
    }
    arrays = {"found": found, "truth": data.y_unlabelled, "known_classes": data.known_classes}
    arrays |= {"found_unseen": found_unseen, "truth_unseen": data.y_unseen}
    if keep_features and hasattr(model, "transform"):
        arrays["features"] = model.transform(data.X_unlabelled).astype(np.float16)
    return OneRun(record, {name: _without_objects(array) for name, array in arrays.items()})


def build_for(
    settings: RunSettings,
    *,
    has_images: bool,
    preset: str | None,
    n_true: int | None,
    cache_dir: str | None = None,
    verbose: int = 0,
) -> Any:
    """Build a run's method; of the truth it may be given the number of classes, and nothing else.

    Parameters
    ----------
    settings : RunSettings
    has_images : bool
    preset : str or None
    n_true : int or None
        The number of classes, which only methods that are given it get.
    cache_dir : str or None, default=None
    verbose : int, default=0

    Returns
    -------
    estimator
        Not fitted.
    """
    is_given = find_method(settings.method).given == "the number of classes"
    n_clusters = n_true if is_given else None
    task = Task(has_images, preset, n_clusters, settings.seed, cache_dir, verbose)
    return build_method(settings.method, task, settings.parameters)


def answer(
    model: Any,
    X_labelled: NDArray[Any],
    y_labelled: NDArray[Any],
    X_unlabelled: NDArray[Any],
    X_unseen: NDArray[Any],
) -> Answers:
    """Fit a method and ask it: all it can see is in these four arguments.

    Parameters
    ----------
    model : estimator
    X_labelled, y_labelled, X_unlabelled, X_unseen : ndarray

    Returns
    -------
    Answers
    """
    import torch  # noqa: F401  # its import is not the fit's time

    began = time.perf_counter()
    model.fit(X_labelled, y_labelled, X_unlabelled)
    fitted = time.perf_counter()
    found_unseen = model.predict(X_unseen) if len(X_unseen) else y_labelled[:0]
    predicted = time.perf_counter()
    novelty = model.novelty_score(X_unlabelled) if hasattr(model, "novelty_score") else None
    found = np.asarray(model.unlabelled_labels_)
    return Answers(model, found, np.asarray(found_unseen), novelty, fitted - began, predicted - fitted)


def check_visible(settings: RunSettings, dataset: DiscoveryDataset) -> None:
    """Refuse what a method cannot see, and say how it could."""
    method = find_method(settings.method)
    if dataset.kind == "features" and dataset.X.ndim == 3 and not method.sees_images:
        raise ValueError(
            f"method={settings.method!r} sees one vector a row, but {dataset.name} has views of each. "
            "Average them first, or run pnp."
        )
    if dataset.kind == "texts":
        raise ValueError(
            f"{dataset.name} is texts, which no method sees as such. Name an embedder: --embedder tfidf, or "
            "--embedder module:function."
        )
    if dataset.kind == "images" and not method.sees_images:
        raise ValueError(
            f"method={settings.method!r} sees feature vectors, but {dataset.name} is images. Name a backbone "
            "whose features it shall see: --backbone NAME."
        )
    if (
        dataset.kind == "images"
        and settings.method != "pnp-paper"
        and not settings.parameters.get("backbone")
    ):
        raise ValueError(
            f"method={settings.method!r} on images needs a network: --backbone NAME, one of timm's."
        )


def _describe_data(dataset: DiscoveryDataset) -> dict[str, Any]:
    """Return kind and sizes."""
    return {
        "kind": dataset.kind,
        "n_rows": len(dataset.X),
        "n_test_rows": len(dataset.X_test),
        "n_classes": len(dataset.classes),
    }


def _describe_split(data: DiscoveryData, root: str | None) -> dict[str, Any]:
    """Return sizes of the parts and a digest of which rows are in them."""
    return {
        "n_labelled": len(data.X_labelled),
        "n_unlabelled": len(data.X_unlabelled),
        "n_unseen": len(data.X_unseen),
        "n_known": len(data.known_classes),
        "n_novel": len(np.setdiff1d(data.y_unlabelled, data.known_classes)),
        "sha256": digest_split(data, root),
    }


def list_parameters(model: Any) -> dict[str, Any]:
    """Return all parameters but the run's own, defaults too: another version's may differ."""
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in RESERVED}
    plain: dict[str, Any] = to_plain(parameters)
    return plain


def _describe_choice(model: Any) -> dict[str, Any]:
    chosen = {name.rstrip("_"): getattr(model, name) for name in _CHOSEN if hasattr(model, name)}
    plain: dict[str, Any] = to_plain(chosen)
    return plain


def _without_objects(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(str) if array.dtype.kind == "O" else array
