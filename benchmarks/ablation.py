"""What each part of the method gives: one row per variant, all other parameters at their defaults.

    python benchmarks/ablation.py [--data FILE.npz ...] [--seeds 0,1] [--only cosine-edges,untrained]

Most variants are parameters. Steps that no parameter switches off are left out by putting another function in
their place: ``nothing parted``, ``never balanced``, ``nothing refined``, ``sizes ignored``.

Without a file (arrays X and y, rows are put on the unit sphere) the set is scikit-learn's digits. Half
of the classes are known, half of their rows labelled, a tenth of all rows unseen. Cells are All / named /
unseen accuracy in per cent (see ``pnp_gcd.metrics``) and the number of classes found, means over seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from _common import LabelledSet, is_right, pair_classes, read_seeds, read_set, split_set
from sklearn.datasets import load_digits

from pnp_gcd import PNPDiscoverer
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy

VARIANTS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "untrained": {"max_iter": 0},
    "10 epochs": {"max_iter": 10},
    "20 epochs": {"max_iter": 20},
    "cosine edges": {"edge_weights": "cosine"},
    "clustering each epoch": {"cluster_interval": 1},
    "pool clustered alone": {"cluster_on": "unlabelled"},
    "nothing searched": {
        "n_neighbors": 8,
        "similarity_threshold": 0.0,
        "resolution": 1.0,
        "whitening": "discriminant",
    },
    "whitening discriminant": {"whitening": "discriminant"},
    "whitening soft-within": {"whitening": "soft-within"},
    "whitening within": {"whitening": "within"},
    "whitening soft-total": {"whitening": "soft-total"},
    "no whitening": {"whitening": None},
    "no merging": {"merge_threshold": float("inf")},
    "no potential prototypes": {"potential_prototypes": None},
    "no teacher": {"teacher": None},
    "distil unlabelled rows": {"distill_on": "unlabelled"},
    "half the view noise": {"view_noise": 0.3},
    "more view noise": {"view_noise": 1.0},
    "learning rate 0.05": {"learning_rate": 0.05},
    "learning rate 0.3": {"learning_rate": 0.3},
}


def merge_only(path: Any, n_merges: int, *ignored: Any, **also_ignored: Any) -> Any:
    """Stand in for ``balance_groups``."""
    return path.groups_after(n_merges)


def part_nothing(features: Any, homes: Any, *ignored: Any) -> Any:
    """Stand in for ``part_communities``."""
    return homes


def refine_nothing(
    features: Any, neighbours: Any, codes: Any, rows: Any, *ignored: Any, **also_ignored: Any
) -> Any:
    """Stand in for ``refine_rows``."""
    return np.where(codes >= 0, codes, rows)


def describe_nothing(*ignored: Any) -> None:
    """Stand in for ``describe_sizes``: nobody knows how many rows a class has."""


# Functions, by the place where they are called from, and what takes their place.
STEPS: dict[str, dict[str, Callable[..., Any]]] = {
    "nothing parted": {"grouping.part_communities": part_nothing},
    "never balanced": {"grouping.balance_groups": merge_only},
    "nothing parted or balanced": {
        "grouping.part_communities": part_nothing,
        "grouping.balance_groups": merge_only,
    },
    "nothing refined": {"calibration.refine_rows": refine_nothing, "probing.refine_rows": refine_nothing},
    "sizes ignored": {"calibration.describe_sizes": describe_nothing},
}


def score(rows: LabelledSet, seed: int, parameters: dict[str, Any]) -> list[float]:
    """Return All, named and unseen accuracy in per cent, and the number of classes."""
    data = split_set(rows, seed)
    model = PNPDiscoverer(random_state=seed, **parameters)
    model.fit(data.X_labelled, data.y_labelled, data.X_unlabelled)
    found, truth = model.unlabelled_labels_, data.y_unlabelled
    pairs = pair_classes(data, found)
    return [
        100 * split_cluster_accuracy(truth, found, data.known_classes).all,
        100 * named_accuracy(truth, found, data.known_classes).all,
        100 * float(is_right(data.y_unseen, model.predict(data.X_unseen), pairs).mean()),
        float(model.n_clusters_),
    ]


def read_sets(paths: list[Path]) -> dict[str, LabelledSet]:
    """Read the files, rows put on the unit sphere; digits if there are none."""
    if not paths:
        return {"digits": LabelledSet(*load_digits(return_X_y=True))}
    sets = {path.stem: read_set(path) for path in paths}
    return {
        name: LabelledSet(rows.X / np.linalg.norm(rows.X, axis=1, keepdims=True), rows.y)
        for name, rows in sets.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--seeds", type=read_seeds, default=[0])
    parser.add_argument(
        "--only", default=",".join([*VARIANTS, *STEPS]), help="variants, spaces or hyphens between words"
    )
    arguments = parser.parse_args()
    names = arguments.only.replace("-", " ").replace("soft ", "soft-").split(",")
    unknown = [name for name in names if name not in VARIANTS and name not in STEPS]
    if unknown:
        parser.error(f"--only names {unknown[0]!r}, which is none of: {', '.join([*VARIANTS, *STEPS])}.")
    sets = read_sets(arguments.data)
    print(
        "| variant | "
        + " | ".join(f"{name} ({len(np.unique(rows.y))})" for name, rows in sets.items())
        + " |"
    )
    print("|---" * (len(sets) + 1) + "|", flush=True)
    for name in names:
        cells = []
        for rows in sets.values():
            with ExitStack() as stack:
                for place, other in STEPS.get(name, {}).items():
                    stack.enter_context(mock.patch(f"pnp_gcd.{place}", other))
                scores = [score(rows, seed, VARIANTS.get(name, {})) for seed in arguments.seeds]
            means = np.mean(scores, axis=0)
            cells.append(f"{means[0]:.1f} / {means[1]:.1f} / {means[2]:.1f}, {means[3]:.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
