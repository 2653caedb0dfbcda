"""Choose among settings without the truth: by hidden classes, and by recognising known rows.

    python benchmarks/search.py [--data FILE.npz] [--seeds 0,1,2] [--splits 5] [--epochs 0] [--jobs 1]

Without a file (arrays X and y) the rows are scikit-learn's digits. A seed draws the known half of
the classes and the labelled half of their rows, and seeds the estimator. Both searches are
``GridSearchCV`` over the same settings and see the same labels:

    hidden       Transductive(PNPDiscoverer), cv=ClassHoldoutSplit, its own score
    recognised   PNPDiscoverer, cv=KeepUnlabelled(2), its own score: accuracy on held-out known rows

What is not searched is fixed, so that a fit takes little time: no threshold, the plain resolution,
directions scaled by their spread inside known classes. Then each setting is fitted once to all rows
and its accuracy on the pool (All) is read off the truth. Prints a row per setting and what each
choice loses against the best setting.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import LabelledSet, read_seeds, read_set, split_set
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, ParameterGrid

from pnp_gcd import PNPDiscoverer, pool
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.exceptions import WorkflowWarning
from pnp_gcd.metrics import split_cluster_accuracy
from pnp_gcd.model_selection import ClassHoldoutSplit, KeepUnlabelled, Transductive


def list_settings(n_known: int) -> list[dict[str, list[Any]]]:
    """Neighbours with and without merging; weights as in the paper; known classes only."""
    return [
        {"n_neighbors": [5, 15, 40], "merge_threshold": ["auto", float("inf")]},
        {"n_neighbors": [15], "edge_weights": ["cosine"]},
        {"n_neighbors": [15], "n_clusters": [n_known]},
    ]


def search_scores(
    data: DiscoveryData, settings: list[dict[str, list[Any]]], model: PNPDiscoverer, options: Any, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean score of each setting by hidden classes and by recognition."""
    rows = pool(data.X_labelled, data.y_labelled, data.X_unlabelled)
    nested = [{f"estimator__{name}": values for name, values in grid.items()} for grid in settings]
    hidden = GridSearchCV(
        Transductive(model, lazy=True),
        nested,
        cv=ClassHoldoutSplit(options.splits, random_state=seed),
        refit=False,
        n_jobs=options.jobs,
    ).fit(*rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkflowWarning)  # that recognition is no way to choose
        recognised = GridSearchCV(
            model, settings, cv=KeepUnlabelled(2), refit=False, n_jobs=options.jobs
        ).fit(*rows)
    return hidden.cv_results_["mean_test_score"], recognised.cv_results_["mean_test_score"]


def run(rows: LabelledSet, options: Any, seed: int) -> tuple[float, float]:
    """Print the table of one seed; return what each choice loses, in points of All."""
    data = split_set(rows, seed, unseen=0.0)
    model = PNPDiscoverer(
        similarity_threshold=0.0,
        resolution=1.0,
        whitening="soft-within",
        max_iter=options.epochs,
        random_state=seed,
    )
    settings = list_settings(len(data.known_classes))
    began = time.perf_counter()
    hidden, recognised = search_scores(data, settings, model, options, seed)
    print(f"seed {seed}: {data.count_classes()} classes, {len(data.known_classes)} known", flush=True)
    truth = []
    for place, setting in enumerate(ParameterGrid(settings)):
        fitted = model.set_params(**{**model_defaults(), **setting})
        fitted.fit(data.X_labelled, data.y_labelled, data.X_unlabelled)
        truth.append(
            split_cluster_accuracy(data.y_unlabelled, fitted.unlabelled_labels_, data.known_classes).all
        )
        print(
            f"  hidden {hidden[place]:.3f}  recognised {recognised[place]:.3f}  All {100 * truth[-1]:.1f}  "
            f"classes {fitted.n_clusters_}  {setting}",
            flush=True,
        )
    best = max(truth)
    losses = [100 * (best - truth[int(np.argmax(scores))]) for scores in (hidden, recognised)]
    print(
        f"  best {100 * best:.1f}; chosen by hidden classes loses {losses[0]:.1f} points, by recognition "
        f"{losses[1]:.1f}; {time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return losses[0], losses[1]


def model_defaults() -> dict[str, Any]:
    """Return the defaults of the parameters that the settings change."""
    names = {name for grid in list_settings(2) for name in grid}
    return {name: value for name, value in PNPDiscoverer().get_params().items() if name in names}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays X and y")
    parser.add_argument("--seeds", type=read_seeds, default="0,1,2")
    parser.add_argument("--splits", type=int, default=5, help="folds that hide classes")
    parser.add_argument("--epochs", type=int, default=0, help="max_iter of every fit")
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of both searches")
    options = parser.parse_args()
    rows = LabelledSet(*load_digits(return_X_y=True)) if options.data is None else read_set(options.data)
    losses = np.array([run(rows, options, seed) for seed in options.seeds])
    print(
        f"loss against the best setting, mean and worst: hidden classes {losses[:, 0].mean():.1f} and "
        f"{losses[:, 0].max():.1f} points, recognition {losses[:, 1].mean():.1f} and {losses[:, 1].max():.1f}"
    )


if __name__ == "__main__":
    main()
