"""Seconds and accuracy of ``PNPDiscoverer.fit`` beside other ways to cluster the same rows.

    OMP_NUM_THREADS=1 python benchmarks/fit_peers.py [--data FILE.npz] [--rows 13090] [--skip search,hdbscan]

Without a file (arrays X and y) the rows are made up like embeddings of short texts, in 77 classes. Half of
the classes are known and half of their rows labelled. Beside the fit:

    k-means          scikit-learn's, given the true number of classes, best of 10 runs
    HDBSCAN          scikit-learn's, on rows of unit length, 10 rows a cluster at least
    evoc             clusters of embeddings, if it is installed
    search           semi-supervised k-means that searches for the number of classes (Max-ACC, as GCD does)

Prints seconds, their ratio to ours, the accuracies on the pool and the number of classes. 5 to 15 minutes,
most of it the search.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import LabelledSet, fit_discoverer, fit_k_means, make_clouds, read_set, split_set, warm_up
from fit_time import make_text_like
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN

from pnp_gcd.benchmark.peers import SemiSupervisedKMeans
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.geometry import unit_rows
from pnp_gcd.metrics import split_cluster_accuracy


def run_ours(data: DiscoveryData, seed: int) -> NDArray[Any]:
    return fit_discoverer(data, seed).model.unlabelled_labels_


def run_k_means(data: DiscoveryData, seed: int) -> NDArray[Any]:
    return fit_k_means(data, seed).model.labels_[len(data.y_labelled) :]


def run_hdbscan(data: DiscoveryData, seed: int) -> NDArray[Any]:
    rows = unit_rows(np.concatenate([data.X_labelled, data.X_unlabelled]))
    return HDBSCAN(min_cluster_size=10, copy=True).fit(rows).labels_[len(data.y_labelled) :]


def run_evoc(data: DiscoveryData, seed: int) -> NDArray[Any]:
    import evoc

    rows = unit_rows(np.concatenate([data.X_labelled, data.X_unlabelled]))
    return np.asarray(evoc.EVoC().fit_predict(rows))[len(data.y_labelled) :]


def run_search(data: DiscoveryData, seed: int) -> NDArray[Any]:
    peer = SemiSupervisedKMeans(random_state=seed)
    return peer.fit(data.X_labelled, data.y_labelled, data.X_unlabelled).unlabelled_labels_


WAYS: dict[str, Callable[[DiscoveryData, int], NDArray[Any]]] = {
    "PNPDiscoverer": run_ours,
    "k-means": run_k_means,
    "evoc": run_evoc,
    "HDBSCAN": run_hdbscan,
    "search": run_search,
}


def compare(data: DiscoveryData, skipped: set[str], seed: int) -> None:
    ours = None
    for name, run in WAYS.items():
        if name.lower() in skipped:
            continue
        began = time.perf_counter()
        try:
            labels = run(data, seed)
        except ImportError as error:
            print(f"{name:<14} left out: {error}")
            continue
        seconds = time.perf_counter() - began
        ours = seconds if ours is None else ours
        found = split_cluster_accuracy(data.y_unlabelled, labels, data.known_classes)
        n_found = len({label for label in labels.tolist() if label != -1})
        print(
            f"{name:<14} {seconds:7.1f} s  {seconds / ours:6.2f} times ours  All {100 * found.all:5.1f} "
            f"Known {100 * found.known:5.1f} Novel {100 * found.novel:5.1f}  {n_found} classes in the pool",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays X and y")
    parser.add_argument("--rows", type=int, help="take so many, drawn at random")
    parser.add_argument("--skip", default="", help="names of ways to leave out")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = make_text_like(options.seed) if options.data is None else read_set(options.data)
    if options.rows is not None and options.rows < len(rows.y):
        drawn = np.random.default_rng(options.seed).permutation(len(rows.y))[: options.rows]
        rows = LabelledSet(rows.X[drawn], rows.y[drawn])
    data = split_set(rows, options.seed, unseen=0.0)
    print(f"{len(rows.y)} rows of {rows.X.shape[1]} columns, {data.count_classes()} classes", flush=True)
    warm_up()
    with contextlib.suppress(ImportError):  # it compiles itself when it is first used
        run_evoc(split_set(make_clouds(8, 60, separation=2.0, seed=0), seed=0), 0)
    compare(data, {name.strip().lower() for name in options.skip.split(",")}, options.seed)


if __name__ == "__main__":
    main()
