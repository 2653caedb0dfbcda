"""Count the classes nobody has labelled: by how hidden known classes come apart, and by their sizes.

Hide known classes and look for new ones: of the groups found, part holds rows of hidden
classes. If H hidden classes fill h groups, one class fills h / H groups, and groups without
rows of known classes stand for that many fewer classes than they are. The answer hardly
depends on how far communities were merged, and its error can be read off the hidden classes.

The other way: what known classes leave of the rows, divided by the rows of a known class.
Assumptions: new classes come apart as known ones do, are spread over the features as they are,
and are on average as large. Knows codes, communities and merge paths: no features, no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.hiding import Hiding, rows_per_held
from pnp_gcd.matching import count_overlap
from pnp_gcd.merging import MergePath, Ownership
from pnp_gcd.sizing import LabelMixture, describe_sizes, estimate_sizes, split_shares

__all__ = [
    "ClassCount",
    "CountingTrial",
    "combine_counts",
    "count_by_size",
    "count_new_classes",
]

# Merge steps at which groups are counted.
_N_STEPS = 40
# Groups per hidden class at which a step counts: neither all in pieces nor all in one.
_PLAUSIBLE = (0.8, 1.25)
# Classes differ in how many groups they fill by this part of it at least, even if a few hidden ones do not.
_LEAST_SPREAD = 0.25
# The labelled share and the number of classes depend on each other; both settle within some rounds.
_N_ROUNDS = 4
_N_SIZE_ROUNDS = 20
# By this part the labelled share errs, seen on many kinds of rows.
_SHARE_ERROR = 0.06


class CountingTrial(NamedTuple):
    """Communities found while some classes were hidden.

    Attributes
    ----------
    hiding : Hiding
    homes : ndarray of shape (n,)
        Community of each row, −1 for none.
    ownership : Ownership
    path : MergePath
    """

    hiding: Hiding
    homes: NDArray[np.int64]
    ownership: Ownership
    path: MergePath


class ClassCount(NamedTuple):
    """The number of new classes.

    Attributes
    ----------
    n_new : float
    error : float
        Standard error, in classes.
    """

    n_new: float
    error: float

    def interval(self, n_known: int) -> tuple[int, int]:
        """Return the number of all classes, lowest and highest, that nine times in ten holds the truth."""
        low, high = self.n_new - 1.645 * self.error, self.n_new + 1.645 * self.error
        return n_known + max(0, int(np.floor(low))), n_known + int(np.ceil(high))


def count_new_classes(trials: Sequence[CountingTrial], mixture: LabelMixture, *, min_size: int) -> ClassCount:
    """Return the number of new classes, in the mean over trials of the median over merge steps.

    Parameters
    ----------
    trials : sequence of CountingTrial
        At least one.
    mixture : LabelMixture
    min_size : int
        Smaller groups are no class.
    """
    n_new = float(len(mixture.seen))
    walks = [_walk(trial, min_size) for trial in trials]
    counts = [n_new]
    pieces: list[NDArray[np.float64]] = []
    for _ in range(_N_ROUNDS):
        share = split_shares(mixture, n_new)
        found = [
            _count_in_trial(steps, trial.hiding, share[trial.hiding.order])
            for steps, trial in zip(walks, trials, strict=True)
        ]
        counts, pieces = [count for count, _ in found], [piece for _, piece in found]
        n_new = float(np.mean(counts))
    per_class = np.concatenate(pieces)
    spread = max(float(per_class.std() / max(per_class.mean(), 1e-9)), _LEAST_SPREAD)
    n_hidden = len(np.unique(np.concatenate([t.hiding.order[t.hiding.n_visible :] for t in trials])))
    error = n_new * spread * np.sqrt(1.0 / n_hidden + 1.0 / max(n_new, 1.0))
    by_share = _error_by_share(mixture, estimate_sizes(mixture, n_new))
    return ClassCount(n_new, float(np.hypot(np.hypot(error, np.std(counts)), by_share)))


class _Step(NamedTuple):
    """The groups without an owner at one step of merging, in one trial.

    Attributes
    ----------
    held : ndarray of shape (g, n_classes)
        Rows held back of each class in each group.
    total : ndarray of shape (g,)
        All rows of each group that have no visible label.
    """

    held: NDArray[np.float64]
    total: NDArray[np.float64]


def _walk(trial: CountingTrial, min_size: int) -> list[_Step]:
    """Return the steps at which groups are counted, going along the merges once."""
    hiding, path, homes = trial.hiding, trial.path, trial.homes
    n_communities, n_classes = path.n_communities, hiding.n_visible + hiding.n_hidden
    at_home = homes >= 0
    sizes = np.bincount(homes[at_home], minlength=n_communities)
    total = np.bincount(homes[at_home & (hiding.visible < 0)], minlength=n_communities).astype(np.float64)
    held = count_overlap(hiding.held, homes, n_classes, n_communities).astype(np.float64)
    is_open = trial.ownership.owner < 0
    steps: list[_Step] = []
    done = 0
    for n_merges in _steps(path):
        for kept, dropped in zip(path.kept[done:n_merges], path.dropped[done:n_merges], strict=True):
            for counts in (sizes, total, held):
                counts[kept] += counts[dropped]
            sizes[dropped] = 0
            is_open[kept] &= is_open[dropped]
        done = int(n_merges)
        is_new = is_open & (sizes >= min_size)
        steps.append(_Step(held[is_new], total[is_new]))
    return steps


def _count_in_trial(
    steps: Sequence[_Step], hiding: Hiding, share: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the number of new classes and how many groups each hidden class fills."""
    scale = rows_per_held(hiding, share)
    results = []
    for held, total in steps:
        rows = held * scale
        filled = (rows / np.maximum(np.maximum(total, rows.sum(axis=1)), 1e-9)[:, None]).sum(axis=0)
        per_class = filled[hiding.n_visible :]
        each = max(float(per_class.mean()), 1e-6)
        others = float((total > 0).sum()) - float(filled.sum())
        results.append((each, max(others, 0.0) / each, per_class))
    plausible = [r for r in results if _PLAUSIBLE[0] <= r[0] <= _PLAUSIBLE[1]]
    nearest = min(results, key=lambda result: abs(np.log(result[0])))
    return float(np.median([count for _, count, _ in plausible or [nearest]])), nearest[2]


def _steps(path: MergePath) -> NDArray[np.int64]:
    """Return numbers of merges, from those that the labels ask for on, closer together towards the end."""
    n_forced = int(np.isinf(path.strength).sum())
    n_left = len(path.strength) - n_forced
    if not n_left:
        return np.array([n_forced])
    left = np.unique(np.round(np.geomspace(1, n_left + 1, _N_STEPS)).astype(np.int64))
    out: NDArray[np.int64] = n_forced + n_left + 1 - left[::-1]
    return out


def count_by_size(mixture: LabelMixture) -> ClassCount:
    """Return the number of new classes if they are on average as large as known ones.

    Its error follows from how much known classes differ in size, from that of the labelled share, and
    from how far known classes have rows of their own beside the labelled ones.
    """
    n_known = len(mixture.seen)
    n_new = float(n_known)
    for _ in range(_N_SIZE_ROUNDS):
        sizes = estimate_sizes(mixture, n_new)
        n_new = max(0.0, mixture.n_rows - float(sizes.sum())) / float(sizes.mean())
    usual = describe_sizes(mixture, sizes)
    by_spread = np.hypot(usual.spread * np.sqrt(1.0 / n_known + 1.0 / max(n_new, 1.0)), usual.shift)
    return ClassCount(n_new, float(np.hypot(n_new * by_spread, _error_by_share(mixture, sizes))))


def _error_by_share(mixture: LabelMixture, sizes: NDArray[np.float64]) -> float:
    """Return by how many classes a count errs because the labelled share does."""
    part = min(float(np.hypot(_SHARE_ERROR, mixture.chance)), 0.9)
    return float(mixture.n_rows / sizes.mean()) * part / (1.0 - part)  # a lower share hides more classes


def combine_counts(first: ClassCount, second: ClassCount) -> ClassCount:
    """Return the mean of two counts, the surer one counting more.

    What the two disagree by, beyond what their errors explain, makes the result less sure.
    """
    weights = np.array([1.0 / max(count.error, 1e-3) ** 2 for count in (first, second)])
    part = weights / weights.sum()
    n_new = float(part @ [first.n_new, second.n_new])
    disagreement = float(np.sqrt(part @ (np.array([first.n_new, second.n_new]) - n_new) ** 2))
    return ClassCount(n_new, float(np.hypot(weights.sum() ** -0.5, disagreement)))
