"""``pnp-gcd demo``: hide five of the ten handwritten digits, find them again, print a table.

Knows arguments and text. What is slow to import waits until the command runs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pnp_gcd import __version__
from pnp_gcd.commands.arguments import add_command, read_seed

if TYPE_CHECKING:
    from pnp_gcd.datasets import DiscoveryData

__all__ = ["add_demo"]


@dataclass(frozen=True)
class _Result:
    """One method's line of the table; accuracies from 0 to 1."""

    method: str
    all: float
    known: float
    novel: float
    unseen: float
    classes: int
    is_estimated: bool  # whether ``classes`` was found, or given
    seconds: float


def add_demo(commands: Any) -> None:
    """Add the command to a parser's commands.

    Parameters
    ----------
    commands : what ``ArgumentParser.add_subparsers`` returns
    """
    demo = add_command(
        commands,
        "demo",
        help="hide five of the ten handwritten digits, find them again, print a table",
        description="Hide five of scikit-learn's ten handwritten digits, find them again with default "
        "parameters, and compare with k-means that is told the number of classes. Progress goes to "
        "standard error, the table to standard output.",
        examples=["pnp-gcd demo", "pnp-gcd demo --seed 1 --json"],
    )
    demo.add_argument(
        "--seed",
        type=read_seed,
        default=0,
        metavar="N",
        help="draws the hidden digits and seeds both methods (default: 0)",
    )
    demo.add_argument("--json", action="store_true", help="print JSON in place of the table")
    demo.set_defaults(run=_run_demo)


def _run_demo(arguments: argparse.Namespace) -> int:
    """Fit both methods on digits with five classes hidden, and print how they did."""
    import numpy as np

    from pnp_gcd.datasets import load_digits_split

    seed = arguments.seed
    split = load_digits_split(random_state=seed)
    n_true = len(np.unique(split.y_unlabelled))
    results = [_discover(split, seed), _cluster(split, n_true, seed)]
    if arguments.json:
        record = {
            "version": __version__,
            "data": "digits",
            "seed": seed,
            "known_classes": split.known_classes.tolist(),
            "true_classes": n_true,
            "n_labelled": len(split.X_labelled),
            "n_unlabelled": len(split.X_unlabelled),
            "n_unseen": len(split.X_unseen),
            "results": [asdict(result) for result in results],
        }
        print(json.dumps(record, indent=2))
    else:
        print(_format_report(split, n_true, results))
    return 0


def _discover(split: DiscoveryData, seed: int) -> _Result:
    import pnp_gcd.training  # noqa: F401  # the import of torch is not the fit's time
    from pnp_gcd import PNPDiscoverer
    from pnp_gcd.metrics import split_cluster_accuracy

    began = time.perf_counter()
    model = PNPDiscoverer(random_state=seed, verbose=1)
    model.fit(split.X_labelled, split.y_labelled, split.X_unlabelled)
    seconds = time.perf_counter() - began
    found = split_cluster_accuracy(split.y_unlabelled, model.unlabelled_labels_, split.known_classes)
    unseen = split_cluster_accuracy(split.y_unseen, model.predict(split.X_unseen), split.known_classes)
    return _Result("PNPDiscoverer", *found, unseen.all, model.n_clusters_, True, seconds)


def _cluster(split: DiscoveryData, n_true: int, seed: int) -> _Result:
    """Run k-means on the same rows, with the true number of classes given."""
    import numpy as np
    from sklearn.cluster import KMeans

    from pnp_gcd.metrics import split_cluster_accuracy

    began = time.perf_counter()
    model = KMeans(n_true, n_init=10, random_state=seed)
    labels = model.fit_predict(np.concatenate([split.X_labelled, split.X_unlabelled]))
    seconds = time.perf_counter() - began
    pool_labels = labels[len(split.X_labelled) :]
    found = split_cluster_accuracy(split.y_unlabelled, pool_labels, split.known_classes)
    unseen = split_cluster_accuracy(split.y_unseen, model.predict(split.X_unseen), split.known_classes)
    return _Result(f"k-means, told {n_true}", *found, unseen.all, n_true, False, seconds)


def _format_report(split: DiscoveryData, n_true: int, results: Sequence[_Result]) -> str:
    known = ", ".join(map(str, split.known_classes.tolist()))
    lines = [
        f"Digits: {len(split.X_labelled)} rows with labels (digits {known}), {len(split.X_unlabelled)} "
        f"without (all {n_true} digits), {len(split.X_unseen)} unseen.",
        "",
        _format_line(("% of rows right", "All", "Known", "Novel", "Unseen", "Classes", "Seconds")),
        *(_format_line(_format_cells(result, n_true)) for result in results),
        "",
        _say_what_it_shows(n_true, *results),
    ]
    return "\n".join(lines)


def _format_cells(result: _Result, n_true: int) -> list[str]:
    accuracies = (result.all, result.known, result.novel, result.unseen)
    classes = f"{result.classes} of {n_true}" if result.is_estimated else "given"
    return [result.method, *(f"{100 * part:.1f}" for part in accuracies), classes, f"{result.seconds:.1f}"]


def _format_line(cells: Sequence[str]) -> str:
    first, *others = cells
    return f"{first:<18}" + "".join(f"{cell:>10}" for cell in others)


def _say_what_it_shows(n_true: int, discovered: _Result, clustered: _Result) -> str:
    points = 100 * (discovered.all - clustered.all)
    comparison = f"{abs(points):.1f} points {'more' if points >= 0 else 'fewer'} of the unlabelled rows right"
    return (
        f"PNPDiscoverer was not told how many classes there are: it found {discovered.classes} "
        f"(truly {n_true}) and got\n{comparison} than k-means, which was told."
    )
