"""Discovery on scikit-learn's digits, five of ten classes known, beside k-means given the true number.

    python benchmarks/digits.py [--seeds 0,1,2,3,4]

A seed draws the known classes, the labelled half of their rows, the unseen tenth of all rows, and
seeds the estimator, which runs with its defaults.
"""

from __future__ import annotations

import argparse

import numpy as np
from _common import fit_discoverer, fit_k_means, read_seeds, score_k_means

from pnp_gcd.datasets import load_digits_split
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy


def run(seed: int) -> tuple[float, float, float, int]:
    data = load_digits_split(random_state=seed)
    model, seconds = fit_discoverer(data, seed)
    truth, known = data.y_unlabelled, data.known_classes
    ours = split_cluster_accuracy(truth, model.unlabelled_labels_, known)
    named = named_accuracy(truth, model.unlabelled_labels_, known).all
    unseen = split_cluster_accuracy(data.y_unseen, model.predict(data.X_unseen), known).all
    theirs = score_k_means(data, fit_k_means(data, seed).model)
    print(
        f"seed {seed}  All/Known/Novel {ours.all:.3f}/{ours.known:.3f}/{ours.novel:.3f}  named {named:.3f}  "
        f"unseen {unseen:.3f}  classes {model.n_clusters_}  {seconds:.1f} s   "
        f"k-means given 10: {theirs.all:.3f}/{theirs.known:.3f}/{theirs.novel:.3f}",
        flush=True,
    )
    return ours.all, theirs.all, unseen, model.n_clusters_


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=read_seeds, default="0,1,2,3,4")
    results = [run(seed) for seed in parser.parse_args().seeds]
    ours, theirs, unseen, counts = np.array(results).T
    print(
        f"mean All {ours.mean():.3f}, k-means given 10 {theirs.mean():.3f}, "
        f"difference {ours.mean() - theirs.mean():+.3f}; "
        f"unseen {unseen.mean():.3f}; classes {counts.min():.0f} to {counts.max():.0f}"
    )


if __name__ == "__main__":
    main()
