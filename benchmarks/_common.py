"""What the benchmarks share: sets of rows, the peer that is given the number of classes, scores.

Needs nothing but the package and scikit-learn; a file of your own comes in by ``read_set``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from pnp_gcd import PNPDiscoverer
from pnp_gcd.benchmark.scoring import is_right, pair_classes  # noqa: F401  # for the scripts
from pnp_gcd.datasets import DiscoveryData, make_discovery_split
from pnp_gcd.metrics import SplitAccuracy, split_cluster_accuracy

N_BINS = 10


class LabelledSet(NamedTuple):
    """Rows X of shape (n, d) and their true classes y of shape (n,)."""

    X: NDArray[np.floating]
    y: NDArray[Any]

    def take(self, rows: NDArray[Any]) -> LabelledSet:
        """Return some rows, by position or mask."""
        return LabelledSet(self.X[rows], self.y[rows])


class TimedFit(NamedTuple):
    """A fitted estimator and the seconds its fit took."""

    model: Any
    seconds: float


def read_set(path: Path) -> LabelledSet:
    """Read arrays X and y of an .npz file."""
    with np.load(path) as arrays:
        missing = {"X", "y"} - set(arrays.files)
        if missing:
            raise SystemExit(f"{path} has no array {' and '.join(sorted(missing))}, only {arrays.files}.")
        X, y = arrays["X"], arrays["y"]
    return LabelledSet(X.astype(np.result_type(X, np.float32)), y)  # half precision is for disks


class Pictures(NamedTuple):
    """Paths of pictures and their true classes, names of sub-folders."""

    paths: NDArray[np.str_]
    names: NDArray[np.str_]


def read_pictures(folder: str) -> Pictures:
    """List the pictures of a folder with a sub-folder for each class."""
    paths = sorted(str(path) for path in Path(folder).glob("*/*"))
    return Pictures(np.array(paths), np.array([Path(path).parent.name for path in paths]))


def hide_pictures(
    names: NDArray[np.str_], rng: np.random.Generator
) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Return the half of the classes that are known, and which pictures are labelled: half of theirs."""
    classes = np.unique(names)
    known = rng.permutation(classes)[: len(classes) // 2]
    has_label = np.zeros(len(names), dtype=bool)
    for name in known:
        of_class = np.flatnonzero(names == name)
        has_label[rng.permutation(of_class)[: len(of_class) // 2]] = True
    return known, has_label


def read_seeds(text: str) -> list[int]:
    """Read "0,1,2"."""
    return [int(seed) for seed in text.split(",")]


def make_clouds(
    n_classes: int, rows_per_class: int, *, separation: float, seed: int, n_columns: int = 64
) -> LabelledSet:
    """Draw classes as Gaussian clouds, each longer in some directions of its own than in others.

    A cloud's standard deviation falls from its first direction to its last as 1/√rank and is 1 in
    the root mean square; ``separation`` is that of the centres, in each column.
    """
    rng = np.random.default_rng(seed)
    lengths = np.arange(1, n_columns + 1) ** -0.5
    lengths /= np.sqrt(np.mean(lengths**2))
    clouds = []
    for centre in rng.normal(scale=separation, size=(n_classes, n_columns)):
        directions, _ = np.linalg.qr(rng.normal(size=(n_columns, n_columns)))
        clouds.append(centre + (rng.normal(size=(rows_per_class, n_columns)) * lengths) @ directions)
    return LabelledSet(np.concatenate(clouds), np.repeat(np.arange(n_classes), rows_per_class))


def split_set(
    rows: LabelledSet, seed: int, *, known: float = 0.5, labelled: float = 0.5, unseen: float = 0.1
) -> DiscoveryData:
    """Draw a part of the classes as known, of their rows as labelled, and of all rows as unseen."""
    return make_discovery_split(rows.y, known=known, labelled=labelled, unseen=unseen, seed=seed).take(*rows)


def fit_discoverer(
    data: DiscoveryData, seed: int, *, X_outliers: NDArray[np.floating] | None = None
) -> TimedFit:
    """Fit ``PNPDiscoverer`` with its defaults; outliers follow the pool's own rows."""
    pool = data.X_unlabelled if X_outliers is None else np.concatenate([data.X_unlabelled, X_outliers])
    start = time.perf_counter()
    model = PNPDiscoverer(random_state=seed).fit(data.X_labelled, data.y_labelled, pool)
    return TimedFit(model, time.perf_counter() - start)


def fit_k_means(
    data: DiscoveryData, seed: int, *, X_outliers: NDArray[np.floating] | None = None
) -> TimedFit:
    """Fit k-means, given the true number of classes, on the same rows."""
    outliers = () if X_outliers is None else (X_outliers,)
    rows = np.concatenate([data.X_labelled, data.X_unlabelled, *outliers])
    start = time.perf_counter()
    model = KMeans(data.count_classes(), n_init=10, random_state=seed).fit(rows)
    return TimedFit(model, time.perf_counter() - start)


def score_k_means(data: DiscoveryData, k_means: KMeans) -> SplitAccuracy:
    """Return the accuracies of k-means on the pool."""
    return split_cluster_accuracy(data.y_unlabelled, k_means.predict(data.X_unlabelled), data.known_classes)


def warm_up() -> None:
    """Fit both estimators once on few rows, so that no timed fit pays for imports."""
    data = split_set(make_clouds(4, 30, separation=2.0, seed=0), seed=0)
    fit_discoverer(data, seed=0)
    fit_k_means(data, seed=0)


def calibration_error(confidence: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error: mean |confidence − accuracy| over ten bins of equal width."""
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(confidence))
