"""Give classes their prototypes, and rows their scores.

Knows features, codes and classes: no class names, no torch, no truth about unlabelled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq  # type: ignore[import-untyped, unused-ignore]

from pnp_gcd.clustering import mean_directions
from pnp_gcd.geometry import unit_rows
from pnp_gcd.grouping import Grouping
from pnp_gcd.refinement import Discriminant, fit_discriminant

__all__ = [
    "Labelling",
    "classify_rows",
    "fit_sharpness",
    "join_scores",
    "label_groups",
    "make_classifier",
    "measure_closeness",
    "score_classes",
]

# Rows scored at once; bounds memory.
_BLOCK_ROWS = 1024
# Prototypes of pieces of a class speak for their surroundings only: their softmax is this much sharper.
_LOCAL = 0.5
# Log-scores closer than this are compared in double precision; exponents that single precision holds.
_CLOSE = 1e-3
_MAX_EXPONENT = 80.0
# Probabilities are made this much sharper, or less sharp, at most.
_SHARPNESS = (0.02, 2.0)


class Labelling(NamedTuple):
    """Prototypes, the class each stands for, and class means.

    Attributes
    ----------
    prototypes : ndarray of shape (P, d), float32
        Unit-length rows; a class may have several.
    classes : ndarray of shape (P,), int64
        0 … n_known − 1 are the known classes, n_known … n_classes − 1 the new ones.
    discriminant : Discriminant
    n_known, n_classes : int
    """

    prototypes: NDArray[np.float32]
    classes: NDArray[np.int64]
    discriminant: Discriminant
    n_known: int
    n_classes: int


def score_classes(
    features: NDArray[np.float32], labelling: Labelling, temperature: float
) -> NDArray[np.float64]:
    """Return log-scores (n, n_classes).

    The logarithm of the mean of exp(cosine / temperature) over each class's prototypes, so that a class
    in many pieces has no advantage, but sharper than the paper's p^s; plus cosine / temperature with the
    class mean.
    """
    # Double precision, so that a row's scores do not depend on its place among the rows.
    cosines = features.astype(np.float64) @ labelling.prototypes.T.astype(np.float64)
    logits = cosines / (_LOCAL * temperature)
    top = logits.max(axis=1, keepdims=True)
    order = np.argsort(labelling.classes, kind="stable")  # every class has a prototype
    starts = np.searchsorted(labelling.classes[order], np.arange(labelling.n_classes))
    sums = np.add.reduceat(np.exp(logits - top)[:, order], starts, axis=1)
    # 1e-300 keeps a class that is infinitely far away finite.
    n_prototypes = np.bincount(labelling.classes, minlength=labelling.n_classes)
    out: NDArray[np.float64] = np.log(sums / n_prototypes + 1e-300) + top
    out += labelling.discriminant.cosines(features) / temperature
    return out


def join_scores(
    scores: NDArray[np.float64], homes: NDArray[np.int64], sharpness: float
) -> NDArray[np.float64]:
    """Return log-scores of classes that were merged from others, so that their probabilities add up.

    Parameters
    ----------
    scores : ndarray of shape (n, P)
        Log-scores of the parts.
    homes : ndarray of shape (P,)
        The class of each part, every one from 0 on; a class of one part keeps its scores to the last bit.
    sharpness : float
        Factor on log-scores of which probabilities are the softmax.
    """
    order = np.argsort(homes, kind="stable")
    n_parts = np.bincount(homes)
    starts = np.cumsum(n_parts) - n_parts
    joined: NDArray[np.float64] = scores[:, order[starts]]
    for place in np.flatnonzero(n_parts > 1):
        parts = order[starts[place] : starts[place] + n_parts[place]]
        with np.errstate(invalid="ignore"):  # images that were skipped have no scores
            joined[:, place] = np.logaddexp.reduce(scores[:, parts] * sharpness, axis=1) / sharpness
    return joined


def classify_rows(
    features: NDArray[np.float32], labelling: Labelling, temperature: float
) -> NDArray[np.int64]:
    """Return the most probable class of each row.

    In single precision; where two classes come close, in double precision.
    """
    classify = make_classifier(labelling, temperature)
    found = np.empty(len(features), dtype=np.int64)
    for start in range(0, len(features), _BLOCK_ROWS):
        block = features[start : start + _BLOCK_ROWS]
        found[start : start + len(block)] = classify(block)
    return found


def make_classifier(
    labelling: Labelling, temperature: float
) -> Callable[[NDArray[np.float32]], NDArray[np.int64]]:
    """Return what :func:`classify_rows` does with a block of rows; what is the same for all is done once."""
    sharpness = 1.0 / (_LOCAL * temperature)
    if 2.0 * sharpness > _MAX_EXPONENT or labelling.n_classes < 2:
        return lambda features: score_classes(features, labelling, temperature).argmax(axis=1)
    n_prototypes = np.bincount(labelling.classes, minlength=labelling.n_classes)
    parts = (1.0 / n_prototypes[labelling.classes]).astype(np.float32)
    places = (labelling.classes, np.arange(len(parts)))
    membership = sparse.csr_array((parts, places), shape=(labelling.n_classes, len(parts)))
    prototypes = labelling.prototypes * np.float32(sharpness)
    axes, directions = labelling.discriminant
    directions = directions / np.float32(temperature)

    def classify(features: NDArray[np.float32]) -> NDArray[np.int64]:
        # A row for each prototype and a column for each row, so that means over a class's prototypes are
        # quick. Exponents are too small to overflow.
        likeness = prototypes @ features.T
        scores = membership @ np.exp(likeness, out=likeness)
        np.log(scores, out=scores)
        scores += directions @ unit_rows(features @ axes).T
        best = scores.argmax(axis=0)
        columns = np.arange(len(features))
        top = scores[best, columns]
        scores[best, columns] = -np.inf
        close = np.flatnonzero(~(top - scores.max(axis=0) > _CLOSE))  # NaN is close to everything
        if len(close):
            best[close] = score_classes(features[close], labelling, temperature).argmax(axis=1)
        out: NDArray[np.int64] = best
        return out

    return classify


def measure_closeness(features: NDArray[np.float32], labelling: Labelling) -> NDArray[np.float64]:
    """Return the cosine (n,) of each row with the nearest class mean, where classes are about round."""
    out: NDArray[np.float64] = labelling.discriminant.cosines(features).max(axis=1)
    return out


def fit_sharpness(scores: NDArray[np.float64], accuracy: float) -> float:
    """Return the factor on log-scores that makes the mean top probability equal ``accuracy``.

    Added-up evidence is not independent, so that its softmax is too sure; how often a class is
    right was seen on rows held back. Stays within sensible limits where that cannot be reached.
    """
    shifted = scores - scores.max(axis=1, keepdims=True)

    def gap(sharpness: float) -> float:
        return float((1.0 / np.exp(sharpness * shifted).sum(axis=1)).mean()) - accuracy

    low, high = _SHARPNESS
    if gap(high) <= 0:
        return high
    if gap(low) >= 0:
        return low
    return float(brentq(gap, low, high, xtol=1e-4))


def label_groups(
    features: NDArray[np.float32],
    codes: NDArray[np.int64],
    grouping: Grouping,
    homes: NDArray[np.int64],
    *,
    n_known: int,
    n_clusters: int | None = None,
    temperature: float = 0.1,
) -> Labelling:
    """Give each class its prototypes: its mean direction and those of its communities.

    Labelled rows speak for the mean of a known class. New classes that win no row are
    dropped, unless ``n_clusters`` asks for an exact number; the rest are numbered by size.
    """
    rows, n_classes = _drop_empty(np.where(codes >= 0, codes, grouping.rows), n_known)
    labelled = codes >= 0
    speaks = labelled | (rows >= n_known)
    means = mean_directions(features[speaks], rows[speaks], n_classes)
    # A community that is split between classes speaks for each with its rows of that class.
    in_class = (rows >= 0) & (homes >= 0)
    pairs, piece = np.unique(np.column_stack([homes[in_class], rows[in_class]]), axis=0, return_inverse=True)
    pieces = mean_directions(features[in_class], piece.ravel(), len(pairs))
    several = np.bincount(pairs[:, 1], minlength=n_classes)[pairs[:, 1]] > 1
    prototypes = np.concatenate([means, pieces[several]])
    classes = np.concatenate([np.arange(n_classes), pairs[several, 1]])
    if n_clusters is not None and n_classes < n_clusters:
        farthest = _farthest_rows(features, prototypes, ~labelled, n_clusters - n_classes)
        added = np.arange(n_classes, n_clusters)
        prototypes = np.concatenate([prototypes, features[farthest]])
        classes, n_classes = np.concatenate([classes, added]), n_clusters
        rows[farthest] = added
    discriminant = fit_discriminant(features, rows, n_classes)
    labelling = Labelling(prototypes, classes, discriminant, n_known, n_classes)
    return _order_by_size(features[~labelled], labelling, temperature, keep_all=n_clusters is not None)


def _drop_empty(rows: NDArray[np.int64], n_known: int) -> tuple[NDArray[np.int64], int]:
    """Renumber new classes that have rows, and count all classes."""
    new = np.unique(rows[rows >= n_known])
    renumbered = np.where(rows >= n_known, n_known + np.searchsorted(new, rows), rows)
    return renumbered, n_known + len(new)


def _farthest_rows(
    features: NDArray[np.float32],
    prototypes: NDArray[np.float32],
    allowed: NDArray[np.bool_],
    n_rows: int,
) -> NDArray[np.int64]:
    """Return rows to start new classes from: one after another the least like any prototype so far."""
    best = (features @ prototypes.T).max(axis=1) if len(prototypes) else np.full(len(features), -1.0)
    best = np.where(allowed, best, np.inf)
    found = []
    for _ in range(n_rows):
        found.append(int(best.argmin()))
        best = np.maximum(best, features @ features[found[-1]])
        best[found[-1]] = np.inf
    return np.array(found, dtype=np.int64)


def _order_by_size(
    features: NDArray[np.float32], labelling: Labelling, temperature: float, *, keep_all: bool
) -> Labelling:
    """Renumber new classes by the unlabelled rows they win, largest first; drop those that win none."""
    n_known, n_classes = labelling.n_known, labelling.n_classes
    if n_classes == n_known:
        return labelling
    won = np.bincount(classify_rows(features, labelling, temperature), minlength=n_classes)[n_known:]
    order = np.lexsort((np.arange(len(won)), -won))
    if not keep_all:
        order = order[won[order] > 0]
    kept_classes = np.concatenate([np.arange(n_known), n_known + order])
    rank = np.full(n_classes, -1, dtype=np.int64)
    rank[kept_classes] = np.arange(len(kept_classes))
    classes = rank[labelling.classes]
    kept = classes >= 0
    axes, directions = labelling.discriminant
    return Labelling(
        labelling.prototypes[kept],
        classes[kept],
        Discriminant(axes, directions[kept_classes]),
        n_known,
        len(kept_classes),
    )
