"""How time, memory and accuracy of ``PNPDiscoverer.fit`` grow with the number of rows.

    python benchmarks/growth.py [--rows 10000,100000,1000000] [--classes 1000] [--columns 128] [--seed 0]

The rows are made up: Gaussian clouds of single precision, as many in each class as in any other. Half of the
classes are known and half of their rows labelled. Every size is fitted with the defaults in a process of its
own, so that its peak of memory is its own. Prints seconds, their ratio to the size before, the peak and the
accuracies on the unlabelled rows.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np
from _common import LabelledSet, split_set, warm_up

from pnp_gcd import PNPDiscoverer
from pnp_gcd.metrics import split_cluster_accuracy

SEPARATION = 0.7


def make_rows(n_rows: int, n_classes: int, n_columns: int, seed: int) -> LabelledSet:
    """Draw round clouds; a class's centre has so much spread a column, its rows 1."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=SEPARATION, size=(n_classes, n_columns)).astype(np.float32)
    y = np.arange(n_rows) % n_classes
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    X += centres[y]
    return LabelledSet(X, y)


def measure(n_rows: int, options: argparse.Namespace) -> None:
    """Fit once and print one line: seconds, GiB, accuracies, classes."""
    warm_up()
    data = split_set(
        make_rows(n_rows, options.classes, options.columns, options.seed), options.seed, unseen=0.0
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    model = PNPDiscoverer(random_state=options.seed)
    model.fit(data.X_labelled, data.y_labelled, data.X_unlabelled)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = split_cluster_accuracy(data.y_unlabelled, model.unlabelled_labels_, data.known_classes)
    epochs = sum(row["seconds"] for row in model.history_)
    print(
        f"{seconds:.2f} {peak / 2**20:.2f} {before / 2**20:.2f} {found.all:.4f} {found.known:.4f} "
        f"{found.novel:.4f} {model.n_clusters_} {epochs:.1f} {len(model.calibration_)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="10000,100000,1000000")
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        measure(options.one, options)
        return
    last = None
    for n_rows in (int(number) for number in options.rows.split(",")):
        ran = subprocess.run(
            [sys.executable, *sys.argv, "--one", str(n_rows)], capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise SystemExit(f"{n_rows} rows: the fit ended with {ran.returncode}.\n{ran.stderr}")
        seconds, peak, before, every, known, novel, n_classes, epochs, n_tried = ran.stdout.split()
        ratio = "" if last is None else f", {float(seconds) / last:.1f} times the size before"
        print(
            f"{n_rows} rows: {seconds} s{ratio} (epochs {epochs} s, {n_tried} settings tried), peak {peak} "
            f"GiB ({before} before the fit), All {float(every):.3f} Known {float(known):.3f} "
            f"Novel {float(novel):.3f}, {n_classes} classes of {options.classes}",
            flush=True,
        )
        last = float(seconds)


if __name__ == "__main__":
    main()
