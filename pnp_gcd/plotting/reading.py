"""Read what is drawn: the fitted model inside an estimator, and labels as known and novel classes.

Knows scikit-learn and labels: no drawing, no torch.
"""

from __future__ import annotations

import reprlib
from collections.abc import Hashable
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from pnp_gcd.labels import is_marker

__all__ = ["ClassRows", "Fitted", "hide_missing", "open_estimator", "read_classes"]

_MARKERS = (-1, "-1")


class Fitted(NamedTuple):
    """A fitted model and the Pipelines' steps that come before it."""

    model: Any
    steps: tuple[Any, ...]

    def prepare(self, X: Any) -> Any:
        """Return X as the model sees it."""
        for step in self.steps:
            X = step.transform(X)
        return X


class ClassRows(NamedTuple):
    """Rows by class.

    Attributes
    ----------
    classes : list
        Known classes first, each kind sorted.
    is_known : ndarray of shape (n_classes,), bool
    codes : ndarray of shape (n_rows,), int64
        Place of each row's class in ``classes``, −1 for a row without one.
    sizes : ndarray of shape (n_classes,), int64
    """

    classes: list[Any]
    is_known: NDArray[np.bool_]
    codes: NDArray[np.int64]
    sizes: NDArray[np.int64]


def open_estimator(estimator: Any, needs: str) -> Fitted:
    """Return the model inside Pipelines, searches and wrappers; it has to be fitted and to have ``needs``."""
    check_is_fitted(estimator)
    model, steps = estimator, []
    while True:
        if isinstance(model, Pipeline):
            if len(model.steps) > 1:
                steps.append(model[:-1])
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "estimator_"):
            model = model.estimator_
        else:
            break
    check_is_fitted(model)
    if not hasattr(model, needs):
        raise TypeError(
            f"{type(model).__name__} has no {needs}, which this display draws. "
            "Pass a fitted PNPDiscoverer, or a Pipeline or search that ends in one."
        )
    return Fitted(model, tuple(steps))


def hide_missing(labels: ArrayLike, model: Any, *, name: str) -> ArrayLike:
    """Return labels with None in place of a missing label that the model was given: it is no class."""
    marker = getattr(model, "missing_label", "auto")
    if isinstance(marker, str) and marker == "auto":
        return labels
    entries = _list_labels(labels, name)
    return np.array([None if is_marker(label, marker) else label for label in entries], dtype=object)


def read_classes(labels: ArrayLike, known_classes: ArrayLike, *, name: str = "y_pred") -> ClassRows:
    """Sort labels into known and novel classes.

    Parameters
    ----------
    labels : array-like of shape (n_rows,)
        −1, "-1", None and NaN mark a row without class, unless they are known classes.
    known_classes : array-like of shape (n_known,)
        All of them are among the classes that come back, with or without rows.
    name : str, default="y_pred"
        What messages call ``labels``.

    Returns
    -------
    ClassRows
    """
    entries, known = (
        _list_labels(labels, name),
        list(dict.fromkeys(_list_labels(known_classes, "known_classes"))),
    )
    markers = {marker for marker in _MARKERS if marker not in known}
    found = [label for label in dict.fromkeys(entries) if label not in markers and not _is_missing(label)]
    _check_kinds(found, known, name)
    taken = set(known)
    classes = [*_sort(known), *_sort([label for label in found if label not in taken])]
    code_of = {label: code for code, label in enumerate(classes)}
    codes = np.fromiter((code_of.get(label, -1) for label in entries), dtype=np.int64, count=len(entries))
    sizes = np.bincount(codes[codes >= 0], minlength=len(classes)).astype(np.int64, copy=False)
    return ClassRows(classes, np.arange(len(classes)) < len(known), codes, sizes)


def _list_labels(values: ArrayLike, name: str) -> list[Any]:
    given = list(values) if isinstance(values, set | frozenset) else values
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(
            f"{name}={reprlib.repr(given)} has shape {array.shape} but must be 1-d. Pass one label per row."
        )
    if array.dtype.kind in "US" and not isinstance(given, np.ndarray):
        array = np.asarray(given, dtype=object)  # NumPy has turned the list ["cat", 1] into ["cat", "1"]
    return list(array.tolist())


def _check_kinds(found: list[Hashable], known: list[Hashable], name: str) -> None:
    """Refuse 0 beside "0", which would quietly make every class novel."""
    kinds, known_kinds = ({isinstance(label, Number) for label in labels} for labels in (found, known))
    if found and known and kinds.isdisjoint(known_kinds):
        raise ValueError(
            f"known_classes={reprlib.repr(known)} are of another kind than the labels of {name}, "
            f"{reprlib.repr(found)}. Pass known_classes as {name} spells them."
        )


def _sort(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # NaN differs from itself
    except TypeError:  # pandas.NA has no truth value
        return True
