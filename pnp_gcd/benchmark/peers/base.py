"""What all peers share: rows of unit length, labels in and out, names, the nearest centroid.

Knows rows and labels: no way of clustering, no truth about unlabelled rows.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pnp_gcd._compat import Interval
from pnp_gcd.geometry import unit_rows
from pnp_gcd.inputs import unwrap_pool
from pnp_gcd.labels import EncodedLabels, concatenate_unchanged, encode_labels, name_novel_classes
from pnp_gcd.matching import match_by_overlap
from pnp_gcd.metrics import score_named

__all__ = [
    "COUNT",
    "AtLeastOne",
    "Clusters",
    "Peer",
    "label_accuracy",
    "match_clusters",
    "nearest_centroid",
    "place_known_first",
]

AtLeastOne = Interval(numbers.Integral, 1, None, closed="left")

# Parameters of the peers that have to be told the number of classes, or to estimate it.
COUNT: dict[str, list[Any]] = {"n_clusters": [AtLeastOne, None], "max_clusters": [AtLeastOne, None]}


class Clusters(NamedTuple):
    """What a peer has made of the rows.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
        Cluster of each row.
    centroids : ndarray of shape (k, d), float32
        In the space of the peer's features; new rows go to the nearest one.
    homes : ndarray of shape (k,), int64
        The known class that each cluster stands for, −1 for a new class. None stands for two.
    """

    rows: NDArray[np.int64]
    centroids: NDArray[np.float32]
    homes: NDArray[np.int64]


class Peer(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A method behind the interface of :class:`~pnp_gcd.PNPDiscoverer`.

    Attributes
    ----------
    n_clusters_ : int
        Clusters made, ``len(classes_)``.
    classes_ : ndarray of shape (n_clusters_,)
        Names of the clusters, sorted: what ``predict`` may answer. Unlike ``PNPDiscoverer``'s, they
        lack a known class whose rows all lie in other classes' clusters.
    known_classes_, novel_classes_ : ndarray
        Labels of y; names of the clusters that stand for none of them, largest first.
    labels_ : ndarray of shape (n_rows,)
        For the rows of X: given labels as given, unlabelled rows as found.
    unlabelled_labels_ : ndarray
        X's own unlabelled rows in order, then the rows of ``X_unlabelled``.
    centroids_ : ndarray of shape (n_clusters_, n_features_out)
        In the order known, then new.
    centroid_labels_ : ndarray of shape (n_clusters_,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"random_state": ["random_state"]}

    missing_label: Any
    random_state: int | np.random.RandomState | None

    @property
    def given(self) -> str:
        """What the peer is told that ``PNPDiscoverer`` is not."""
        return "nothing" if getattr(self, "n_clusters", None) is None else "the number of classes"

    def fit(self, X: ArrayLike, y: ArrayLike, X_unlabelled: Any = None) -> Peer:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows with labels in y; rows whose y is a missing label belong to the pool.
        y : array-like of shape (n_rows,)
            Labels of known classes.
        X_unlabelled : array-like of shape (n_pool, n_features), 1-tuple of it, or None
            Further rows of the pool.

        Returns
        -------
        self : Peer
        """
        self._validate_params()
        rows = self._read_rows(X, is_first=True)
        encoded = encode_labels(y, self.missing_label)
        check_consistent_length(rows, encoded.codes)
        pool = unwrap_pool(X_unlabelled)
        if pool is not None:
            rows = np.concatenate([rows, self._read_rows(pool)])
        codes = encoded.with_unlabelled(len(rows))
        self._check_counts(codes, len(encoded.classes))
        self._store(self._cluster(rows, codes, self._seed()), encoded, codes)
        return self

    @abstractmethod
    def _cluster(self, rows: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Clusters:
        """Cluster unit rows (n, d) with known-class codes (n,), −1 for unlabelled rows."""

    def _features(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the features of unit rows that centroids are compared with."""
        return rows

    def _read_rows(self, X: Any, *, is_first: bool = False) -> NDArray[np.float32]:
        floats = [np.float64, np.float32]
        return np.ascontiguousarray(unit_rows(validate_data(self, X, dtype=floats, reset=is_first)))

    def _check_counts(self, codes: NDArray[np.int64], n_known: int) -> None:
        """Refuse numbers that these rows cannot satisfy."""
        n_unlabelled = int((codes < 0).sum())
        if not n_known or not n_unlabelled:
            raise ValueError(
                f"{type(self).__name__} needs labelled and unlabelled rows, got {len(codes) - n_unlabelled} "
                f"and {n_unlabelled}. Label rows of each known class in y; pass the others as X_unlabelled."
            )
        for name in COUNT:
            value = getattr(self, name, None)
            if value is not None and not n_known <= value <= n_known + n_unlabelled:
                raise ValueError(
                    f"{name}={value} must lie between the {n_known} known classes in y and "
                    f"{n_known + n_unlabelled}, with every unlabelled row a class. Change it or pass None."
                )

    def _seed(self) -> int:
        """Return one seed for the whole fit; None draws fresh entropy, not the global state's."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _store(self, found: Clusters, encoded: EncodedLabels, codes: NDArray[np.int64]) -> None:
        """Name the clusters and turn them into the attributes that end in an underscore."""
        n_known, n_clusters = len(encoded.classes), len(found.homes)
        sizes = np.bincount(found.rows[codes < 0], minlength=n_clusters)
        # Known ones in their order, then new ones, largest first.
        order = np.lexsort((-sizes, np.where(found.homes < 0, n_known, found.homes)))
        n_novel = int((found.homes < 0).sum())
        classes = np.concatenate([np.sort(found.homes[found.homes >= 0]), n_known + np.arange(n_novel)])
        class_of = np.empty(n_clusters, dtype=np.int64)
        class_of[order] = classes
        self.known_classes_ = encoded.classes
        self.novel_classes_ = name_novel_classes(encoded.classes, n_novel, missing_label=self.missing_label)
        names = concatenate_unchanged(self.known_classes_, self.novel_classes_)
        self.centroids_, self.centroid_labels_ = found.centroids[order], names[classes]
        self.classes_, self.n_clusters_ = np.sort(self.centroid_labels_), n_clusters
        row_names = names[np.where(codes >= 0, codes, class_of[found.rows])]
        self.labels_ = row_names[: len(encoded.codes)]
        self.unlabelled_labels_ = row_names[codes < 0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the nearest centroid of each row.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        features = self._features(self._read_rows(X))
        return self.centroid_labels_[nearest_centroid(features, self.centroids_)]

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on labelled rows: known classes under their own label, new ones matched.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,) or None, default=None

        Returns
        -------
        float
        """
        predicted, known = self.predict(X), self.known_classes_
        return score_named(y, predicted, known, missing_label=self.missing_label, sample_weight=sample_weight)


def nearest_centroid(rows: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return, for each row (n, d), which of the centroids (k, d) is nearest."""
    from pnp_gcd.encoding import map_in_blocks

    offsets = (centroids * centroids).sum(axis=1) / 2
    scores = map_in_blocks(lambda block: block @ centroids.T - offsets, rows)
    return scores.argmax(axis=1)


def match_clusters(
    clusters: NDArray[np.int64], codes: NDArray[np.int64], n_clusters: int
) -> NDArray[np.int64]:
    """Return the known class of each cluster, by a Hungarian matching on the labelled rows; else −1."""
    return match_by_overlap(codes, clusters, int(codes.max()) + 1, n_clusters)


def place_known_first(codes: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """Return the homes of clusters of which the first stand for the known classes, in their order."""
    homes = np.arange(n_clusters)
    homes[homes > codes.max()] = -1
    return homes


def label_accuracy(clusters: NDArray[np.int64], codes: NDArray[np.int64], n_clusters: int) -> float:
    """Return the part of labelled rows that lie in the cluster of their class.

    Examples
    --------
    >>> label_accuracy(np.array([0, 0, 1, 2]), np.array([0, 1, 1, -1]), n_clusters=3)
    0.666...
    """
    homes = match_clusters(clusters, codes, n_clusters)
    return float((homes[clusters] == codes)[codes >= 0].mean())
