"""What the paper's analyses share: variants run on every data set with every seed, and their tables.

Knows settings and records: no picture, and no analysis of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.benchmark.running import Bench, Run
from pnp_gcd.benchmark.settings import RunSettings
from pnp_gcd.metrics import intra_class_bias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Answered",
    "Outcome",
    "Results",
    "Study",
    "Variant",
    "collect",
    "find_shared_classes",
    "mean_score",
    "name_best",
    "percent",
    "read_answers",
    "tabulate",
]

_PARTS = ("all", "known", "novel")


class Variant(NamedTuple):
    """One row of an analysis: what is changed against the base settings."""

    label: str
    parameters: Mapping[str, Any] = {}
    method: str | None = None
    known: float | None = None


class Outcome(NamedTuple):
    """A table (header and rows of text), what to know when reading it, and how to draw it."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    notes: list[str]
    draw: Callable[[], Figure]


Results = dict[str, dict[str, list[Run]]]
"""Runs by data set and variant, in the order of seeds."""


class Study(NamedTuple):
    """Where an analysis runs: the bench, base settings of each data set, and seeds."""

    bench: Bench
    bases: Sequence[RunSettings]
    seeds: Sequence[int]
    split_seed: int | None = None  # None: each seed divides the rows anew
    report: Callable[[str, Run], None] | None = None

    def run(self, variants: Iterable[Variant]) -> Results:
        """Run variants on all data sets with all seeds."""
        results: Results = {}
        for base in self.bases:
            for variant in variants:
                runs = [self._run_one(base, variant, seed) for seed in self.seeds]
                results.setdefault(base.title, {})[variant.label] = runs
        return results

    def _run_one(self, base: RunSettings, variant: Variant, seed: int) -> Run:
        split = replace(base.split, seed=seed if self.split_seed is None else self.split_seed)
        if variant.known is not None:
            split = replace(split, known=variant.known)
        settings = replace(base, seed=seed, split=split, parameters={**base.parameters, **variant.parameters})
        if variant.method is not None:  # the base's parameters are another method's
            settings = settings.with_method(variant.method, variant.parameters)
        run = self.bench.run(settings)
        if self.report is not None:
            self.report(variant.label, run)
        return run


class Answered(NamedTuple):
    """Classes found in the pool, true ones, and those that were known."""

    found: NDArray[Any]
    truth: NDArray[Any]
    known_classes: NDArray[Any]


def tabulate(results: Results, *notes: str, draw: Callable[[], Figure]) -> Outcome:
    """Return a table with a row for each variant, and All/Known/Novel and K for each data set."""
    header = ("variant", *(part for title in results for part in (f"{title}: All/Known/Novel", "K")))
    labels = list(next(iter(results.values())))
    rows = [
        (label, *(cell for of_set in results.values() for cell in _list_scores(of_set[label])))
        for label in labels
    ]
    return Outcome(header, rows, list(notes), draw)


def name_best(results: Results) -> list[str]:
    """Say for each data set which variant is best, and how far the last, the full method, is behind."""
    notes = []
    for title, of_set in results.items():
        means = {label: mean_score(runs, "all") for label, runs in of_set.items()}
        *_, full = means
        best = max(means, key=lambda label: (means[label], label == full))
        behind = 100 * (means[best] - means[full])
        said = (
            "the full method is the best row"
            if best == full
            else f"“{best}” is {behind:.1f} points ahead of it"
        )
        notes.append(f"{title}: {said}.")
    return notes


def read_answers(run: Run) -> Answered:
    """Read the classes of the pool that a run kept beside its record."""
    with np.load(run.path.with_suffix(".npz")) as arrays:
        return Answered(arrays["found"], arrays["truth"], arrays["known_classes"])


def find_shared_classes(answers: Sequence[Answered]) -> NDArray[Any]:
    """Return the true classes of which every variant has some rows right."""
    there = np.unique(answers[0].truth)
    for one in answers:
        bias = intra_class_bias(one.truth, one.found)
        there = np.intersect1d(there, bias.classes[bias.n_correct > 0])
    return there


def collect(results: Results, score: str) -> dict[str, dict[str, float]]:
    """Return the mean over seeds of a score, by data set and variant."""
    return {
        title: {label: mean_score(runs, score) for label, runs in of_set.items()}
        for title, of_set in results.items()
    }


def mean_score(runs: Sequence[Run], score: str) -> float:
    """Return the mean over seeds of a score; NaN where a run has none."""
    values = [run.record["scores"][score] for run in runs]
    return float(np.mean([np.nan if value is None else value for value in values]))


def percent(value: float | None) -> str:
    """Write a part of 1 as per cent."""
    return "–" if value is None or not np.isfinite(value) else f"{100 * value:.1f}"


def _list_scores(runs: Sequence[Run]) -> list[str]:
    accuracies = "/".join(percent(mean_score(runs, part)) for part in _PARTS)
    return [accuracies, f"{mean_score(runs, 'n_clusters'):.0f}"]
