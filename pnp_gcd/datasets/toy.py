"""Small data that ships with scikit-learn, split as category discovery meets it.

Knows arrays and labels: no torch, no estimator.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

__all__ = ["DiscoverySplit", "load_digits_split"]


@dataclass(frozen=True, eq=False)
class DiscoverySplit:
    """Rows of known classes with labels, a pool of known and new ones without, and rows kept unseen.

    Attributes
    ----------
    X_labelled : ndarray of shape (n_labelled, n_features)
        Rows whose label is given.
    y_labelled : ndarray of shape (n_labelled,)
        Their labels, all among ``known_classes``.
    X_unlabelled : ndarray of shape (n_unlabelled, n_features)
        Rows of known and of new classes.
    y_unlabelled : ndarray of shape (n_unlabelled,)
        Their true classes: to score what was found, never to fit.
    X_unseen : ndarray of shape (n_unseen, n_features)
        Rows that no fit should see, for ``predict``.
    y_unseen : ndarray of shape (n_unseen,)
        Their true classes.
    known_classes : ndarray of shape (n_known,)
        The classes that have labels, sorted.
    """

    X_labelled: NDArray[np.float64]
    y_labelled: NDArray[Any]
    X_unlabelled: NDArray[np.float64]
    y_unlabelled: NDArray[Any]
    X_unseen: NDArray[np.float64]
    y_unseen: NDArray[Any]
    known_classes: NDArray[Any]


class SplitRows(NamedTuple):
    """Positions of the labelled, unlabelled and unseen rows, each ascending, and the known classes."""

    labelled: NDArray[np.intp]
    unlabelled: NDArray[np.intp]
    unseen: NDArray[np.intp]
    known_classes: NDArray[Any]


def load_digits_split(
    *,
    n_known: int = 5,
    labelled: float = 0.5,
    unseen: float = 0.1,
    random_state: int | np.random.RandomState | None = 0,
) -> DiscoverySplit:
    """Load scikit-learn's handwritten digits with some of the ten classes hidden.

    Parameters
    ----------
    n_known : int, default=5
        Number of digits that have labels, from 1 to 10. Which ones is drawn by ``random_state``.
    labelled : float, default=0.5
        Part of the rows of each known class that keep their label, after the unseen rows were
        taken out; at least one row. Above 0 and below 1.
    unseen : float, default=0.1
        Part of all rows kept out of both the labelled rows and the pool. From 0 to below 1.
    random_state : int, RandomState or None, default=0
        Draws the known classes and the rows. The global random state is not touched.

    Returns
    -------
    DiscoverySplit
        Pixels from 0 to 16 in 64 columns, as scikit-learn has them; labels from 0 to 9.

    Examples
    --------
    >>> from pnp_gcd.datasets import load_digits_split
    >>> split = load_digits_split(n_known=5, random_state=0)
    >>> split.known_classes.size, split.X_labelled.shape[1]
    (5, 64)
    >>> len(split.X_labelled) + len(split.X_unlabelled) + len(split.X_unseen)
    1797
    >>> set(split.y_labelled.tolist()) == set(split.known_classes.tolist())
    True
    >>> len(set(split.y_unlabelled.tolist()))
    10
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    rows = make_discovery_split(
        y, n_known=n_known, labelled=labelled, unseen=unseen, random_state=random_state
    )
    return DiscoverySplit(
        X_labelled=X[rows.labelled],
        y_labelled=y[rows.labelled],
        X_unlabelled=X[rows.unlabelled],
        y_unlabelled=y[rows.unlabelled],
        X_unseen=X[rows.unseen],
        y_unseen=y[rows.unseen],
        known_classes=rows.known_classes,
    )


def make_discovery_split(
    y: NDArray[Any],
    *,
    n_known: int,
    labelled: float,
    unseen: float,
    random_state: int | np.random.RandomState | None,
) -> SplitRows:
    """Draw known classes, unseen rows of every class and labelled rows of the known ones.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        True classes.
    n_known, labelled, unseen, random_state
        As for `load_digits_split`.

    Returns
    -------
    SplitRows
        Every row is in exactly one of the three parts.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["ant", "bee", "cow"], 4)
    >>> rows = make_discovery_split(y, n_known=2, labelled=0.5, unseen=0.0, random_state=0)
    >>> len(rows.labelled), len(rows.unlabelled), len(rows.unseen)
    (4, 8, 0)
    """
    classes = np.unique(y)
    _check_split(n_known, labelled, unseen, len(classes))
    if random_state is None:  # fresh entropy: check_random_state would take the global state
        random_state = int(np.random.SeedSequence().generate_state(1)[0])
    rng = check_random_state(random_state)
    known = np.sort(rng.choice(classes, size=n_known, replace=False))
    shuffled = rng.permutation(len(y))
    n_unseen = round(unseen * len(y))
    unseen_rows, kept = shuffled[:n_unseen], shuffled[n_unseen:]
    labelled_rows = []
    for label in known:
        rows = kept[y[kept] == label]
        labelled_rows.append(rows[: max(1, round(labelled * len(rows)))])
    if any(len(rows) == 0 for rows in labelled_rows):
        raise ValueError(
            f"unseen={unseen!r} leaves a known class without rows. Lower unseen, or pass another "
            "random_state."
        )
    has_label = np.zeros(len(y), dtype=np.bool_)
    has_label[np.concatenate(labelled_rows)] = True
    return SplitRows(
        labelled=np.flatnonzero(has_label),
        unlabelled=np.sort(kept[~has_label[kept]]),
        unseen=np.sort(unseen_rows),
        known_classes=known,
    )


def _check_split(n_known: int, labelled: float, unseen: float, n_classes: int) -> None:
    if not isinstance(n_known, numbers.Integral) or not 1 <= n_known <= n_classes:
        raise ValueError(
            f"n_known={n_known!r} must be an integer from 1 to {n_classes}, the number of classes. "
            f"Pass fewer than {n_classes} to leave classes to discover."
        )
    if not 0 < labelled < 1:
        raise ValueError(
            f"labelled={labelled!r} must be above 0 and below 1. Pass the part of the rows of known "
            "classes that keep their label, such as 0.5."
        )
    if not 0 <= unseen < 1:
        raise ValueError(
            f"unseen={unseen!r} must be from 0 to below 1. Pass the part of all rows to keep unseen, "
            "such as 0.1."
        )
