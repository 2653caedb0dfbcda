"""Score discovered classes against the truth: accuracy, prediction bias, error of the class count.

Knows labels only: not the estimator, nor the features. Labels are compared by value (``1 == 1.0``, but
``1 != "1"``) and may be numbers, strings or a mixture.

Every function here reads noise alike: rows of ``y_pred`` labelled -1 or "-1" (HDBSCAN's label for rows in no
cluster) count as errors, and -1 is no cluster. Only if -1 or "-1" occurs in ``y_true``, as a class's name, is
-1 in ``y_pred`` a cluster like any other.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from pnp_gcd.labels import drop_unlabelled
from pnp_gcd.matching import match_by_overlap

__all__ = [
    "IntraClassBias",
    "PredictionBias",
    "SplitAccuracy",
    "cluster_count_error",
    "intra_class_bias",
    "named_accuracy",
    "prediction_bias",
    "score_named",
    "split_cluster_accuracy",
]

_NOISE = (-1, "-1")


class SplitAccuracy(NamedTuple):
    """Accuracy over all rows, rows of known classes and rows of novel classes; 0 to 1, NaN without rows."""

    all: float
    known: float
    novel: float


class PredictionBias(NamedTuple):
    """The four kinds of error between old (known) and new (novel) classes, as fractions of all rows."""

    false_old: float
    false_new: float
    true_old: float
    true_new: float


class IntraClassBias(NamedTuple):
    """Rows and correct rows of each true class, and the mean over classes of their difference."""

    classes: NDArray[Any]
    n_rows: NDArray[np.int64]
    n_correct: NDArray[np.int64]
    mean: float


def split_cluster_accuracy(y_true: ArrayLike, y_pred: ArrayLike, known_classes: ArrayLike) -> SplitAccuracy:
    """Score a clustering as the papers on category discovery do: All, Known (Old) and Novel (New) accuracy.

    One Hungarian matching pairs clusters with classes over all rows; a row is correct if its cluster is
    paired with its class. What the clusters are called does not matter, not even for known classes: use
    `named_accuracy` where it should.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Predicted classes or clusters; rows labelled -1 are noise (see the module's docstring).
    known_classes : array-like of shape (n_known,)
        The classes with labelled rows in training. Every other class of ``y_true`` is novel.

    Returns
    -------
    SplitAccuracy
        Fractions from 0 to 1: over all rows, over rows of known and over rows of novel classes.

    Notes
    -----
    Two pairings may be correct on equally many rows and share them differently between known and novel;
    the sorted order of the labels then decides, never the order of the rows.

    Examples
    --------
    >>> split_cluster_accuracy(["cat", "cat", "dog", "emu"], [7, 7, 3, 3], known_classes=["cat"])
    SplitAccuracy(all=0.75, known=1.0, novel=0.5)

    """
    rows = _read_rows(y_true, y_pred)
    is_known = _is_in(rows.true_labels, _read_known(known_classes, rows))
    return _split(_match_rows(rows) == rows.true_codes, is_known[rows.true_codes])


def named_accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    known_classes: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> SplitAccuracy:
    """Score predictions whose known classes must come back under their own label.

    A row of a known class is correct only under that very label. A row of a novel class is correct only if
    its predicted label is no known class and is paired with its class by a Hungarian matching between novel
    predicted labels and novel classes.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Predicted classes: known labels as they are, any other label for a discovered class; -1 is noise.
    known_classes : array-like of shape (n_known,)
        The classes with labelled rows in training. Every other class of ``y_true`` is novel.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        How much each row counts in the mean; classes are paired by rows, not by weights.

    Returns
    -------
    SplitAccuracy
        Fractions from 0 to 1; ``all`` is never above the ``all`` of `split_cluster_accuracy`.

    Examples
    --------
    >>> named_accuracy(["cat", "cat", "dog", "emu"], ["cat", "dog", "new-0", "cat"], known_classes=["cat"])
    SplitAccuracy(all=0.5, known=0.5, novel=0.5)

    """
    rows = _read_rows(y_true, y_pred)
    known = _read_known(known_classes, rows)
    is_known_row = _is_in(rows.true_labels, known)[rows.true_codes]
    code_of = {label: code for code, label in enumerate(rows.true_labels)}
    # A cluster that bears a known label stands for that class alone, even where the class has no row.
    namesake = np.array([code_of.get(label, -1) for label in rows.found_labels], dtype=np.int64)
    is_named = _is_in(rows.found_labels, known)
    novel_match = match_by_overlap(
        np.where(is_known_row, -1, rows.true_codes),
        np.where(_look_up(is_named, rows.found_codes, False), -1, rows.found_codes),
        len(rows.true_labels),
        len(rows.found_labels),
    )
    matched = _look_up(np.where(is_named, namesake, novel_match), rows.found_codes, -1)
    return _split(matched == rows.true_codes, is_known_row, sample_weight)


def score_named(
    y: Any,
    predicted: NDArray[Any],
    known_classes: NDArray[Any],
    *,
    missing_label: Any = "auto",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the ``all`` of `named_accuracy` over the rows of y that have a label: an estimator's score.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True classes, with unlabelled rows marked.
    predicted : ndarray of shape (n_rows,)
    known_classes : ndarray of shape (n_known,)
    missing_label : object, default="auto"
        What marks an unlabelled row in y.
    sample_weight : array-like of shape (n_rows,) or None, default=None

    Returns
    -------
    float

    """
    has_label, truth = drop_unlabelled(y, missing_label, known=known_classes)
    check_consistent_length(predicted, has_label, sample_weight)
    weights = None if sample_weight is None else np.asarray(sample_weight)[has_label]
    return named_accuracy(truth, predicted[has_label], known_classes, sample_weight=weights).all


def prediction_bias(y_true: ArrayLike, y_pred: ArrayLike, known_classes: ArrayLike) -> PredictionBias:
    """Sort the errors of a clustering by where they went: the paper's FO, FN, TO and TN.

    Clusters are paired with classes as in `split_cluster_accuracy`. A row's prediction is then "old" if its
    cluster is paired with a known class and "new" otherwise: a cluster without a partner, and noise, claim no
    known class and so count as new.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Predicted classes or clusters; rows labelled -1 are noise.
    known_classes : array-like of shape (n_known,)
        The old classes. Every other class of ``y_true`` is new.

    Returns
    -------
    PredictionBias
        ``false_old``: new rows predicted as an old class; ``false_new``: old rows predicted as new;
        ``true_old``: old rows predicted as another old class; ``true_new``: new rows predicted as another
        new class. All are fractions of all rows, so that the four and the ``all`` of
        `split_cluster_accuracy` add up to 1.

    Examples
    --------
    >>> prediction_bias(["cat", "cat", "dog", "emu"], [7, 7, 3, 7], known_classes=["cat"])
    PredictionBias(false_old=0.25, false_new=0.0, true_old=0.0, true_new=0.0)

    """
    rows = _read_rows(y_true, y_pred)
    is_known = _is_in(rows.true_labels, _read_known(known_classes, rows))
    matched = _match_rows(rows)
    is_wrong = matched != rows.true_codes
    is_old = is_known[rows.true_codes]
    goes_old = _look_up(is_known, matched, False)
    return PredictionBias(
        false_old=float(np.mean(is_wrong & ~is_old & goes_old)),
        false_new=float(np.mean(is_wrong & is_old & ~goes_old)),
        true_old=float(np.mean(is_wrong & is_old & goes_old)),
        true_new=float(np.mean(is_wrong & ~is_old & ~goes_old)),
    )


def intra_class_bias(y_true: ArrayLike, y_pred: ArrayLike) -> IntraClassBias:
    """Compare, class by class, the number of correct rows with the number of rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Predicted classes or clusters; rows labelled -1 are noise.

    Returns
    -------
    IntraClassBias
        The sorted ``classes``, ``n_rows`` and ``n_correct`` of each, and ``mean``, the paper's average bias:
        the mean over classes of ``n_correct - n_rows``, counted in rows. It is never above 0; 0 is perfect.

    Notes
    -----
    The paper averages over the classes found by both of the methods it compares. To do so, keep the classes
    with ``n_correct > 0`` in both results and take the mean over those.

    Examples
    --------
    >>> bias = intra_class_bias(["cat", "cat", "dog", "emu"], [7, 7, 3, 7])
    >>> bias.n_correct - bias.n_rows
    array([ 0,  0, -1])
    >>> round(bias.mean, 2)
    -0.33

    """
    rows = _read_rows(y_true, y_pred)
    n_true = len(rows.true_labels)
    is_correct = _match_rows(rows) == rows.true_codes
    n_rows = np.bincount(rows.true_codes, minlength=n_true).astype(np.int64, copy=False)
    n_correct = np.bincount(rows.true_codes[is_correct], minlength=n_true).astype(np.int64, copy=False)
    return IntraClassBias(_to_array(rows.true_labels), n_rows, n_correct, float(np.mean(n_correct - n_rows)))


def cluster_count_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Give the signed relative error of the number of classes, ``(found - true) / true``.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        True classes.
    y_pred : array-like of shape (n_rows,)
        Predicted classes or clusters; noise (-1) is no cluster.

    Returns
    -------
    float
        Positive where too many classes were found, negative where too few, 0 where the number is right;
        -1 where every row is noise.

    Examples
    --------
    >>> cluster_count_error(["cat", "cat", "dog", "emu"], [0, 1, 2, 3])
    0.3333333333333333

    """
    rows = _read_rows(y_true, y_pred)
    return (len(rows.found_labels) - len(rows.true_labels)) / len(rows.true_labels)


class _Rows(NamedTuple):
    """Checked labels as codes into two sorted lists of distinct labels; noise has the found code -1."""

    true_labels: list[Hashable]
    true_codes: NDArray[np.int64]
    found_labels: list[Hashable]
    found_codes: NDArray[np.int64]


def _read_rows(y_true: ArrayLike, y_pred: ArrayLike) -> _Rows:
    true_labels, true_codes = _encode(y_true, "y_true")
    found_labels, found_codes = _encode(y_pred, "y_pred")
    if len(true_codes) != len(found_codes):
        raise ValueError(
            f"y_pred has {len(found_codes)} rows but y_true has {len(true_codes)}. "
            "Pass one prediction for each row of y_true."
        )
    if len(true_codes) == 0:
        raise ValueError("y_true and y_pred are empty. Pass at least one row.")
    if not _is_in(true_labels, set(_NOISE)).any():
        is_noise = _is_in(found_labels, set(_NOISE))
        found_codes = np.where(is_noise, -1, np.cumsum(~is_noise) - 1)[found_codes]
        found_labels = [label for label in found_labels if label not in _NOISE]
    return _Rows(true_labels, true_codes, found_labels, found_codes)


def _read_known(known_classes: ArrayLike, rows: _Rows) -> set[Hashable]:
    known, _ = _encode(known_classes, "known_classes")
    kinds, true_kinds = ({_kind(label) for label in labels} for labels in (known, rows.true_labels))
    # Otherwise 0 against "0" would quietly make every row novel.
    if known and kinds.isdisjoint(true_kinds):
        raise ValueError(
            f"known_classes={reprlib.repr(known)} are {' and '.join(sorted(kinds))}, but the labels of "
            f"y_true are {' and '.join(sorted(true_kinds))}. Pass known_classes as y_true spells them."
        )
    return set(known)


def _encode(values: ArrayLike, name: str) -> tuple[list[Hashable], NDArray[np.int64]]:
    """Return the distinct labels of ``values``, sorted, and the place of each row's label among them."""
    given = list(values) if isinstance(values, set | frozenset) else values
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(
            f"{name}={reprlib.repr(given)} has shape {array.shape} but must be 1-d. "
            "Pass one label per row: flatten a single column, take the argmax of scores."
        )
    if array.dtype.kind in "US" and not isinstance(given, np.ndarray):
        array = np.asarray(given, dtype=object)  # NumPy has turned the list ["cat", 1] into ["cat", "1"]
    entries: list[Any] = array.tolist()
    try:
        labels = list(dict.fromkeys(entries))
    except TypeError as error:
        raise TypeError(
            f"{name}={reprlib.repr(given)}: {error}. Pass numbers or strings as labels."
        ) from error
    for label in labels:
        if _is_missing(label):
            remedy = "label rows without a cluster -1" if name == "y_pred" else "leave it out"
            raise ValueError(f"{name}[{entries.index(label)}]={label!r} is no label. Fill it in or {remedy}.")
    try:  # Sorted, so that ties in the matching do not depend on the order of the rows.
        labels.sort()
    except TypeError:
        labels.sort(key=lambda label: (_kind(label), str(label)))
    code_of = {label: code for code, label in enumerate(labels)}
    return labels, np.fromiter(map(code_of.__getitem__, entries), dtype=np.int64, count=len(entries))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA has no truth value
        return True


def _kind(label: Hashable) -> str:
    if isinstance(label, str):
        return "strings"
    return "numbers" if isinstance(label, Number) else f"{type(label).__name__} objects"


def _to_array(labels: list[Any]) -> NDArray[Any]:
    """Turn labels into an array of their common type, or of objects where they have none."""
    if len({_kind(label) for label in labels}) == 1 and isinstance(labels[0], str | Number):
        return np.asarray(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _is_in(labels: list[Hashable], wanted: set[Hashable]) -> NDArray[np.bool_]:
    return np.array([label in wanted for label in labels], dtype=np.bool_)


def _look_up(table: NDArray[Any], codes: NDArray[np.int64], default: int | bool) -> NDArray[Any]:
    """Return ``table[codes]``, with ``default`` where the code is -1."""
    return np.append(table, np.asarray(default, dtype=table.dtype))[codes]  # index -1 is the appended entry


def _match_rows(rows: _Rows) -> NDArray[np.int64]:
    """Give each row the class code that its cluster is paired with, -1 for noise and clusters left over."""
    match = match_by_overlap(rows.true_codes, rows.found_codes, len(rows.true_labels), len(rows.found_labels))
    return _look_up(match, rows.found_codes, -1)


def _split(
    is_correct: NDArray[np.bool_], is_known: NDArray[np.bool_], sample_weight: ArrayLike | None = None
) -> SplitAccuracy:
    weights = np.ones(len(is_correct)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return SplitAccuracy(
        _mean(is_correct, weights),
        _mean(is_correct[is_known], weights[is_known]),
        _mean(is_correct[~is_known], weights[~is_known]),
    )


def _mean(values: NDArray[np.bool_], weights: NDArray[np.float64]) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() else float("nan")
