"""What was found beside the truth: accuracies, errors by kind, classes taken for one another.

Knows labels: no features, no page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.labels import drop_unlabelled
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

__all__ = ["TrueClass", "Verdict", "judge"]


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
        Rows that have a truth, and a class.
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
    accuracy: SplitAccuracy
    named: SplitAccuracy
    bias: PredictionBias
    intra_class: float
    count_error: float
    classes: tuple[TrueClass, ...]
    row_codes: NDArray[np.int64]
    counts: NDArray[np.int64]


def judge(model: Any, codes: NDArray[np.int64], truth: Any) -> Verdict:
    """Score the classes of rows; rows without a truth, and images that were skipped, are left out.

    Parameters
    ----------
    model : fitted PNPDiscoverer
    codes : ndarray of shape (n_rows,)
        Place of each row's class in ``classes_``; -1 for none.
    truth : array-like of shape (n_rows,)

    Returns
    -------
    Verdict
    """
    has_truth, labels = drop_unlabelled(truth, model.missing_label, known=model.known_classes_)
    is_scored = has_truth & (codes >= 0)
    labels = labels[(codes >= 0)[has_truth]]
    if not len(labels):
        raise ValueError(
            "truth tells nothing of the rows that the model could read. Pass truth=None, or mend the images."
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
