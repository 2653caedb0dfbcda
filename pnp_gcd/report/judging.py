"""What was found beside what is known: labels that rows were given, and the truth.

Knows labels: no features, no page.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.labels import drop_unlabelled, find_distinct, is_marker
from pnp_gcd.matching import match_by_overlap
from pnp_gcd.metrics import (
    PredictionBias,
    SplitAccuracy,
    cluster_count_error,
    intra_class_bias,
    named_accuracy,
    prediction_bias,
    split_cluster_accuracy,
)

__all__ = ["TrueClass", "Verdict", "judge", "read_given"]


@dataclass(frozen=True)
class TrueClass:
    """A class of the truth: its rows, how many were right, and the class found that is paired with it."""

    label: Any
    is_known: bool
    n_rows: int
    n_correct: int
    match: int


@dataclass(frozen=True)
class Verdict:
    """What was found beside the truth.

    Attributes
    ----------
    n_rows : int
        Rows that have a truth and a class, and had no label.
    n_given : int
        Rows that have a truth and a class, and are left out since they had a label.
    n_found : int
        Classes that the scored rows were put into.
    accuracy, named : SplitAccuracy
    bias : PredictionBias
    intra_class : float
    count_error : float
    classes : tuple of TrueClass
    row_codes : ndarray of shape (n_all_rows,)
        True class of each row, as a place in ``classes``; -1 where the truth is not told.
    counts : ndarray of shape (n_entries, 3)
        True class, class found, and how many rows; only where there are some.
    """

    n_rows: int
    n_given: int
    n_found: int
    accuracy: SplitAccuracy
    named: SplitAccuracy
    bias: PredictionBias
    intra_class: float
    count_error: float
    classes: tuple[TrueClass, ...]
    row_codes: NDArray[np.int64]
    counts: NDArray[np.int64]


def read_given(model: Any, given: Any) -> NDArray[np.int64]:
    """Return the class that each row was given, as a place in ``classes_``; -1 for rows without a label.

    A value that is a class is never read as a gap, so that -1 beside 1 needs no guess.

    Parameters
    ----------
    model : fitted PNPDiscoverer
    given : array-like of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_rows,), int64
    """
    place = {_key(label): code for code, label in enumerate(model.classes_.tolist())}
    values, inverse = find_distinct(given, "given")
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    codes = np.full(len(items) + 1, -1, dtype=np.int64)  # the last entry serves inverse == -1
    strange = []
    for at, item in enumerate(items):
        if _key(item) in place:
            codes[at] = place[_key(item)]
        elif not is_marker(item, model.missing_label):
            strange.append(item)
    if strange:
        raise ValueError(
            f"given holds {reprlib.repr(strange)}, but the model's classes are "
            f"{reprlib.repr(model.classes_.tolist())}. Pass labels as classes_ has them, after any renaming "
            "or merging, and None for rows that had none."
        )
    return codes[inverse]


def _key(label: Any) -> tuple[bool, Any]:
    return isinstance(label, bool), label  # a dict would take True for 1


def judge(
    model: Any, codes: NDArray[np.int64], truth: Any, *, is_given: NDArray[np.bool_] | None = None
) -> Verdict:
    """Score the classes of rows that had no label.

    Rows without a truth, and images that were skipped, are left out.

    Parameters
    ----------
    model : fitted PNPDiscoverer
    codes : ndarray of shape (n_rows,)
        Place of each row's class in ``classes_``; -1 for none.
    truth : array-like of shape (n_rows,)
    is_given : ndarray of shape (n_rows,) or None
        Rows that had a label, which prove nothing.

    Returns
    -------
    Verdict
    """
    if is_given is None:
        is_given = np.zeros(len(codes), dtype=bool)
    has_truth, labels = drop_unlabelled(truth, model.missing_label, known=model.known_classes_)
    could_score = has_truth & (codes >= 0)
    is_scored = could_score & ~is_given
    labels = labels[is_scored[has_truth]]
    if not len(labels):
        raise ValueError(
            "truth tells nothing of the rows that the model could read and that had no label. "
            "Pass truth=None, mend the images, or add rows without a label."
        )
    found = codes[is_scored]
    names, known = model.classes_[found], model.known_classes_
    bias = intra_class_bias(labels, names)
    place = {label: code for code, label in enumerate(bias.classes.tolist())}
    true_codes = np.array([place[label] for label in labels.tolist()], dtype=np.int64)
    row_codes = np.full(len(codes), -1, dtype=np.int64)
    row_codes[is_scored] = true_codes
    n_found = len(model.classes_)
    match = match_by_overlap(true_codes, found, len(place), n_found)
    partner = {int(true): code for code, true in enumerate(match) if true >= 0}
    pairs, n_pairs = np.unique(np.column_stack([true_codes, found]), axis=0, return_counts=True)
    is_known = set(known.tolist())
    return Verdict(
        n_rows=len(labels),
        n_given=int((could_score & is_given).sum()),
        n_found=len(np.unique(found)),
        accuracy=split_cluster_accuracy(labels, names, known),
        named=named_accuracy(labels, names, known),
        bias=prediction_bias(labels, names, known),
        intra_class=bias.mean,
        count_error=cluster_count_error(labels, names),
        classes=tuple(
            TrueClass(label, label in is_known, int(n), int(right), partner.get(code, -1))
            for code, (label, n, right) in enumerate(
                zip(bias.classes.tolist(), bias.n_rows, bias.n_correct, strict=True)
            )
        ),
        row_codes=row_codes,
        counts=np.column_stack([pairs, n_pairs]).astype(np.int64),
    )
