"""Hide known classes, so that finding them again can be judged.

Part of the known classes is hidden whole, and part of the rows of the others. Hiding whole
classes is what lets a trial see discovery: a setting that finds no new class at all can still
recognise the known ones. Knows codes only: no features, no graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped, unused-ignore]

from pnp_gcd.matching import count_overlap

__all__ = [
    "FoundAgain",
    "Hiding",
    "expect_rows",
    "hide_classes",
    "hold_back_halves",
    "rows_per_held",
    "score_found",
]

# Classes to hide in all, one after another, before their count is trusted; and rounds at most.
_ENOUGH_HIDDEN = 15
_MAX_ROUNDS = 3


class Hiding(NamedTuple):
    """Labels with some hidden. Classes are renumbered: visible ones first, hidden ones after.

    Attributes
    ----------
    visible : ndarray of shape (n,), int64
        What the method may see: codes of shown rows, −1 for all others.
    everyone, held : ndarray of shape (n,), int64
        Codes of all labelled rows, and of those that are not shown; for the score only.
    n_visible, n_hidden : int
        Classes.
    order : ndarray of shape (n_visible + n_hidden,), int64
        The original code of each new one.
    """

    visible: NDArray[np.int64]
    everyone: NDArray[np.int64]
    held: NDArray[np.int64]
    n_visible: int
    n_hidden: int
    order: NDArray[np.int64]


class FoundAgain(NamedTuple):
    """How well a trial found what was hidden.

    Attributes
    ----------
    known, novel : float
        Recall times precision of visible and of hidden classes, 0 to 1.
    known_accuracy, novel_accuracy : float
        Part of the held-back rows that got their own class, 0 to 1; hidden classes are matched
        with new ones.
    """

    known: float
    novel: float
    known_accuracy: float
    novel_accuracy: float

    @property
    def score(self) -> float:
        """Return the mean of ``known`` and ``novel``."""
        return (self.known + self.novel) / 2


def hide_classes(codes: NDArray[np.int64], seed: int) -> list[Hiding]:
    """Hide one half of the classes, then the other; again in other halves where classes are few.

    Half of the rows of visible classes are held back too. Fewer than two classes: nothing.
    """
    n_known = int(codes.max(initial=-1)) + 1
    if n_known < 2:
        return []
    rng = np.random.default_rng(seed)
    hidings = []
    for _ in range(int(np.clip(np.ceil(_ENOUGH_HIDDEN / n_known), 1, _MAX_ROUNDS))):
        order = rng.permutation(n_known)
        halves = (order[: n_known // 2], order[n_known // 2 :])
        hidings += [_hide(codes, np.sort(hidden), n_known, rng) for hidden in halves]
    return hidings


def hold_back_halves(codes: NDArray[np.int64], seed: int) -> list[Hiding]:
    """Hide no class, but half of the rows of each; then the other half."""
    n_known = int(codes.max(initial=-1)) + 1
    first = _hide(codes, np.empty(0, dtype=np.int64), n_known, np.random.default_rng(seed))
    return [first, first._replace(visible=first.held, held=first.visible)]


def _hide(
    codes: NDArray[np.int64], hidden: NDArray[np.int64], n_known: int, rng: np.random.Generator
) -> Hiding:
    shown = np.setdiff1d(np.arange(n_known), hidden)
    order = np.concatenate([shown, hidden])
    renumber = np.empty(n_known, dtype=np.int64)
    renumber[order] = np.arange(n_known)
    everyone = np.where(codes >= 0, renumber[codes], -1)
    # Every second labelled row, in random order, of each visible class stays visible.
    shuffled = rng.permutation(len(codes))
    by_class = shuffled[np.argsort(everyone[shuffled], kind="stable")]
    by_class = by_class[(everyone[by_class] >= 0) & (everyone[by_class] < len(shown))]
    first = np.searchsorted(everyone[by_class], everyone[by_class])
    is_shown = np.zeros(len(codes), dtype=bool)
    is_shown[by_class[(np.arange(len(by_class)) - first) % 2 == 0]] = True
    visible = np.where(is_shown, everyone, -1)
    held = np.where(is_shown, -1, everyone)
    return Hiding(visible, everyone, held, len(shown), len(hidden), order)


def expect_rows(
    hiding: Hiding, found: NDArray[np.int64], n_found: int, labelled_share: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how many rows of each class each found group holds, by its labelled ones.

    The truth is known for labelled rows only; a class of which a part s is labelled has 1/s times
    as many rows as show. Rows that were shown, to the geometry and as evidence, do not count.

    Parameters
    ----------
    hiding : Hiding
    found : ndarray of shape (n,)
        Group of each row, −1 for none.
    n_found : int
    labelled_share : ndarray of shape (n_visible + n_hidden,)
        Labelled part of each class, in the hiding's order.

    Returns
    -------
    ndarray of shape (n_visible + n_hidden, n_found)
    """
    n_classes = hiding.n_visible + hiding.n_hidden
    overlap = count_overlap(hiding.held, found, n_classes, n_found).T
    out: NDArray[np.float64] = overlap * rows_per_held(hiding, labelled_share)[:, None]
    return out


def rows_per_held(hiding: Hiding, labelled_share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many rows of each class, of those not shown, one row that was held back stands for."""
    n_classes = hiding.n_visible + hiding.n_hidden
    labelled = np.bincount(hiding.everyone[hiding.everyone >= 0], minlength=n_classes)
    held = np.bincount(hiding.held[hiding.held >= 0], minlength=n_classes)
    not_shown = np.maximum(labelled / labelled_share - (labelled - held), held)
    out: NDArray[np.float64] = not_shown / np.maximum(held, 1)
    return out


def score_found(
    hiding: Hiding, found: NDArray[np.int64], n_found: int, labelled_share: NDArray[np.float64]
) -> FoundAgain:
    """Judge classes by the rows held back: recall times precision, and plain accuracy.

    A class that swallowed unlabelled rows of another shows: it has more rows than its labelled
    ones, divided by the labelled share of their classes, account for.

    Parameters
    ----------
    hiding : Hiding
    found : ndarray of shape (n,)
        Class of each row: visible classes under their code, new ones from ``n_visible`` on,
        −1 for none.
    n_found : int
        Visible and new classes.
    labelled_share : ndarray of shape (n_visible + n_hidden,)
    """
    n_visible = hiding.n_visible
    expected = expect_rows(hiding, found, n_found, labelled_share)
    sizes = np.bincount(found[(found >= 0) & (hiding.visible < 0)], minlength=n_found)
    precision = expected / np.maximum(np.maximum(sizes, expected.sum(axis=0)), 1e-9)
    held = count_overlap(hiding.held, found, n_visible + hiding.n_hidden, n_found).T
    rows = np.bincount(hiding.held[hiding.held >= 0], minlength=n_visible + hiding.n_hidden)
    recall = held / np.maximum(rows, 1)[:, None]
    measure = precision * recall
    shown = np.arange(n_visible)
    weights = rows[:n_visible] + 1e-9
    new = measure[n_visible:, n_visible:]
    pairs = linear_sum_assignment(new, maximize=True)
    gained, hit = np.zeros(hiding.n_hidden), np.zeros(hiding.n_hidden)
    gained[pairs[0]] = new[pairs]
    hit[pairs[0]] = recall[n_visible:, n_visible:][pairs]
    return FoundAgain(
        float(np.average(measure[shown, shown], weights=weights)),
        float(np.average(gained, weights=rows[n_visible:])),
        float(np.average(recall[shown, shown], weights=weights)),
        float(np.average(hit, weights=rows[n_visible:])),
    )
