"""How equal two fits with one seed are: in one process, in two, as a clone in a search, with other threads.

    python benchmarks/determinism.py [--seeds 3] [--rows 6000]

On handwritten digits (1,617 rows of 64 columns: so few that a fit takes one thread whatever is set) and on
made-up rows (20 overlapping classes in 192 columns, more than a million numbers, so that threads are used).
"identical" means: labels, prototypes and weights to the last bit. Otherwise the part of labels that agree,
the ARI between them and the accuracies of both are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.datasets import load_digits_split
from pnp_gcd.metrics import split_cluster_accuracy

SETS = ("digits", "clouds")


class Data(NamedTuple):
    """Arguments of fit, and the truth about the pool."""

    X: NDArray[np.floating]
    y: NDArray[np.int64]
    pool: NDArray[np.floating]
    truth: NDArray[np.int64]


class Found(NamedTuple):
    """What two fits are compared by."""

    labels: NDArray[np.int64]
    prototypes: NDArray[np.float32]
    weights: NDArray[np.float32]


def load(name: str, seed: int, n_rows: int) -> Data:
    if name == "digits":
        split = load_digits_split(random_state=seed)
        return Data(split.X_labelled, split.y_labelled, split.X_unlabelled, split.y_unlabelled)
    rng = np.random.default_rng(seed)
    y = rng.integers(20, size=n_rows)
    X = (0.4 * rng.normal(size=(20, 192)))[y] + rng.normal(size=(n_rows, 192))
    has_label = (y < 10) & (rng.random(n_rows) < 0.5)
    return Data(X[has_label], y[has_label], X[~has_label], y[~has_label])


def take(model: PNPDiscoverer) -> Found:
    weights = np.concatenate([tensor.numpy().ravel() for tensor in model.encoder_.state_dict().values()])
    return Found(model.unlabelled_labels_, model.prototypes_, weights)


def fit(data: Data, seed: int) -> Found:
    return take(PNPDiscoverer(random_state=seed).fit(data.X, data.y, data.pool))


def fit_elsewhere(name: str, seed: int, n_rows: int, n_threads: int) -> Found:
    """Fit in a process of its own, with as many threads; 0 are as many as here."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        told = json.dumps([name, seed, n_rows, str(path)])
        threads = {"OMP_NUM_THREADS": str(n_threads)} if n_threads else {}
        subprocess.run([sys.executable, __file__, "--fit", told], env=os.environ | threads, check=True)
        with np.load(path) as arrays:
            return Found(*(arrays[field] for field in Found._fields))


def fit_in_search(data: Data, seed: int) -> Found:
    """Return the refitted clone of a search over one setting."""
    X, y = pool(data.X, data.y, data.pool)
    rows = np.arange(len(y))
    search = GridSearchCV(
        clone(PNPDiscoverer(random_state=seed)),
        {"max_iter": [PNPDiscoverer().max_iter]},
        cv=[(rows, rows[: len(data.y)])],
        scoring=_score,
    )
    return take(search.fit(X, y).best_estimator_)


def _score(model: PNPDiscoverer, X: NDArray[np.floating], y: NDArray[np.int64]) -> float:
    return float(len(model.classes_))


def compare(first: Found, second: Found, truth: NDArray[np.int64], known: NDArray[np.int64]) -> str:
    if all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True)):
        return "identical"
    accuracy = [split_cluster_accuracy(truth, found.labels, known).all for found in (first, second)]
    same = float((first.labels == second.labels).mean())
    gap = ""
    if first.weights.shape == second.weights.shape:
        gap = f", largest gap of a weight {np.abs(first.weights - second.weights).max():.1e}"
    return (
        f"{same:.2%} of labels equal, ARI {adjusted_rand_score(first.labels, second.labels):.4f}, "
        f"accuracy {accuracy[0]:.2%} and {accuracy[1]:.2%}{gap}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        name, seed, n_rows, path = json.loads(arguments.fit)
        np.savez(path, **fit(load(name, seed, n_rows), seed)._asdict())
        return
    for name in SETS:
        for seed in range(arguments.seeds):
            data = load(name, seed, arguments.rows)
            known = np.unique(data.y)
            first = fit(data, seed)
            one, two = (fit_elsewhere(name, seed, arguments.rows, n) for n in (1, 2))
            default = fit_elsewhere(name, seed, arguments.rows, 0)
            ways = {
                "twice in one process": (first, fit(data, seed)),
                "in another process": (first, default),
                "a clone in GridSearchCV": (first, fit_in_search(data, seed)),
                "1 thread and 2 threads": (one, two),
            }
            for way, (left, right) in ways.items():
                print(f"{name}, seed {seed}, {way}: {compare(left, right, data.truth, known)}", flush=True)


if __name__ == "__main__":
    main()
