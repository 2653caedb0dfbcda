"""Run methods on data sets: load, divide, fit, score, write a record; go on where a run was interrupted.

A method sees labelled rows, their labels and the pool's rows, and the number of classes if it is given that.
The truth of the pool meets its answers in ``scoring``, after the fit.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.benchmark.embedding import embed_dataset
from pnp_gcd.benchmark.methods import Task, build_method, find_method
from pnp_gcd.benchmark.records import (
    FORMAT,
    describe_environment,
    digest_data,
    digest_file,
    digest_labels,
    digest_split,
    read_record,
    write_arrays,
    write_record,
)
from pnp_gcd.benchmark.scoring import score_answers
from pnp_gcd.benchmark.settings import RunSettings, to_plain
from pnp_gcd.datasets import DiscoveryData, DiscoveryDataset, load_dataset

__all__ = ["Answers", "Bench", "Run", "compare_records", "repeat_run"]

# What a fitted estimator chose from the data, where it has it.
_CHOSEN = (
    "n_neighbors_",
    "similarity_threshold_",
    "resolution_",
    "whitening_",
    "n_clusters_interval_",
    "n_iter_",
)
# Parts of a record that must be the same when it is repeated.
_REPEATED = ("settings", "parameters", "data", "split", "given", "scores", "chosen", "history", "sha256")


class Answers(NamedTuple):
    """What a fitted method says: of the pool, of unseen rows, how novel the pool's rows are, and how long."""

    model: Any
    found: NDArray[Any]
    found_unseen: NDArray[Any]
    novelty: NDArray[np.floating] | None
    seconds_fit: float
    seconds_predict: float


class Run(NamedTuple):
    """A record, its file, and whether it was made now or found finished."""

    record: dict[str, Any]
    path: Path
    is_new: bool


class _Loaded(NamedTuple):
    dataset: DiscoveryDataset
    sha256: str


class Bench:
    """Runs settings one after the other, and loads each data set once.

    Parameters
    ----------
    out : str or path
        Folder of records. A run whose record is there is not done again.
    again : bool, default=False
        Run even then.
    keep_features : bool, default=False
        Keep the pool's learnt features beside the record, of methods that have ``transform``.
    verbose : int, default=0
        1 shows the progress of each fit on standard error.

    Examples
    --------
    >>> import tempfile
    >>> from pnp_gcd.benchmark import Bench, RunSettings
    >>> bench = Bench(tempfile.mkdtemp())
    >>> run = bench.run(RunSettings("digits", method="k-means"))
    >>> run.record["given"], run.record["scores"]["n_clusters"], run.is_new
    ('the number of classes', 10, True)
    >>> bench.run(RunSettings("digits", method="k-means")).is_new
    False
    """

    def __init__(
        self, out: str | Path, *, again: bool = False, keep_features: bool = False, verbose: int = 0
    ) -> None:
        self.out = Path(out)
        self.again = again
        self.keep_features = keep_features
        self.verbose = verbose
        self._loaded: dict[str, _Loaded] = {}

    def with_features(self) -> Bench:
        """Return a bench on the same data and folder that keeps learnt features.

        Returns
        -------
        Bench
        """
        bench = Bench(self.out, again=self.again, keep_features=True, verbose=self.verbose)
        bench._loaded = self._loaded
        return bench

    def run(self, settings: RunSettings) -> Run:
        """Run one method once, or read the record of the run that was.

        Parameters
        ----------
        settings : RunSettings

        Returns
        -------
        Run
        """
        find_method(settings.method)
        settings = RunSettings.from_json(settings.to_json())  # as it will be read back
        with use_threads(settings.n_threads):
            loaded = self._load(settings)
            path = self.out / f"{settings.file_stem(loaded.sha256)}.json"
            if not self.again and self._is_done(path):
                return Run(read_record(path), path, is_new=False)
            dataset = self._embed(settings, loaded.dataset)
            record, arrays = run_once(
                settings,
                dataset,
                cache_dir=str(self.out / "activations"),
                keep_features=self.keep_features,
                verbose=self.verbose,
            )
        record["data"] = {"sha256": loaded.sha256, **record["data"]}
        write_arrays(arrays, path.with_suffix(".npz"))
        write_record(record, path)
        return Run(record, path, is_new=True)

    def run_all(self, settings: Iterable[RunSettings]) -> Iterator[Run]:
        """Run settings in their order; each record is written before the next begins.

        Parameters
        ----------
        settings : iterable of RunSettings

        Yields
        ------
        Run
        """
        for each in settings:
            yield self.run(each)

    def load(self, settings: RunSettings) -> DiscoveryDataset:
        """Return the data set as the method will see it: images, or features.

        Parameters
        ----------
        settings : RunSettings

        Returns
        -------
        DiscoveryDataset
        """
        return self._embed(settings, self._load(settings).dataset)

    def _is_done(self, path: Path) -> bool:
        beside = path.with_suffix(".npz")
        if not path.exists() or not beside.exists():
            return False
        with np.load(beside) as arrays:
            return not self.keep_features or "features" in arrays.files

    def _load(self, settings: RunSettings) -> _Loaded:
        key = repr((settings.dataset, settings.data, settings.data_options))
        if key not in self._loaded:
            dataset = load_dataset(settings.dataset, settings.data, **settings.data_options)
            self._loaded[key] = _Loaded(dataset, digest_data(dataset, settings.data))
        return self._loaded[key]

    def _embed(self, settings: RunSettings, dataset: DiscoveryDataset) -> DiscoveryDataset:
        if settings.features is None:
            return dataset
        return embed_dataset(
            dataset, settings.features, root=settings.data, cache=self.out / "features", verbose=self.verbose
        )


def run_once(
    settings: RunSettings,
    dataset: DiscoveryDataset,
    *,
    cache_dir: str | None = None,
    keep_features: bool = False,
    verbose: int = 0,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
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
    record : dict
    arrays : dict of ndarray
        ``found`` and ``truth`` of the pool, ``found_unseen`` and ``truth_unseen``, ``known_classes``.
    """
    check_visible(settings, dataset)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    split = settings.split
    data = dataset.split(split.seed, known=split.known, labelled=split.labelled, unseen=split.unseen)
    method = find_method(settings.method)
    n_true = len(np.union1d(data.y_labelled, data.y_unlabelled))
    task = Task(
        has_images=dataset.kind == "images",
        preset=dataset.preset,
        n_clusters=n_true if method.given == "the number of classes" else None,
        seed=settings.seed,
        cache_dir=cache_dir,
        verbose=verbose,
    )
    model = build_method(settings.method, task, settings.parameters)
    answers = answer(model, data.X_labelled, data.y_labelled, data.X_unlabelled, data.X_unseen)
    record = {
        "format": FORMAT,
        "settings": settings.to_json(),
        "data": describe_data(settings, dataset),
        "split": describe_split(data, settings.data),
        "given": method.given,
        "parameters": _list_parameters(model),
        "scores": score_answers(
            data,
            answers.found,
            answers.found_unseen,
            n_clusters=answers.model.n_clusters_,
            novelty=answers.novelty,
        ),
        "chosen": _describe_choice(answers.model),
        "history": to_plain(getattr(answers.model, "history_", [])),
        "seconds": {"fit": round(answers.seconds_fit, 3), "predict": round(answers.seconds_predict, 3)},
        "sha256": {
            "unlabelled": digest_labels(answers.found),
            "unseen": digest_labels(answers.found_unseen),
        },
        "environment": describe_environment(),
        "started": started,
    }
    arrays = {
        "found": answers.found,
        "truth": data.y_unlabelled,
        "found_unseen": answers.found_unseen,
        "truth_unseen": data.y_unseen,
        "known_classes": data.known_classes,
    }
    if keep_features and hasattr(answers.model, "transform"):
        arrays["features"] = answers.model.transform(data.X_unlabelled).astype(np.float16)
    return record, {name: _without_objects(array) for name, array in arrays.items()}


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


def repeat_run(record: dict[str, Any], *, data: str | None = None, verbose: int = 0) -> dict[str, Any]:
    """Run what a record says once more.

    Parameters
    ----------
    record : dict
    data : str or None, default=None
        Folder or file of the data, if it has moved.
    verbose : int, default=0

    Returns
    -------
    dict
        A new record, see `compare_records`.
    """
    import tempfile

    settings = RunSettings.from_json(record["settings"])
    told = RunSettings.from_json({**record["settings"], "parameters": record["parameters"]})  # defaults too
    with tempfile.TemporaryDirectory() as folder:
        moved = told if data is None else replace(told, data=data)
        return Bench(folder, verbose=verbose).run(moved).record | {"settings": settings.to_json()}


def compare_records(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """List what differs between two records of what should be one run.

    Where the data lie, when, how long and on what machine may differ.

    Parameters
    ----------
    first, second : dict

    Returns
    -------
    list of str
        Empty if the second repeats the first exactly.
    """
    differences = []
    for part in _REPEATED:
        one, other = first.get(part), second.get(part)
        if part == "settings":
            one, other = {**(one or {}), "data": None}, {**(other or {}), "data": None}
        if part == "history":
            one, other = _without_seconds(one or []), _without_seconds(other or [])
        if one != other:
            differences.append(_say_difference(part, one, other))
    return differences


@contextlib.contextmanager
def use_threads(n_threads: int) -> Iterator[None]:
    """Let torch and the numerical libraries use so many threads, and put back what was."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        torch.set_num_threads(before)


def check_visible(settings: RunSettings, dataset: DiscoveryDataset) -> None:
    """Refuse what a method cannot see, and say how it could."""
    method = find_method(settings.method)
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


def describe_data(settings: RunSettings, dataset: DiscoveryDataset) -> dict[str, Any]:
    """Return kind, sizes and digests of files of weights."""
    weights = [settings.parameters.get("backbone_weights"), (settings.features or {}).get("weights")]
    files = [str(path) for path in weights if path and Path(str(path)).is_file()]
    return {
        "kind": dataset.kind,
        "n_rows": len(dataset.X),
        "n_test_rows": len(dataset.X_test),
        "n_classes": len(dataset.classes),
        "weights_sha256": [digest_file(path) for path in files],
    }


def describe_split(data: DiscoveryData, root: str | None) -> dict[str, Any]:
    """Return sizes of the parts and a digest of which rows are in them."""
    return {
        "n_labelled": len(data.X_labelled),
        "n_unlabelled": len(data.X_unlabelled),
        "n_unseen": len(data.X_unseen),
        "n_known": len(data.known_classes),
        "n_novel": len(np.setdiff1d(data.y_unlabelled, data.known_classes)),
        "sha256": digest_split(data, root),
    }


def _list_parameters(model: Any) -> dict[str, Any]:
    """Return all parameters, defaults too: another version's may differ."""
    elsewhere = ("random_state", "verbose", "cache_dir")
    parameters = {
        name: value for name, value in model.get_params(deep=False).items() if name not in elsewhere
    }
    plain: dict[str, Any] = to_plain(parameters)
    return plain


def _describe_choice(model: Any) -> dict[str, Any]:
    chosen = {name.rstrip("_"): getattr(model, name) for name in _CHOSEN if hasattr(model, name)}
    plain: dict[str, Any] = to_plain(chosen)
    return plain


def _without_seconds(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the history without what differs from run to run."""
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in history]


def _without_objects(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(str) if array.dtype.kind == "O" else array


def _say_difference(part: str, one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
        return "; ".join(f"{part}.{key}: {one.get(key)!r}, now {other.get(key)!r}" for key in keys)
    return f"{part} differs"
