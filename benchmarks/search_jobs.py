"""Seconds of one search with ``n_jobs=1`` and with more, and the threads that workers use.

    python benchmarks/search_jobs.py [--jobs 2] [--repeats 3] [--rows 2000] [--seed 0]

The same ``GridSearchCV`` by hidden classes, four settings in two folds on rows made up, runs with one
job and with several in turn. Workers are started and have imported the package before the clock
starts. Prints every repeat, the medians, their ratio, whether the scores agree, and how many threads
torch uses in this process and in a worker: where jobs times threads exceed the cores, fits get in each
other's way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import joblib
import numpy as np
from _common import make_clouds, split_set
from sklearn.model_selection import GridSearchCV

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive

N_CLASSES = 20


def count_threads() -> int:
    """Return the threads torch would use here; loads what a fit needs."""
    import torch

    from pnp_gcd import training  # noqa: F401

    return torch.get_num_threads()


def make_search(n_jobs: int, seed: int) -> GridSearchCV:
    model = PNPDiscoverer(whitening="soft-within", max_iter=3, random_state=seed)
    return GridSearchCV(
        Transductive(model, lazy=True),
        {"estimator__n_neighbors": [8, 15], "estimator__edge_weights": ["shared", "cosine"]},
        cv=ClassHoldoutSplit(2, random_state=seed),
        refit=False,
        n_jobs=n_jobs,
    )


def time_search(data: DiscoveryData, n_jobs: int, seed: int) -> tuple[float, np.ndarray]:
    rows = pool(data.X_labelled, data.y_labelled, data.X_unlabelled)
    start = time.perf_counter()
    search = make_search(n_jobs, seed).fit(*rows)
    return time.perf_counter() - start, search.cv_results_["mean_test_score"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = make_clouds(N_CLASSES, options.rows // N_CLASSES, separation=0.8, seed=options.seed)
    data = split_set(rows, options.seed, unseen=0.0)
    workers = joblib.Parallel(n_jobs=options.jobs)(
        joblib.delayed(count_threads)() for _ in range(2 * options.jobs)
    )
    print(
        f"{os.cpu_count()} cores; torch uses {count_threads()} threads here and {max(workers)} in each of "
        f"{options.jobs} workers",
        flush=True,
    )
    alone: list[float] = []
    together: list[float] = []
    for repeat in range(1, options.repeats + 1):  # in turn, so that a busy moment hits both alike
        one, scores = time_search(data, 1, options.seed)
        several, others = time_search(data, options.jobs, options.seed)
        alone.append(one)
        together.append(several)
        print(
            f"repeat {repeat}: one job {one:.1f} s, {options.jobs} jobs {several:.1f} s; scores differ by "
            f"{np.abs(scores - others).max():.3g} at most",
            flush=True,
        )
    ratio = statistics.median(alone) / statistics.median(together)
    print(
        f"median: one job {statistics.median(alone):.1f} s, {options.jobs} jobs "
        f"{statistics.median(together):.1f} s: {ratio:.2f} times as fast"
    )


if __name__ == "__main__":
    main()
