"""Seconds of ``PNPDiscoverer.fit`` beside ``KMeans(K, n_init=10)`` given the true K, on the same rows.

    OMP_NUM_THREADS=1 python benchmarks/fit_time.py [--data FILE.npz] [--repeats 3] [--seed 0]

Without a file (arrays X and y) the rows are made up: 13,090 unit rows in 384 columns, like embeddings
of short texts, in 77 classes. Half of the classes are known and half of their rows labelled. Both
estimators run in turn, in one process; imports and a first small fit are not counted. Prints every
repeat, the medians, their ratio and what the fit spent its time on:

    epochs that cluster      encode, cluster, train; every ``cluster_interval``-th epoch
    other epochs             encode, train
    rest                     calibration before the first epoch, and the last clustering
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _common import (
    LabelledSet,
    TimedFit,
    fit_discoverer,
    fit_k_means,
    make_clouds,
    read_set,
    score_k_means,
    split_set,
    warm_up,
)

from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.metrics import split_cluster_accuracy

N_CLASSES, ROWS_PER_CLASS, N_COLUMNS = 77, 170, 384
SEPARATION = 0.4


class Parts(NamedTuple):
    """Seconds of one fit, and of what it did."""

    total: float
    clustering_epochs: float
    other_epochs: float
    rest: float


def make_text_like(seed: int) -> LabelledSet:
    """Make unit rows of overlapping classes, in single precision as embedding models give them."""
    X, y = make_clouds(N_CLASSES, ROWS_PER_CLASS, separation=SEPARATION, seed=seed, n_columns=N_COLUMNS)
    return LabelledSet((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y)


def take_apart(fit: TimedFit) -> Parts:
    """Sort the seconds of ``history_`` by kind of epoch."""
    seconds = [row["seconds"] for row in fit.model.history_]
    clustering = sum(seconds[:: fit.model.cluster_interval])
    return Parts(fit.seconds, clustering, sum(seconds) - clustering, fit.seconds - sum(seconds))


def compare(data: DiscoveryData, n_repeats: int, seed: int) -> None:
    """Print the seconds of every repeat, their medians and the accuracies."""
    ours: list[Parts] = []
    theirs: list[float] = []
    for repeat in range(1, n_repeats + 1):  # in turn, so that a busy moment hits both alike
        fit = fit_discoverer(data, seed)
        k_means = fit_k_means(data, seed)
        ours.append(take_apart(fit))
        theirs.append(k_means.seconds)
        print(
            f"repeat {repeat}: PNPDiscoverer {fit.seconds:.1f} s, k-means {k_means.seconds:.1f} s", flush=True
        )
    total, clustering, other, rest = (statistics.median(part) for part in zip(*ours, strict=True))
    peer = statistics.median(theirs)
    print(f"median: PNPDiscoverer {total:.1f} s, k-means {peer:.1f} s, ratio {total / peer:.2f}")
    print(f"parts: epochs that cluster {clustering:.1f} s, other epochs {other:.1f} s, rest {rest:.1f} s")
    found = split_cluster_accuracy(data.y_unlabelled, fit.model.unlabelled_labels_, data.known_classes)
    print(
        f"All: PNPDiscoverer {100 * found.all:.1f} with {fit.model.n_clusters_} classes, "
        f"k-means given {data.count_classes()} {100 * score_k_means(data, k_means.model).all:.1f}; "
        f"{len(fit.model.calibration_)} settings tried in calibration"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays X and y")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="makes the rows, draws the split, seeds the fits")
    options = parser.parse_args()
    rows = make_text_like(options.seed) if options.data is None else read_set(options.data)
    data = split_set(rows, options.seed, unseen=0.0)
    print(
        f"{len(rows.y)} rows of {rows.X.shape[1]} columns, {data.count_classes()} classes, "
        f"{len(data.known_classes)} known with {len(data.y_labelled)} labelled rows",
        flush=True,
    )
    warm_up()
    compare(data, options.repeats, options.seed)


if __name__ == "__main__":
    main()
