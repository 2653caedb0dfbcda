"""How many rows known classes have, labelled or not, by what labels show.

Two ways. Around labelled rows part of the neighbours is labelled: so large is the labelled share, once
neighbours from other classes are allowed for. And labels held back: rows without a label that look as
known as those held back do are, where no new class looks so, of known classes. Knows codes, neighbours
and scores: no features, no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.merging import ClassSizes
from pnp_gcd.neighbours import Neighbours

__all__ = [
    "LabelMixture",
    "LookingKnown",
    "describe_sizes",
    "estimate_sizes",
    "expect_known_part",
    "look_known",
    "read_labels",
    "split_shares",
]

# Neighbours of a labelled row in which labels are counted.
_NEAR = 10
# Neighbours of near rows are in part the same rows: this many of them count as one.
_ALIKE_NEIGHBOURS = 5
# So few known classes halve what their mixing says about new ones.
_FEW_CLASSES = 1
# Where more than this part of known classes is labelled, whoever labelled them decided their sizes in
# part, and wholly where all of it is: sizes of new classes may differ by as much as this (logarithm).
_MOSTLY_LABELLED = 0.7
_UNRELATED_SPREAD = 1.0
# What one class more would add to the squared spread of log-sizes: few classes may be alike by chance.
_SIZE_PRIOR = 0.05
# Neighbours that say how known a row looks, and how fast their say fades with distance.
N_LOOKED_AT = 25
_LOOK_TEMPERATURE = 0.1
# Parts of the rows held back that look most known, at which rows without a label are counted.
_PARTS = np.linspace(0.1, 1.0, 19)
# Standard errors that a count of few rows is held to be too high by.
_CAUTION = 2.0
# Rows held back below which nothing is counted by them.
_FEWEST_HELD = 100
# Rows held back that the part which looks most known has at least.
_FEWEST_ABOVE = 20


class LabelMixture(NamedTuple):
    """What is seen of labels around labelled rows.

    Attributes
    ----------
    seen : ndarray of shape (n_known,)
        Labelled part of the neighbours of each class's labelled rows.
    mixing : float
        Part of the labelled ones that belong to another class.
    n_labelled : ndarray of shape (n_known,), int64
        Labelled rows of each class.
    n_seen : int
        Labelled neighbours that were seen in all: what the part above rests on.
    n_rows : int
        All rows, labelled or not.
    n_expected : float or None
        Rows without a label that are of known classes, by labels held back.
    """

    seen: NDArray[np.float64]
    mixing: float
    n_labelled: NDArray[np.int64]
    n_seen: int
    n_rows: int
    n_expected: float | None = None

    @property
    def chance(self) -> float:
        """By which part the labelled neighbours seen may be more or fewer by chance."""
        return float(max(self.n_seen, 1) ** -0.5)


def read_labels(neighbours: Neighbours, codes: NDArray[np.int64], n_known: int) -> LabelMixture:
    """Look at the nearest neighbours of labelled rows: how many are labelled, how many alike."""
    labelled = codes >= 0
    near = codes[neighbours.nearest(_NEAR).indices[labelled]]
    own = codes[labelled]
    n_labelled = np.bincount(own, minlength=n_known)
    seen = np.bincount(own, weights=(near >= 0).sum(axis=1), minlength=n_known).astype(np.float64)
    n_seen = int(seen.sum())
    # One neighbour more of the own class, so that few or none do not look like classes that mix.
    mixing = float(n_seen - (near == own[:, None]).sum()) / (n_seen + 1.0)
    part = _share_evidence(seen, n_labelled * near.shape[1])
    return LabelMixture(part, mixing, n_labelled, n_seen, len(codes))


def _share_evidence(seen: NDArray[np.float64], n_near: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the part seen of each class, drawn to that of all where classes differ by chance only."""
    together = seen.sum() / max(n_near.sum(), 1)
    part = seen / np.maximum(n_near, 1)
    by_chance = together * (1.0 - together) * _ALIKE_NEIGHBOURS / np.maximum(n_near, 1)
    for_real = max(0.0, float(np.mean((part - together) ** 2 - by_chance)))
    trust = for_real / np.maximum(for_real + by_chance, 1e-12)
    out: NDArray[np.float64] = together + trust * (part - together)
    return out


class LookingKnown(NamedTuple):
    """How known rows look while part of the labels is held back.

    Attributes
    ----------
    held, unlabelled : ndarray
        Scores, high for rows that look like a known class: of rows whose label was held back, and of rows
        that have none.
    weights : ndarray
        How many unlabelled rows each row held back stands for: more in classes with few labels.
    """

    held: NDArray[np.float64]
    unlabelled: NDArray[np.float64]
    weights: NDArray[np.float64]


def look_known(neighbours: Neighbours, visible: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the part of each row's neighbours, near ones counting more, that have a visible label.

    Parameters
    ----------
    neighbours : Neighbours
        Of some rows among all n, found without the labels held back.
    visible : ndarray of shape (n,)
        Codes of labels shown, −1 for other rows.
    """
    near = neighbours.nearest(N_LOOKED_AT)
    weights = np.exp((near.similarities - near.similarities[:, :1]) / _LOOK_TEMPERATURE)
    out: NDArray[np.float64] = ((visible >= 0)[near.indices] * weights).sum(axis=1) / weights.sum(axis=1)
    return out


def expect_known_part(looks: Sequence[LookingKnown]) -> float | None:
    """Return which part of the unlabelled rows is of known classes; None where too few labels were held back.

    Rows held back are like unlabelled rows of the same classes. If a part of them looks more known than
    some score, and a part of the unlabelled rows does, then the second divided by the first is the part
    sought, and too high by the new classes' rows in it. The lowest such ratio tells, errors of small counts
    allowed for.
    """
    n_held = min((_count_effective(look.weights) for look in looks), default=0.0)
    if n_held < _FEWEST_HELD:
        return None
    parts = _PARTS[_PARTS * n_held >= _FEWEST_ABOVE]
    ratios, errors = np.mean([_compare_above(look, parts) for look in looks], axis=0)
    lowest = int((ratios * (1.0 + _CAUTION * errors)).argmin())
    return float(min(ratios[lowest], 1.0))


def _count_effective(weights: NDArray[np.float64]) -> float:
    """Return how many rows of equal weight would say as much."""
    return float(weights.sum() ** 2 / max(float((weights**2).sum()), 1e-12))


def _compare_above(
    look: LookingKnown, parts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ratio that each part of the rows held back leads to, and its relative error."""
    order = np.argsort(-look.held, kind="stable")
    held, unlabelled = look.held[order], np.sort(look.unlabelled)
    reached = np.cumsum(look.weights[order]) / look.weights.sum()
    cuts = held[np.minimum(np.searchsorted(reached, parts - 1e-9), len(held) - 1)]
    n_above = np.maximum(len(unlabelled) - np.searchsorted(unlabelled, cuts), 1)
    last = np.searchsorted(-held, -cuts, side="right") - 1  # rows that look just as known are above too
    part, part_above = np.minimum(reached[last], 1.0), n_above / len(unlabelled)
    n_held = part * _count_effective(look.weights)
    return part_above / part, np.sqrt((1.0 - part) / n_held + (1.0 - part_above) / n_above)


def estimate_sizes(mixture: LabelMixture, n_new: float) -> NDArray[np.float64]:
    """Return how many rows each known class has, labelled or not.

    Neighbours from new classes are never labelled and hide part of the share. They are as many as
    those from other known classes, which show by their labels, times new classes per known class;
    a little less where known classes are so few that two of them may mix by chance. A labelled row
    is not its own neighbour: among neighbours of its own class it sees the share of the other rows.
    What labels held back tell of all unlabelled rows together counts as much as that. All known classes
    together have no more rows than there are.
    """
    hidden_by_new = mixture.mixing * n_new / (len(mixture.seen) + _FEW_CLASSES)
    share = np.clip(mixture.seen * (1.0 + hidden_by_new), 1e-3, 1.0)
    n_labelled, own = mixture.n_labelled, 1.0 - mixture.mixing
    left_out = np.where(n_labelled > 1, own, 0.0)
    unlabelled = left_out + (n_labelled - left_out) / share - n_labelled
    total = max(float(unlabelled.sum()), 1e-9)
    expected = total if mixture.n_expected is None else np.sqrt(total * mixture.n_expected)
    most = float(mixture.n_rows - n_labelled.sum())
    out: NDArray[np.float64] = n_labelled + unlabelled * min(expected, most) / total
    return out


def split_shares(mixture: LabelMixture, n_new: float) -> NDArray[np.float64]:
    """Return the labelled part of each known class."""
    out: NDArray[np.float64] = mixture.n_labelled / estimate_sizes(mixture, n_new)
    return out


def describe_sizes(mixture: LabelMixture, sizes: NDArray[np.float64]) -> ClassSizes:
    """Return the mean and the spread of log-sizes of classes, by the ``sizes`` of known ones.

    The spread allows for few classes that are alike by chance; the shift for few labels from which sizes
    are read, and for known classes that have hardly any row beside the labelled ones.
    """
    logs = np.log(np.maximum(sizes, 1.0))
    squares = float(((logs - logs.mean()) ** 2).sum())
    spread = np.sqrt((squares + _SIZE_PRIOR) / (len(logs) - 0.8))
    share = float(mixture.n_labelled.sum() / sizes.sum())
    unrelated = _UNRELATED_SPREAD * max(0.0, share - _MOSTLY_LABELLED) / (1.0 - _MOSTLY_LABELLED)
    shift = float(np.hypot(unrelated, mixture.chance))
    return ClassSizes(float(logs.mean()), float(spread), shift, sizes)
