"""What a fitted ``PNPDiscoverer`` says about rows it is shown.

Reads what ``fit`` has stored and changes nothing. Knows no torch: it is imported when rows are encoded.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pnp_gcd.inputs import refuse_dates
from pnp_gcd.keeping import KeptModel
from pnp_gcd.labels import choose_marker, mark_rejected
from pnp_gcd.workflows import warn_about_score

if TYPE_CHECKING:
    from torch import nn

    from pnp_gcd.geometry import Geometry
    from pnp_gcd.image_mode import ImageMode
    from pnp_gcd.labelling import Labelling

__all__ = ["FittedDiscoverer", "Inspection", "count_axes"]

# Kept as they come: large offsets (timestamps, ids) survive only in double precision.
_FLOATS = (np.float64, np.float32)
# Numbers that are read at once of an array on disk: 256 MiB in double precision.
_NUMBERS_AT_ONCE = 1 << 25


class Inspection(NamedTuple):
    """All that a fitted model says about rows.

    Attributes
    ----------
    features : ndarray of shape (n_rows, n_features_out), float32
        As of ``transform``; NaN for images that were skipped, here and in what follows.
    probabilities : ndarray of shape (n_rows, n_clusters_)
        As of ``predict_proba``.
    typicality : ndarray of shape (n_rows,)
    """

    features: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    typicality: NDArray[np.float64]


class FittedDiscoverer(
    KeptModel,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    ClusterMixin,
    BaseEstimator,
):
    """The methods of :class:`~pnp_gcd.PNPDiscoverer` that come after ``fit``."""

    temperature: float
    missing_label: Any
    n_features_in_: int
    n_clusters_: int
    classes_: NDArray[Any]
    known_classes_: NDArray[Any]
    novel_classes_: NDArray[Any]
    unlabelled_labels_: NDArray[Any]
    prototypes_: NDArray[np.float32]
    _n_features_out: int
    encoder_: nn.Module
    _geometry: Geometry
    _labelling: Labelling
    _image_mode: ImageMode | None
    _homes: NDArray[np.int64]  # class, known then new, of each class of the fit: a person may merge some
    _is_confirmed: NDArray[np.bool_]  # of each new class: whether a person has named it
    _position: NDArray[np.int64]
    _sharpness: float
    _usual_closeness: NDArray[np.float64]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: arrays in place of the adapter, which skops can write too."""
        state: dict[str, Any] = super().__getstate__()
        if "encoder_" in state and self._image_mode is None:
            from pnp_gcd.encoders import pack_adapter

            state = {**state, "encoder_": pack_adapter(self.encoder_)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.get("encoder_")
        if isinstance(packed, dict):
            from pnp_gcd.encoders import unpack_adapter

            state = {**state, "encoder_": unpack_adapter(packed)}
        super().__setstate__(state)

    def _read_rows(self, X: Any, name: str, *, is_first: bool = False) -> NDArray[np.floating]:
        """Return X as finite float32 rows; the first X read sets the features, later ones must fit.

        scikit-learn takes the second axis for the features; of precomputed views it is the third.
        """
        refuse_dates(X, name)
        least = 2 if is_first else 1
        if count_axes(X) < 3:
            rows = validate_data(self, X, dtype=list(_FLOATS), reset=is_first, ensure_min_samples=least)
            return np.ascontiguousarray(rows)  # data frames come column by column, which rounds differently
        rows = check_array(X, dtype=list(_FLOATS), allow_nd=True, ensure_min_samples=least)
        if rows.ndim > 3 or rows.shape[1] < 2:
            raise ValueError(
                f"{name} has shape {rows.shape}. Pass (rows, features), or (rows, views, features) "
                "with at least 2 views of each row."
            )
        if is_first:
            self.n_features_in_ = rows.shape[2]
            self.__dict__.pop("feature_names_in_", None)
        elif rows.shape[2] != self.n_features_in_:
            raise ValueError(
                f"{name} has {rows.shape[2]} features in each view, but {type(self).__name__} is "
                f"expecting {self.n_features_in_} features as input."
            )
        return rows

    def _features(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return learnt features of new rows; NaN for images that were skipped."""
        check_is_fitted(self)
        if self._image_mode is not None:
            return self._image_mode.encode(self.encoder_, X, self)
        return self._answer(X, lambda features: features, self._n_features_out, np.float32)

    def _answer(
        self,
        X: ArrayLike,
        function: Callable[[NDArray[np.float32]], NDArray[Any]],
        width: int | None = None,
        dtype: Any = np.float64,
    ) -> NDArray[Any]:
        """Return ``function`` of learnt features, (n,) or (n, width), block by block.

        Of rows, in memory or on disk, no more is held than a few blocks and the answer.
        """
        check_is_fitted(self)
        shape = () if width is None else (width,)
        if self._image_mode is not None:
            features = self._features(X)
            return self._answer_features(features, function, np.empty((len(features), *shape), dtype))
        from pnp_gcd.encoding import fill_in_blocks, make_encoding

        encode = make_encoding(self.encoder_, self._geometry)
        pieces = _cut_array_on_disk(X)
        rows = self._read_rows(pieces[0], "X")
        out = np.empty((len(rows) + sum(map(len, pieces[1:])), *shape), dtype)
        begin = 0
        for number, piece in enumerate(pieces):
            rows = self._read_rows(piece, "X") if number else rows
            fill_in_blocks(lambda block: function(encode(block)), rows, out[begin : begin + len(rows)])
            begin += len(rows)
        return out

    def _answer_features(
        self,
        features: NDArray[np.float32],
        function: Callable[[NDArray[np.float32]], NDArray[Any]],
        out: NDArray[Any],
    ) -> NDArray[Any]:
        """Write ``function`` of blocks of features into ``out``."""
        from pnp_gcd.encoding import fill_in_blocks

        return fill_in_blocks(function, features, out)

    def _log_scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return log-scores (n, n_clusters_) of learnt features in the order known, then new."""
        from pnp_gcd.labelling import join_scores, score_classes

        scores = score_classes(features, self._labelling, self.temperature)
        return join_scores(scores, self._homes, self._sharpness)

    def _scores(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return scores (n, n_clusters_), known then new, the best class of each row scaled to 1."""
        scores = self._log_scores(features)
        scores -= scores.max(axis=1, keepdims=True)
        scores *= self._sharpness
        return np.exp(scores, out=scores)

    def _in_order(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reorder columns from known-then-new to ``classes_``."""
        ordered = np.empty_like(columns)
        ordered[:, self._position] = columns
        return ordered

    def predict(self, X: ArrayLike, reject_below: float | None = None) -> NDArray[Any]:
        """Return the class of each row: a known label as given, or the name of a new class.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features)
        reject_below : float or None, default=None
            Rows whose :meth:`typicality` is below this get the missing label instead of a class:
            ``missing_label`` if it was given, else −1, "-1" where classes are strings, or None.
            0.01 turns away what is farther from every class than 99 in 100 rows of the fit.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        if reject_below is not None and (
            isinstance(reject_below, bool)
            or not isinstance(reject_below, numbers.Real)
            or not 0.0 <= float(reject_below) <= 1.0
        ):
            raise ValueError(
                f"reject_below={reject_below!r} must be a number from 0 to 1, or None to reject no row."
            )
        if self._image_mode is None and reject_below is None:
            return self.classes_[self._classify(X)]
        features = self._features(X)
        labels, is_rejected = self.classes_[self._choose(features)], np.isnan(features[:, 0])
        if reject_below is not None:
            is_rejected |= self._typicality(features) < float(reject_below)
        elif not is_rejected.any():
            return labels
        return mark_rejected(labels, is_rejected, choose_marker(self.classes_, self.missing_label))

    def _choose(self, features: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the place of the class of each row in ``classes_``."""
        return self._answer_features(features, self._find_best, np.empty(len(features), dtype=np.int64))

    def _find_best(self, features: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the same for a block of learnt features."""
        return self._in_order(self._log_scores(features)).argmax(axis=1)

    @property
    def _is_unmerged(self) -> bool:
        """Whether every class is one that fit has found."""
        return len(self._homes) == self.n_clusters_

    def _classify(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the place of each row's class in ``classes_``: no features of all rows are held."""
        if not self._is_unmerged:
            return self._answer(X, self._find_best, dtype=np.int64)
        from pnp_gcd.labelling import make_classifier

        classify = make_classifier(self._labelling, self.temperature)
        return self._position[self._homes[self._answer(X, classify, dtype=np.int64)]]

    def typicality(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how typical each row is of some class, known or new, from 0 to 1.

        It is the part of the rows of the fit that are farther from their nearest class mean than
        this row. Rows of the same kind are spread evenly over 0 to 1; rows unlike any class get 0.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._answer(X, self._rank)

    def _typicality(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        return self._answer_features(features, self._rank, np.empty(len(features)))

    def _rank(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the part of the rows of the fit that are farther from their class mean."""
        from pnp_gcd.labelling import measure_closeness

        closeness = measure_closeness(features, self._labelling)
        part = np.searchsorted(self._usual_closeness, closeness) / len(self._usual_closeness)
        return np.where(np.isnan(closeness), np.nan, part)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities, columns as in ``classes_``.

        They are a softmax over prototypes and class means, made as sure as classes were right on
        rows that calibration held back.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        ndarray of shape (n_rows, n_clusters_)
        """
        check_is_fitted(self)
        return self._answer(X, self._weigh, self.n_clusters_)

    def _probabilities(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the class probabilities of learnt features, columns as in ``classes_``."""
        return self._answer_features(features, self._weigh, np.empty((len(features), self.n_clusters_)))

    def _weigh(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the class probabilities of a block of learnt features."""
        scores = self._in_order(self._scores(features))
        return scores / scores.sum(axis=1, keepdims=True)

    def inspect(self, X: ArrayLike) -> Inspection:
        """Return features, probabilities and typicality of rows that are encoded only once.

        The same as :meth:`transform`, :meth:`predict_proba` and :meth:`typicality`. Of images, where
        encoding is what takes long, it needs a third of their time.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        Inspection
            Named tuple of ``features``, ``probabilities`` and ``typicality``.
        """
        features = self._features(X)
        return Inspection(features, self._probabilities(features), self._typicality(features))

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the logarithm of each class's score; with two classes, their difference.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        ndarray of shape (n_rows, n_clusters_), or (n_rows,) for two classes
        """
        check_is_fitted(self)
        scores = self._answer(
            X, lambda features: self._in_order(self._log_scores(features)), self.n_clusters_
        )
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def novelty_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how much each row looks like no known class, from 0 to 1.

        It is the probability of all new classes together. Where no new class was found, or no
        class was known, it is how far the nearest known prototype is: (1 − cosine) / 2, or 1.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        if not len(self.known_classes_):
            return np.ones(len(self._features(X)))
        return self._answer(X, self._look_novel)

    def _look_novel(self, features: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the novelty of a block of learnt features."""
        n_known = len(self.known_classes_)
        if n_known == self.n_clusters_:
            nearest = (features @ self.prototypes_.T).max(axis=1).astype(np.float64)
            return (1.0 - nearest) / 2.0
        scores = self._scores(features)
        return scores[:, n_known:].sum(axis=1) / scores.sum(axis=1)

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return the learnt unit-length features.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features) or (n_rows, n_views, n_features), or images

        Returns
        -------
        ndarray of shape (n_rows, n_features_out)
        """
        return self._features(X)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on labelled rows: known classes under their own label, new ones matched.

        Rows whose y is a missing label are left out. Classes of y that were not known in
        ``fit`` are matched one to one with the new classes found (Hungarian).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,) or None, default=None
            How much each row counts.

        Returns
        -------
        float
        """
        from pnp_gcd.metrics import score_named

        predicted = self.predict(X)
        if len(self.unlabelled_labels_):
            warn_about_score(y, self.known_classes_, missing_label=self.missing_label)
        return score_named(
            y, predicted, self.known_classes_, missing_label=self.missing_label, sample_weight=sample_weight
        )


def count_axes(X: Any) -> int:
    """Return the number of axes of an array, a data frame or nested lists; 2 for what does not say."""
    if hasattr(X, "shape"):
        return len(X.shape)
    n_axes = 0
    while isinstance(X, list | tuple):
        n_axes += 1
        X = X[0] if len(X) else None
    return n_axes + len(getattr(X, "shape", ())) if n_axes else 2


def _cut_array_on_disk(X: Any) -> list[Any]:
    """Return an array on disk in pieces that fit into memory as double precision; all else whole."""
    if not isinstance(X, np.memmap) or X.ndim < 2 or not X.size:
        return [X]
    step = max(512, _NUMBERS_AT_ONCE // X[0].size // 512 * 512)
    return [X[start : start + step] for start in range(0, len(X), step)]
