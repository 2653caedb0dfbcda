"""Folds for rows of which some have no label, and for classes that nobody is to know.

Knows labels: no rows, no estimator.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_random_state, indexable

from pnp_gcd._compat import get_routing_for_object, safe_indexing
from pnp_gcd.labels import EncodedLabels, encode_labels

__all__ = ["ClassHoldoutSplit", "KeepUnlabelled"]


class ClassHoldoutSplit(BaseCrossValidator):
    """Hide whole classes: the folds that show whether new classes would be found.

    In each fold some of the known classes are hidden. Their rows, and a part of the rows of each
    class that stays visible, are the test rows. Everything else, with all unlabelled rows, is for
    training. An estimator sees test rows without their labels if it is wrapped in
    :class:`Transductive`; a class it has no label for then looks to it as any new class does.

    Parameters
    ----------
    n_splits : int, default=5
        Folds. Every class is hidden about equally often.
    hidden : int or float, default=0.5
        Classes to hide in a fold: their number, or their part of the known classes. Of a part at least
        one class is hidden, and two stay where there are three.
    visible : float, default=0.5
        Part of the rows of each visible class that is held out too, so that a setting which takes
        known rows for new ones shows. One row at least stays for training.
    missing_label : object, default="auto"
        What marks an unlabelled row in y, as in :class:`~pnp_gcd.PNPDiscoverer`.
    random_state : int, RandomState or None, default=None
        Draws the classes and rows. An int gives the same folds at every call, which searches that
        split more than once (``HalvingGridSearchCV``) need.

    See Also
    --------
    Transductive : Lets an estimator see test rows without their labels.
    KeepUnlabelled : Folds that hide rows, not classes.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.model_selection import ClassHoldoutSplit
    >>> y = np.array(["cat", "cat", "dog", "dog", "emu", "emu", "-1", "-1"])
    >>> folds = ClassHoldoutSplit(3, hidden=1, random_state=0)
    >>> for train, test in folds.split(np.zeros((8, 2)), y):
    ...     print(y[train], np.setdiff1d(y[test], y[train]))
    ['cat' 'dog' '-1' '-1'] ['emu']
    ['cat' 'emu' '-1' '-1'] ['dog']
    ['dog' 'emu' '-1' '-1'] ['cat']
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        hidden: float = 0.5,
        visible: float = 0.5,
        missing_label: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.hidden = hidden
        self.visible = visible
        self.missing_label = missing_label
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are not used."""
        self._check_parameters()
        return int(self.n_splits)

    def _iter_test_indices(
        self, X: Any = None, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[NDArray[np.int64]]:
        self._check_parameters()
        if y is None:
            raise ValueError(
                "y=None has no classes to hide. Pass the labels, with unlabelled rows marked: pool() does so."
            )
        if groups is not None:
            warnings.warn(
                "groups is ignored by ClassHoldoutSplit: it hides classes.", UserWarning, stacklevel=3
            )
        codes, classes = encode_labels(y, self.missing_label)
        n_hidden = self._count_hidden(len(classes))
        rng = check_random_state(self.random_state)
        # Class after class in random order, and again in another: each is hidden about equally often.
        turns = -(-self.n_splits * n_hidden // len(classes)) + 1
        queue = np.concatenate([rng.permutation(len(classes)) for _ in range(turns)]).tolist()
        for _ in range(self.n_splits):
            hidden = self._keep_readable(_take_different(queue, n_hidden), classes, y)
            yield np.sort(
                np.concatenate([np.flatnonzero(np.isin(codes, hidden)), *self._hold_out(codes, hidden, rng)])
            )

    def _keep_readable(self, hidden: list[int], classes: NDArray[Any], y: Any) -> list[int]:
        """Show one class more where only class 1 would be left: -1 and 1 alone are read as two classes."""
        visible = np.delete(classes, hidden)
        is_alone = len(visible) == 1 and classes.dtype.kind in "iuf" and visible[0] == 1
        if not (is_alone and isinstance(self.missing_label, str) and self.missing_label == "auto"):
            return hidden
        if not any(isinstance(value, numbers.Real) and value == -1 for value in y):
            return hidden
        if len(hidden) == 1:
            raise ValueError(
                "With the other class hidden, -1 and 1 are left in y, which are read as two classes. Pass "
                "missing_label=-1 to ClassHoldoutSplit and Transductive, or use other labels."
            )
        return hidden[:-1]

    def _hold_out(
        self, codes: NDArray[np.int64], hidden: list[int], rng: np.random.RandomState
    ) -> Iterator[NDArray[np.int64]]:
        """Draw test rows of each visible class."""
        for code in np.setdiff1d(codes[codes >= 0], hidden):
            rows = rng.permutation(np.flatnonzero(codes == code))
            yield rows[: min(round(self.visible * len(rows)), len(rows) - 1)]

    def _check_parameters(self) -> None:
        if (
            not isinstance(self.n_splits, numbers.Integral)
            or isinstance(self.n_splits, bool)
            or self.n_splits < 1
        ):
            raise ValueError(f"n_splits={self.n_splits!r} must be a whole number of at least 1.")
        is_count = isinstance(self.hidden, numbers.Integral) and self.hidden >= 1
        is_part = (
            isinstance(self.hidden, numbers.Real)
            and not isinstance(self.hidden, numbers.Integral)
            and 0 < self.hidden < 1
        )
        if isinstance(self.hidden, bool) or not (is_count or is_part):
            raise ValueError(
                f"hidden={self.hidden!r} must be a number of classes, at least 1, or a part of them between "
                "0 and 1."
            )
        if not isinstance(self.visible, numbers.Real) or not 0 <= self.visible < 1:
            raise ValueError(f"visible={self.visible!r} must be a part of the rows, from 0 to below 1.")

    def _count_hidden(self, n_known: int) -> int:
        if n_known < 2:
            raise ValueError(
                f"y has {n_known} known class{'' if n_known == 1 else 'es'}, but hiding one needs 2 at "
                "least. Label rows of more classes, or use KeepUnlabelled, which hides rows only."
            )
        if isinstance(self.hidden, numbers.Integral):
            if self.hidden >= n_known:
                raise ValueError(
                    f"hidden={self.hidden} leaves none of the {n_known} known classes visible. "
                    f"Pass at most {n_known - 1}, or a part of them such as 0.5."
                )
            return int(self.hidden)
        return int(np.clip(round(self.hidden * n_known), 1, max(1, n_known - 2)))


def _take_different(queue: list[int], n_wanted: int) -> list[int]:
    """Remove and return the first ``n_wanted`` different entries; one seen twice waits for the next time."""
    taken: list[int] = []
    waiting: list[int] = []
    while len(taken) < n_wanted:
        entry = queue.pop(0)
        (waiting if entry in taken else taken).append(entry)
    queue[:0] = waiting
    return taken


class KeepUnlabelled(BaseCrossValidator):
    """Split labelled rows as another splitter does; unlabelled rows are in every training fold.

    A plain splitter takes unlabelled rows away from training, where they are needed, and puts them
    into test folds, where nothing can be said about them.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test), default=5
        What splits the labelled rows. A number stands for ``StratifiedKFold``. Indices of an
        iterable are those of the labelled rows alone, counted from 0.
    missing_label : object, default="auto"
        What marks an unlabelled row in y, as in :class:`~pnp_gcd.PNPDiscoverer`.

    See Also
    --------
    ClassHoldoutSplit : Hides whole classes; the one to choose settings of discovery by.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.model_selection import KeepUnlabelled
    >>> y = np.array([0, 0, 1, 1, -1, -1])
    >>> for train, test in KeepUnlabelled(2).split(np.zeros((6, 2)), y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 2 4 5] [1 3]
    """

    def __init__(self, cv: Any = 5, *, missing_label: Any = "auto") -> None:
        self.cv = cv
        self.missing_label = missing_label

    def split(
        self, X: Any, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the row numbers of each training and test fold.

        Parameters
        ----------
        X : array-like of shape (n_rows, …)
        y : array-like of shape (n_rows,)
            Labels, with unlabelled rows marked.
        groups : array-like of shape (n_rows,) or None
            For splitters that need them, such as ``GroupKFold``.
        """
        X, y, groups = indexable(X, y, groups)
        codes, classes = self._encode(y)
        labelled, unlabelled = np.flatnonzero(codes >= 0), np.flatnonzero(codes < 0)
        truth = classes[codes[labelled]]
        theirs = None if groups is None else np.asarray(groups)[labelled]
        for train, test in self._splitter(truth).split(safe_indexing(X, labelled), truth, theirs):
            yield np.sort(np.concatenate([labelled[train], unlabelled])), labelled[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; splitters such as ``LeaveOneOut`` need y to tell."""
        if y is None:
            return int(self._splitter(None).get_n_splits(X, y, groups))
        codes, classes = self._encode(y)
        labelled = np.flatnonzero(codes >= 0)
        truth = classes[codes[labelled]]
        theirs = None if groups is None else np.asarray(groups)[labelled]
        return int(self._splitter(truth).get_n_splits(labelled, truth, theirs))

    def get_metadata_routing(self) -> Any:
        """Ask for what the inner splitter asks for."""
        return get_routing_for_object(self.cv if hasattr(self.cv, "split") else None)

    def _encode(self, y: ArrayLike | None) -> EncodedLabels:
        if y is None:
            raise ValueError("y=None does not tell labelled rows from unlabelled ones. Pass the labels.")
        encoded = encode_labels(y, self.missing_label)
        if not len(encoded.classes):
            raise ValueError("y holds no label: there is nothing to split. Label some rows.")
        return encoded

    def _splitter(self, truth: NDArray[Any] | None) -> Any:
        if (
            self.cv is not None
            and not isinstance(self.cv, numbers.Integral)
            and not hasattr(self.cv, "split")
        ):
            self.cv = list(self.cv)  # a generator could be read once only
        return check_cv(self.cv, truth, classifier=True)
