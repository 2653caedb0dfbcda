"""Where the defaults hold and where they fall apart: one row per regime, as a Markdown table.

    python benchmarks/regimes.py [--seeds 0,1] [--only outliers,long-tail] [--quick]
    python benchmarks/regimes.py --data FILE.npz        # arrays X and y; every regime is cut from them
    python benchmarks/regimes.py --reject               # what predict(reject_below=…) turns away

Half of the classes are known, half of their rows labelled and a tenth of all rows unseen, unless the
regime says otherwise. On scikit-learn's digits:

    known-25, known-50, known-75    that many per cent of the classes are known
    labelled-5, labelled-20         that many per cent of the rows of known classes are labelled
    five-labels                     five labelled rows a class
    biased-labels                   a tenth of the rows are labelled, all in one corner of their class
    no-novel                        every class is known
    none-known                      the pool holds no row of a known class

On Gaussian clouds in 64 columns that overlap: k-means given the number of classes gets 60 to 90 % right,
fewer where classes differ much in size:

    clouds                          20 classes of 100 rows, to compare the others with
    long-tail                       20 classes, the smallest with a hundredth of the largest's rows
    tiny-classes                    200 classes of ten rows
    two-one-known, two-both-known   two classes
    duplicates                      every row of ``clouds`` three times, copies on the same side of the split
    outliers                        ``clouds``, and 5 % more rows of uniform noise in the pool, never scored

Columns: *All*, *Known*, *Novel* and *named* are accuracies on the pool in per cent (see
``pnp_gcd.metrics``); *unseen* that on unseen rows, classes paired as in the pool; *AUROC* how well
``novelty_score`` tells novel from known rows of the pool; *ECE* the calibration error of
``predict_proba`` on unseen rows, in per cent, over ten bins; *K* the number of classes found and
``n_clusters_interval_``. Several seeds are averaged, but for K. Warnings, errors and outliers are
reported below the table. The status is 1 if a fit failed.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import (
    LabelledSet,
    calibration_error,
    fit_discoverer,
    fit_k_means,
    is_right,
    make_clouds,
    pair_classes,
    read_seeds,
    read_set,
    score_k_means,
    split_set,
    warm_up,
)
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from pnp_gcd import PNPDiscoverer
from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy

# A row this untypical counts as marked; thresholds of the table of --reject.
UNTYPICAL = 0.01
REJECT_BELOW = (0.0, 0.01, 0.05, 0.1, 0.2)
N_OUTLIERS = 500  # of each kind, for --reject
# With --quick: at most so many classes and rows of each.
QUICK_CLASSES, QUICK_ROWS = 40, 50
SMALLEST_CLASS = 4  # rows of the rarest class of long-tail, at least


class Trial(NamedTuple):
    """A split, and rows of no class that join its pool."""

    data: DiscoveryData
    X_outliers: NDArray[np.floating] | None = None


class Regime(NamedTuple):
    """A set to use where no file is given, by its seed, and how to cut a trial from a set."""

    default_set: Callable[[int], LabelledSet]
    cut: Callable[[LabelledSet, int], Trial]


@dataclass(frozen=True)
class Outcome:
    """The figures of one fit; per cent where they are parts, NaN where they have no meaning."""

    all: float
    known: float
    novel: float
    named: float
    unseen: float
    auroc: float
    calibration_error: float
    k_means: float
    seconds: float
    n_found: int
    interval: tuple[int, int]
    n_true: int
    notes: list[str] = field(default_factory=list)


class Typicality(NamedTuple):
    """Whether each unseen row got its class, and how typical unseen rows and outliers are."""

    is_right: NDArray[np.bool_]
    unseen: NDArray[np.float64]
    noise: NDArray[np.float64]
    shuffled: NDArray[np.float64]


# Sets ---------------------------------------------------------------------------------------------


def digits(seed: int) -> LabelledSet:
    return LabelledSet(*load_digits(return_X_y=True))


def clouds(seed: int, *, n_classes: int = 20, n_rows: int = 100, separation: float = 0.5) -> LabelledSet:
    return make_clouds(n_classes, n_rows, separation=separation, seed=seed)


def take_some(rows: LabelledSet, sizes: dict[Any, int], seed: int) -> LabelledSet:
    """Draw at most so many rows of each class named; leave the other classes out."""
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(rows.y == label))[:size] for label, size in sizes.items()]
    return rows.take(np.sort(np.concatenate(drawn)))


def draw_classes(rows: LabelledSet, n_classes: int, n_rows: int, seed: int) -> LabelledSet:
    """Draw classes, and rows of each."""
    labels = np.random.default_rng(seed).permutation(np.unique(rows.y))[:n_classes]
    return take_some(rows, dict.fromkeys(labels.tolist(), n_rows), seed)


# Trials -------------------------------------------------------------------------------------------


def cut_plain(rows: LabelledSet, seed: int, *, known: float = 0.5, labelled: float = 0.5) -> Trial:
    return Trial(split_set(rows, seed, known=known, labelled=labelled))


def cut_few_labels(rows: LabelledSet, seed: int, *, n_labels: int = 5) -> Trial:
    """Leave some labelled rows of each known class, drawn at random."""
    data, rng = split_set(rows, seed), np.random.default_rng(seed)
    drawn = [
        rng.permutation(np.flatnonzero(data.y_labelled == label))[:n_labels] for label in data.known_classes
    ]
    return Trial(keep_labels(data, np.concatenate(drawn)))


def cut_biased_labels(rows: LabelledSet, seed: int, *, part: float = 0.2) -> Trial:
    """Leave labels in one corner of each known class: on the rows nearest to one of them."""
    data, rng = split_set(rows, seed), np.random.default_rng(seed)
    drawn = []
    for label in data.known_classes:
        members = np.flatnonzero(data.y_labelled == label)
        distances = np.linalg.norm(data.X_labelled[members] - data.X_labelled[rng.choice(members)], axis=1)
        drawn.append(members[np.argsort(distances)[: max(1, round(part * len(members)))]])
    return Trial(keep_labels(data, np.concatenate(drawn)))


def keep_labels(data: DiscoveryData, positions: NDArray[np.intp]) -> DiscoveryData:
    """Return the split with these labelled rows only; the others have joined the pool."""
    stays = np.isin(np.arange(len(data.y_labelled)), positions)
    return replace(
        data,
        X_labelled=data.X_labelled[stays],
        y_labelled=data.y_labelled[stays],
        X_unlabelled=np.concatenate([data.X_unlabelled, data.X_labelled[~stays]]),
        y_unlabelled=np.concatenate([data.y_unlabelled, data.y_labelled[~stays]]),
    )


def cut_none_known(rows: LabelledSet, seed: int) -> Trial:
    """Leave no row of a known class in the pool, nor among the unseen rows."""
    data = split_set(rows, seed)
    in_pool = ~np.isin(data.y_unlabelled, data.known_classes)
    in_unseen = ~np.isin(data.y_unseen, data.known_classes)
    return Trial(
        replace(
            data,
            X_unlabelled=data.X_unlabelled[in_pool],
            y_unlabelled=data.y_unlabelled[in_pool],
            X_unseen=data.X_unseen[in_unseen],
            y_unseen=data.y_unseen[in_unseen],
        )
    )


def cut_long_tail(rows: LabelledSet, seed: int) -> Trial:
    """Let the sizes of classes, in random order, fall geometrically to a hundredth."""
    labels, sizes = np.unique(rows.y, return_counts=True)
    wanted = np.maximum(np.geomspace(1, 0.01, len(labels)) * sizes.max(), SMALLEST_CLASS).round().astype(int)
    shuffled = np.random.default_rng(seed).permutation(labels)
    return cut_plain(take_some(rows, dict(zip(shuffled.tolist(), wanted.tolist(), strict=True)), seed), seed)


def cut_tiny_classes(rows: LabelledSet, seed: int) -> Trial:
    return cut_plain(draw_classes(rows, 200, 10, seed), seed)


def cut_two_classes(rows: LabelledSet, seed: int, *, known: float) -> Trial:
    return cut_plain(draw_classes(rows, 2, len(rows.y), seed), seed, known=known)


def cut_duplicates(rows: LabelledSet, seed: int) -> Trial:
    data = split_set(rows, seed)
    repeated = {
        name: np.repeat(getattr(data, name), 3, axis=0)
        for name in ("X_labelled", "y_labelled", "X_unlabelled", "y_unlabelled")
    }
    return Trial(replace(data, **repeated))


def cut_outliers(rows: LabelledSet, seed: int) -> Trial:
    data = split_set(rows, seed)
    return Trial(data, draw_uniform(rows.X, round(0.05 * len(data.y_unlabelled)), seed))


def draw_uniform(X: NDArray[np.floating], n_rows: int, seed: int) -> NDArray[np.floating]:
    """Draw rows of uniform noise, each column between its smallest and largest value."""
    rng = np.random.default_rng(seed)
    return rng.uniform(X.min(axis=0), X.max(axis=0), size=(n_rows, X.shape[1])).astype(X.dtype)


REGIMES: dict[str, Regime] = {
    "known-25": Regime(digits, partial(cut_plain, known=0.25)),
    "known-50": Regime(digits, cut_plain),
    "known-75": Regime(digits, partial(cut_plain, known=0.75)),
    "labelled-5": Regime(digits, partial(cut_plain, labelled=0.05)),
    "labelled-20": Regime(digits, partial(cut_plain, labelled=0.2)),
    "five-labels": Regime(digits, cut_few_labels),
    "biased-labels": Regime(digits, cut_biased_labels),
    "no-novel": Regime(digits, partial(cut_plain, known=1.0)),
    "none-known": Regime(digits, cut_none_known),
    "clouds": Regime(clouds, cut_plain),
    "long-tail": Regime(partial(clouds, n_rows=500, separation=0.6), cut_long_tail),
    "tiny-classes": Regime(partial(clouds, n_classes=200, n_rows=10, separation=0.8), cut_tiny_classes),
    "two-one-known": Regime(
        partial(clouds, n_classes=2, n_rows=300, separation=0.4), partial(cut_two_classes, known=0.5)
    ),
    "two-both-known": Regime(
        partial(clouds, n_classes=2, n_rows=300, separation=0.4), partial(cut_two_classes, known=1.0)
    ),
    "duplicates": Regime(clouds, cut_duplicates),
    "outliers": Regime(clouds, cut_outliers),
}


# Measuring ----------------------------------------------------------------------------------------


def measure(trial: Trial, seed: int) -> Outcome:
    """Fit with the defaults beside k-means given the number of classes, and score both."""
    data, X_outliers = trial
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, seconds = fit_discoverer(data, seed, X_outliers=X_outliers)
    found = model.unlabelled_labels_[: len(data.y_unlabelled)]
    ours = split_cluster_accuracy(data.y_unlabelled, found, data.known_classes)
    pairs = pair_classes(data, found)
    probabilities = model.predict_proba(data.X_unseen)
    right = is_right(data.y_unseen, model.predict(data.X_unseen), pairs)
    k_means = fit_k_means(data, seed, X_outliers=X_outliers).model
    notes = sorted({f"{warning.category.__name__}: {warning.message}" for warning in caught})
    if X_outliers is not None:
        notes.append(count_untypical(model, data, X_outliers))
    return Outcome(
        all=100 * ours.all,
        known=100 * ours.known,
        novel=100 * ours.novel,
        named=100 * named_accuracy(data.y_unlabelled, found, data.known_classes).all,
        unseen=100 * float(right.mean()),
        auroc=score_novelty(model, data),
        calibration_error=100 * calibration_error(probabilities.max(axis=1), right),
        k_means=100 * score_k_means(data, k_means).all,
        seconds=seconds,
        n_found=model.n_clusters_,
        interval=model.n_clusters_interval_,
        n_true=data.count_classes(),
        notes=notes,
    )


def score_novelty(model: PNPDiscoverer, data: DiscoveryData) -> float:
    """Return the AUROC of ``novelty_score`` on the pool; NaN where it holds one kind of rows only."""
    is_novel = ~np.isin(data.y_unlabelled, data.known_classes)
    if is_novel.all() or not is_novel.any():
        return float("nan")
    return float(roc_auc_score(is_novel, model.novelty_score(data.X_unlabelled)))


def count_untypical(model: PNPDiscoverer, data: DiscoveryData, X_outliers: NDArray[np.floating]) -> str:
    """Say how many outliers, and how many rows of classes, ``typicality`` marks, and where outliers went."""
    marked, wrongly = (int((model.typicality(X) < UNTYPICAL).sum()) for X in (X_outliers, data.X_unseen))
    is_outlier = np.arange(len(model.unlabelled_labels_)) >= len(data.y_unlabelled)
    labels, sizes = np.unique(model.unlabelled_labels_[is_outlier], return_counts=True)
    n_ruled = sum(
        2 * size > (model.unlabelled_labels_ == label).sum()
        for label, size in zip(labels, sizes, strict=True)
    )
    return (
        f"typicality() < {UNTYPICAL} marks {marked} of {len(X_outliers)} outliers in the pool "
        f"and {wrongly} of {len(data.X_unseen)} unseen rows of classes; {n_ruled} of the classes found "
        "are mostly outliers"
    )


# Printing -----------------------------------------------------------------------------------------

COLUMNS = (
    "regime", "rows: labelled + pool + unseen", "All", "Known", "Novel", "named", "unseen", "AUROC", "ECE",
    "K (interval)", "true K", "k-means given K: All", "seconds",
)  # fmt: skip


def print_row(cells: list[str] | tuple[str, ...]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def show(values: list[float], digits_shown: int = 1) -> str:
    """Return the mean, or nothing where every value is NaN."""
    present = [value for value in values if not np.isnan(value)]
    return f"{np.mean(present):.{digits_shown}f}" if present else ""


def show_count(outcome: Outcome) -> str:
    low, high = outcome.interval
    return f"{outcome.n_found} ({low}–{high})"


def show_sizes(trial: Trial) -> str:
    data = trial.data
    n_outliers = 0 if trial.X_outliers is None else len(trial.X_outliers)
    return f"{len(data.y_labelled)} + {len(data.y_unlabelled) + n_outliers} + {len(data.y_unseen)}"


def summarise(name: str, sizes: str, outcomes: list[Outcome]) -> list[str]:
    """Return the cells of one row of the table."""

    def mean(attribute: str, digits_shown: int = 1) -> str:
        return show([getattr(outcome, attribute) for outcome in outcomes], digits_shown)

    return [
        name.ljust(max(map(len, REGIMES))),
        sizes,
        *(mean(attribute) for attribute in ("all", "known", "novel", "named", "unseen")),
        mean("auroc", 3),
        mean("calibration_error"),
        ", ".join(show_count(outcome) for outcome in outcomes),
        ", ".join(dict.fromkeys(str(outcome.n_true) for outcome in outcomes)),
        mean("k_means"),
        mean("seconds"),
    ]


# Commands -----------------------------------------------------------------------------------------


def get_set(regime: Regime, options: argparse.Namespace, seed: int) -> LabelledSet:
    """Return the file's rows or the regime's own; fewer of them with --quick."""
    rows = regime.default_set(seed) if options.data is None else read_set(options.data)
    return draw_classes(rows, QUICK_CLASSES, QUICK_ROWS, seed) if options.quick else rows


def compare_regimes(options: argparse.Namespace) -> bool:
    """Print the table and the notes; return whether every fit went through."""
    print_row(COLUMNS)
    print_row(["---"] * len(COLUMNS))
    notes: list[str] = []
    n_failed = 0
    for name in options.only:
        outcomes = []
        sizes = ""
        for seed in options.seeds:
            try:
                trial = REGIMES[name].cut(get_set(REGIMES[name], options, seed), seed)
                sizes = show_sizes(trial)
                outcomes.append(measure(trial, seed))
            except Exception as error:  # one broken regime must not hide the others
                n_failed += 1
                traceback.print_exc()
                notes.append(f"{name}, seed {seed}: failed with {type(error).__name__}: {error}")
            else:
                notes += [f"{name}, seed {seed}: {note}" for note in outcomes[-1].notes]
        print_row(summarise(name, sizes, outcomes))
    print("", *(f"- {note}" for note in notes), sep="\n")
    return not n_failed


def compare_rejection(options: argparse.Namespace) -> None:
    """Print what ``reject_below`` turns away of unseen rows, and of outliers the fit never saw."""
    columns = ("reject_below", "unseen rows rejected", "right of those kept", "right of those rejected",
               "uniform noise rejected", "shuffled columns rejected")  # fmt: skip
    trials = [measure_typicality(get_set(REGIMES["known-50"], options, seed), seed) for seed in options.seeds]
    right, unseen, noise, shuffled = (np.concatenate(parts) for parts in zip(*trials, strict=True))
    print_row(columns)
    print_row(["---"] * len(columns))
    for threshold in REJECT_BELOW:
        rejects = unseen < threshold
        parts = (rejects, right[~rejects], right[rejects], noise < threshold, shuffled < threshold)
        print_row([f"{threshold:g}", *(show(list(100.0 * part)) for part in parts)])


def measure_typicality(rows: LabelledSet, seed: int) -> Typicality:
    """Fit once; return the typicality of unseen rows and of two kinds of outliers."""
    data = split_set(rows, seed, unseen=0.3)
    model = fit_discoverer(data, seed).model
    pairs = pair_classes(data, model.unlabelled_labels_)
    return Typicality(
        is_right(data.y_unseen, model.predict(data.X_unseen), pairs),
        model.typicality(data.X_unseen),
        model.typicality(draw_uniform(rows.X, N_OUTLIERS, seed)),
        model.typicality(shuffle_columns(rows.X, N_OUTLIERS, seed)),
    )


def shuffle_columns(X: NDArray[np.floating], n_rows: int, seed: int) -> NDArray[np.floating]:
    """Draw every value from another row of its column: outliers with the right scale, harder to tell."""
    rng = np.random.default_rng(seed)
    return np.take_along_axis(X, rng.integers(len(X), size=(n_rows, X.shape[1])), axis=0)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="FILE.npz", help="arrays X and y, in place of every set")
    parser.add_argument("--seeds", type=read_seeds, default=[0], help="draw the split and seed the fit")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(REGIMES), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="fewer classes, fewer rows: a smoke test")
    parser.add_argument("--reject", action="store_true", help="the table of reject_below, on known-50")
    options = parser.parse_args()
    unknown = set(options.only) - set(REGIMES)
    if unknown:
        parser.error(f"--only: no regime {', '.join(sorted(unknown))}. Choose from {', '.join(REGIMES)}.")
    return options


def main() -> None:
    options = read_options()
    warm_up()
    if options.reject:
        compare_rejection(options)
    elif not compare_regimes(options):
        sys.exit(1)


if __name__ == "__main__":
    main()
