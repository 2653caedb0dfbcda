"""Hide classes and labels of labelled data, as category discovery meets them.

Knows labels and positions: no files, no torch, no estimator.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DiscoveryData", "DiscoverySplit", "make_discovery_split"]


@dataclass(frozen=True, eq=False)
class DiscoveryData:
    """Rows of known classes with labels, a pool of known and new ones without, and rows kept unseen.

    Attributes
    ----------
    X_labelled : ndarray of shape (n_labelled, ...)
        Rows whose label is given: features, images, paths of images or texts.
    y_labelled : ndarray of shape (n_labelled,)
        Their labels, all among ``known_classes``.
    X_unlabelled : ndarray of shape (n_unlabelled, ...)
        Rows of known and of new classes.
    y_unlabelled : ndarray of shape (n_unlabelled,)
        Their true classes: to score what was found, never to fit.
    X_unseen : ndarray of shape (n_unseen, ...)
        Rows that no fit should see, for ``predict``.
    y_unseen : ndarray of shape (n_unseen,)
        Their true classes.
    known_classes : ndarray of shape (n_known,)
        The classes that have labels, sorted.
    """

    X_labelled: NDArray[Any]
    y_labelled: NDArray[Any]
    X_unlabelled: NDArray[Any]
    y_unlabelled: NDArray[Any]
    X_unseen: NDArray[Any]
    y_unseen: NDArray[Any]
    known_classes: NDArray[Any]

    def count_classes(self) -> int:
        """Count the classes that a fit can meet: labelled ones and those of the pool.

        Returns
        -------
        int
        """
        return len(np.union1d(self.y_labelled, self.y_unlabelled))


@dataclass(frozen=True, eq=False)
class DiscoverySplit:
    """Positions of the labelled, unlabelled and unseen rows, and which classes are known.

    Attributes
    ----------
    labelled, unlabelled, unseen : ndarray of int
        Positions into the labels that were split, each ascending. Every row is in exactly one of them.
    known_classes : ndarray of shape (n_known,)
        The classes that have labels, sorted.
    novel_classes : ndarray of shape (n_novel,)
        The others, sorted.
    """

    labelled: NDArray[np.intp]
    unlabelled: NDArray[np.intp]
    unseen: NDArray[np.intp]
    known_classes: NDArray[Any]
    novel_classes: NDArray[Any]

    def take(self, X: ArrayLike, y: ArrayLike) -> DiscoveryData:
        """Return the rows and labels at these positions.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
        y : array-like of shape (n_rows,)
            The labels that were split.

        Returns
        -------
        DiscoveryData
        """
        X, y = np.asarray(X), np.asarray(y)
        n_rows = len(self.labelled) + len(self.unlabelled) + len(self.unseen)
        if len(X) != n_rows or len(y) != n_rows:
            raise ValueError(
                f"X has {len(X)} rows and y {len(y)}, but {n_rows} were split. Pass the rows whose labels "
                "make_discovery_split was given."
            )
        return DiscoveryData(
            X_labelled=X[self.labelled],
            y_labelled=y[self.labelled],
            X_unlabelled=X[self.unlabelled],
            y_unlabelled=y[self.unlabelled],
            X_unseen=X[self.unseen],
            y_unseen=y[self.unseen],
            known_classes=self.known_classes,
        )


def make_discovery_split(
    y: ArrayLike,
    *,
    known: float | int | Sequence[Any] | NDArray[Any] = 0.5,
    labelled: float | int = 0.5,
    unseen: float = 0.0,
    seed: int = 0,
) -> DiscoverySplit:
    """Draw known classes, unseen rows of every class and labelled rows of the known ones.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The true class of every row.
    known : float, int or sequence of labels, default=0.5
        Which classes have labels: a part of them (a float up to 1.0), a number of them (an int), both
        drawn by ``seed``; or the classes themselves.
    labelled : float or int, default=0.5
        How many rows of each known class keep their label, after the unseen rows were taken out: a part
        of them (a float above 0 and below 1; at least one row), or a number (an int; a class with
        fewer rows keeps all its labels).
    unseen : float, default=0.0
        Part of all rows kept out of both the labelled rows and the pool. From 0 to below 1.
    seed : int, default=0
        Draws the classes and the rows. The stream of numbers is NumPy's ``RandomState``, which is frozen:
        a seed gives the same split on every machine and under every version.

    Returns
    -------
    DiscoverySplit
        Every row is in exactly one of the three parts.

    Examples
    --------
    >>> import numpy as np
    >>> from pnp_gcd.datasets import make_discovery_split
    >>> y = np.repeat(["ant", "bee", "cow"], 4)
    >>> split = make_discovery_split(y, known=["bee", "ant"])
    >>> len(split.labelled), len(split.unlabelled), len(split.unseen)
    (4, 8, 0)
    >>> split.novel_classes.tolist()
    ['cow']
    >>> data = split.take(np.eye(12), y)
    >>> data.X_unlabelled.shape, data.y_labelled.tolist()
    ((8, 12), ['ant', 'ant', 'bee', 'bee'])
    """
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise ValueError(f"seed={seed!r} must be an integer from 0 to 2**32 - 1. Pass one, such as 0.")
    return draw_split(np.asarray(y), known, labelled, unseen, np.random.RandomState(seed))


def draw_split(
    y: NDArray[Any],
    known: float | int | Sequence[Any] | NDArray[Any],
    labelled: float | int,
    unseen: float,
    rng: np.random.RandomState,
) -> DiscoverySplit:
    """Do what `make_discovery_split` says, with a generator in hand."""
    classes, codes = _encode_classes(y)
    _check_parts(labelled, unseen)
    known_codes = _choose_known(classes, known, rng)
    shuffled = rng.permutation(len(y))
    n_unseen = round(unseen * len(y))
    unseen_rows, kept = shuffled[:n_unseen], shuffled[n_unseen:]
    has_label = np.zeros(len(y), dtype=np.bool_)
    for code in known_codes:
        rows = kept[codes[kept] == code]
        if len(rows) == 0:
            raise ValueError(
                f"unseen={unseen!r} leaves a known class without rows: {classes[code]!r}. Lower unseen, or "
                "pass another seed."
            )
        n_labelled = labelled if isinstance(labelled, numbers.Integral) else round(labelled * len(rows))
        has_label[rows[: max(1, n_labelled)]] = True
    return DiscoverySplit(
        labelled=np.flatnonzero(has_label),
        unlabelled=np.sort(kept[~has_label[kept]]),
        unseen=np.sort(unseen_rows),
        known_classes=classes[known_codes],
        novel_classes=np.delete(classes, known_codes),
    )


def _encode_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    if y.ndim != 1 or len(y) == 0:
        raise ValueError(f"y has the shape {y.shape}. Pass one class for each row, in one dimension.")
    missing = [label for label in y.tolist() if label is None or label != label or label in (-1, "-1")]
    if missing:
        raise ValueError(
            f"y has {len(missing)} missing labels, such as {missing[0]!r}. A split needs the true class of "
            "every row: leave these rows out, or name their class."
        )
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def _choose_known(
    classes: NDArray[Any], known: float | int | Sequence[Any] | NDArray[Any], rng: np.random.RandomState
) -> NDArray[np.intp]:
    n_classes = len(classes)
    if isinstance(known, (numbers.Real, np.number)) and not isinstance(known, bool):
        if isinstance(known, numbers.Integral):
            n_known = int(known)
            is_right = 1 <= n_known <= n_classes
        else:
            part = float(known)  # type: ignore[arg-type]
            is_right = 0 < part <= 1
            n_known = max(1, round(part * n_classes)) if is_right else 0
        if not is_right:
            raise ValueError(
                f"known={known!r} must be an integer from 1 to {n_classes}, the number of classes, or a part "
                f"of them above 0.0 and up to 1.0. Pass fewer than {n_classes} to leave classes to discover."
            )
        return np.sort(rng.choice(n_classes, size=n_known, replace=False))
    if isinstance(known, (str, bytes, bool)) or known is None:
        raise ValueError(
            f"known={known!r} must be a part of the classes, a number of them or a list of them. Pass 0.5, "
            f"or classes such as {classes[:2].tolist()!r}."
        )
    return _pick_known(classes, known)  # type: ignore[arg-type]


def _pick_known(classes: NDArray[Any], known: Sequence[Any] | NDArray[Any]) -> NDArray[np.intp]:
    wanted = known.tolist() if isinstance(known, np.ndarray) else list(known)
    unknown = sorted(set(wanted) - set(classes.tolist()), key=wanted.index)
    if unknown:
        raise ValueError(
            f"known has {unknown[0]!r}, which is no class of y. Its classes are {classes[:5].tolist()!r}"
            f"{', …' if len(classes) > 5 else ''}: pass some of these."
        )
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError(
            f"known has {len(wanted)} classes, {len(set(wanted))} of them different. Pass at least one, and "
            "each once."
        )
    return np.flatnonzero([label in wanted for label in classes.tolist()])


def _check_parts(labelled: float | int, unseen: float) -> None:
    if isinstance(labelled, numbers.Integral) and not isinstance(labelled, bool):
        is_right = labelled >= 1
    else:
        is_right = isinstance(labelled, numbers.Real) and 0 < labelled < 1
    if not is_right:
        raise ValueError(
            f"labelled={labelled!r} must be above 0 and below 1, or an integer of at least 1. Pass the part "
            "of the rows of known classes that keep their label, such as 0.5, or their number in each class."
        )
    if not isinstance(unseen, numbers.Real) or not math.isfinite(unseen) or not 0 <= unseen < 1:
        raise ValueError(
            f"unseen={unseen!r} must be from 0 to below 1. Pass the part of all rows to keep unseen, "
            "such as 0.1."
        )
