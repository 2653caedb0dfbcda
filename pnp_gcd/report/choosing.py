"""Which rows a person should see, and which colours tell classes apart.

Knows codes, probabilities and features: no model, no page.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["N_COLOURS", "choose_colours", "choose_doubtful", "choose_edges", "choose_middle"]

N_COLOURS = 8
_N_DOUBTFUL = 60
# Rows surer than this are not worth a label.
_SURE_FROM = 0.95
# Each row chosen from a class makes its next one count less, and so does a chosen row that is alike.
_NEXT_OF_CLASS = 0.8
_MOST_CANDIDATES = 5000


def choose_middle(
    codes: NDArray[np.int64], features: NDArray[np.float32], n_classes: int, n_shown: int
) -> list[tuple[int, ...]]:
    """Return the rows of each class that are closest in direction to the mean of its rows."""
    closeness = np.full(len(codes), -np.inf)
    members = _split_by_class(codes, n_classes)
    for rows in members:
        if len(rows):
            mean = features[rows].mean(axis=0)
            closeness[rows] = features[rows] @ mean
    return [_best(rows, closeness, n_shown) for rows in members]


def choose_edges(
    codes: NDArray[np.int64], margins: NDArray[np.float64], n_classes: int, n_shown: int
) -> list[tuple[int, ...]]:
    """Return the rows of each class whose likeliest class is least ahead of the second."""
    return [_best(rows, -margins, n_shown) for rows in _split_by_class(codes, n_classes)]


def _split_by_class(codes: NDArray[np.int64], n_classes: int) -> list[NDArray[np.int64]]:
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(n_classes + 1))
    return [order[start:end] for start, end in pairwise(bounds)]


def _best(rows: NDArray[np.int64], score: NDArray[np.float64], n_best: int) -> tuple[int, ...]:
    return tuple(int(row) for row in rows[np.argsort(-score[rows], kind="stable")[:n_best]])


def choose_doubtful(
    codes: NDArray[np.int64],
    probability: NDArray[np.float64],
    second_probability: NDArray[np.float64],
    features: NDArray[np.float32],
) -> tuple[int, ...]:
    """Return rows that are worth a label next, no two of which would tell the same.

    The doubt of a row is how close its second class comes to its first. Rows are taken one by one, the
    most doubtful first; each makes others of its class, and others that look alike, count less.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        -1 for rows without a class, which are never chosen.
    probability, second_probability : ndarray of shape (n_rows,)
    features : ndarray of shape (n_rows, n_features)
        Of unit length.

    Returns
    -------
    tuple of int
        At most 60 rows; none that is surer than 95 %.
    """
    with np.errstate(invalid="ignore"):
        candidates = np.flatnonzero((codes >= 0) & (probability < _SURE_FROM))
    doubt = 1.0 - (probability - second_probability)[candidates]
    order = np.argsort(-doubt, kind="stable")[:_MOST_CANDIDATES]
    candidates, doubt = candidates[order], doubt[order]
    vectors = features[candidates]
    n_taken = np.zeros(int(codes.max(initial=0)) + 1)
    alike = np.zeros(len(candidates))
    chosen: list[int] = []
    while len(chosen) < min(_N_DOUBTFUL, len(candidates)):
        worth = doubt * _NEXT_OF_CLASS ** n_taken[codes[candidates]] * (1.0 - alike)
        worth[chosen] = -1.0
        best = int(worth.argmax())
        chosen.append(best)
        n_taken[codes[candidates[best]]] += 1
        # Only what is very much alike counts: a cosine of 0.9 takes a third away.
        alike = np.maximum(alike, np.clip(vectors @ vectors[best], 0.0, 0.999) ** 10)
    return tuple(int(candidates[place]) for place in chosen)


def choose_colours(
    places: NDArray[np.float32], codes: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """Return one of eight colours for each class, so that classes of one colour lie far apart on the map.

    Larger classes choose first: the colour that no class has, or whose nearest holder is farthest away.

    Parameters
    ----------
    places : ndarray of shape (n_rows, 2)
    codes : ndarray of shape (n_rows,)
    n_classes : int

    Returns
    -------
    ndarray of shape (n_classes,), int64
    """
    members = _split_by_class(codes, n_classes)
    centres = np.array([np.median(places[rows], axis=0) if len(rows) else (9.0, 9.0) for rows in members])
    colours = np.full(n_classes, -1, dtype=np.int64)
    for code in sorted(range(n_classes), key=lambda code: -len(members[code])):
        apart = np.linalg.norm(centres - centres[code], axis=1)
        nearest = [apart[colours == colour].min(initial=np.inf) for colour in range(N_COLOURS)]
        colours[code] = int(np.argmax(nearest))
    return colours
