"""An estimator that sees the rows it is asked about, without their labels.

Knows estimators and rows in any container: nothing of the method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import joblib
import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pnp_gcd._compat import CallbackSupportMixin, ParameterHelpMixin, Tags, with_callbacks
from pnp_gcd.inputs import pool
from pnp_gcd.labels import choose_marker, concatenate_unchanged, drop_unlabelled, encode_labels
from pnp_gcd.metrics import named_accuracy
from pnp_gcd.workflows import warn_about_score

__all__ = ["Transductive"]


class _Training(NamedTuple):
    """What fit was given."""

    X: Any
    y: Any
    parameters: dict[str, Any]
    key: str


class _LastModel:
    """The model fitted for the rows asked about last: several scorers ask about the same ones."""

    def __init__(self) -> None:
        self.answer: tuple[str, Any] | None = None


class Transductive(
    CallbackSupportMixin, ParameterHelpMixin, MetaEstimatorMixin, ClassifierMixin, BaseEstimator
):
    """Judge a discoverer on rows that it has seen, without their labels.

    A class can only be discovered in rows that the estimator sees. Ordinary validation shows it the
    training rows alone, so hidden classes of the test rows cannot be found. ``predict`` and ``score``
    of this wrapper first fit a copy of the estimator to the training rows *and* the rows asked about,
    these without labels. (For the rows of ``fit`` themselves ``estimator_`` answers.) With
    :class:`ClassHoldoutSplit`, every search of scikit-learn then judges settings by whether they find
    classes that nobody labelled.

    Parameters
    ----------
    estimator : estimator
        Takes unlabelled rows marked in y: a :class:`~pnp_gcd.PNPDiscoverer`, a ``Pipeline`` that ends in
        one, or one of scikit-learn's semi-supervised classifiers.
    lazy : bool, default=False
        ``fit`` then only remembers its rows, and ``estimator_`` is fitted when it is first asked for. A
        search never asks: it saves one of two fits per fold.
    missing_label : object, default="auto"
        What marks an unlabelled row in y, as in :class:`~pnp_gcd.PNPDiscoverer`.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the rows of ``fit`` alone. To predict new rows without another fit, use its ``predict``.
    known_classes_ : ndarray
        Classes with a label in ``fit``.
    classes_ : ndarray
        Classes of ``estimator_``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names.

    Notes
    -----
    Predictions for a row depend on the other rows asked about with it, by design. The rows of ``fit`` are
    kept, by reference.

    See Also
    --------
    ClassHoldoutSplit : The folds this is made for.
    discovery_scorer : Several measures at once.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from pnp_gcd import PNPDiscoverer
    >>> from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive
    >>> X, y = make_blobs(300, n_features=8, centers=6, random_state=0)
    >>> y[y > 3] = -1  # nobody has labelled the last two classes
    >>> search = GridSearchCV(
    ...     Transductive(PNPDiscoverer(max_iter=1, random_state=0), lazy=True),
    ...     {"estimator__n_clusters": [2, None]},  # 2: no more than a fold has labels of
    ...     cv=ClassHoldoutSplit(2, random_state=0),
    ... ).fit(X, y)
    >>> search.best_params_
    {'estimator__n_clusters': None}
    >>> search.best_estimator_.estimator_.n_clusters_
    6
    """

    def __init__(self, estimator: Any, *, lazy: bool = False, missing_label: Any = "auto") -> None:
        self.estimator = estimator
        self.lazy = lazy
        self.missing_label = missing_label

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Pass to the estimator's fit what it asks for."""
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    @with_callbacks
    def fit(self, X: Any, y: ArrayLike, **fit_params: Any) -> Transductive:
        """Fit the estimator to labelled and unlabelled rows, and remember them.

        Parameters
        ----------
        X : array-like of shape (n_rows, …)
        y : array-like of shape (n_rows,)
            Labels, with unlabelled rows marked.
        **fit_params : dict
            For the estimator's fit, here and when ``predict`` fits it again: ``X_unlabelled`` say. What
            has a value for each row of X cannot be passed, as there is none for the rows asked about later.

        Returns
        -------
        self : Transductive
        """
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if self._takes_tables() and getattr(X, "ndim", 2) == 2:  # not texts, paths or images
            validate_data(self, X, skip_check_array=True, reset=True)
        if y is None:
            raise ValueError("Transductive requires y to be passed, but the target y is None.")
        if getattr(getattr(X, "dtype", None), "kind", None) == "c":
            raise ValueError(
                f"Complex data not supported: X has dtype {X.dtype}. Pass its two parts as columns."
            )
        self._last = _LastModel()
        self._fitted: Any = None
        self._training = _Training(X, self._mark(y), self._route(fit_params), joblib.hash(X))
        check_consistent_length(X, self._training.y)
        if not self.lazy:
            self._fit_first()
        return self

    def _mark(self, y: ArrayLike) -> NDArray[Any]:
        """Return y with a marker of unlabelled rows that no class could be taken for, and note the classes.

        Of the labels −1, 0 and 1 a fold may hold −1 and 1 alone, which would be read as two classes.
        """
        codes, classes = encode_labels(y, self.missing_label)
        if not len(classes):
            raise ValueError(
                "y holds no label: all entries mark unlabelled rows. Label some rows of each known class."
            )
        self.known_classes_ = classes
        marker = choose_marker(classes, "auto")
        return concatenate_unchanged(classes, marker)[codes]  # code −1 picks the last entry: the marker

    def _fit_first(self) -> None:
        """Fit to the rows of fit alone, with the callbacks of the caller."""
        model = clone(self.estimator)
        context = self._init_callback_context(max_subtasks=1)
        context.call_on_fit_task_begin(estimator=self)
        inner = context.subcontext(task_name="fit-estimator")
        with inner.propagate_callback_context(model):
            inner.call_on_fit_task_begin(estimator=self)
            self._fitted = model.fit(self._training.X, self._training.y, **self._training.parameters)
            inner.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)

    def _route(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not sklearn.get_config()["enable_metadata_routing"]:
            return fit_params
        return dict(process_routing(self, "fit", **fit_params).estimator.fit) if fit_params else {}

    def _takes_tables(self) -> bool:
        """Tell whether rows have features; of a Pipeline its first step knows."""
        first = self.estimator
        while getattr(first, "steps", None):
            first = first.steps[0][1]
        known = first if hasattr(first, "__sklearn_tags__") else self.estimator
        return bool(get_tags(known).input_tags.two_d_array)

    @property
    def estimator_(self) -> Any:
        """The estimator fitted to the rows of ``fit`` alone."""
        check_is_fitted(self, "known_classes_")
        if self._fitted is None:
            self._fitted = clone(self.estimator).fit(
                self._training.X, self._training.y, **self._training.parameters
            )
        return self._fitted

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes of ``estimator_``."""
        return np.asarray(self.estimator_.classes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row, after a fit to the training rows and these.

        Parameters
        ----------
        X : array-like of shape (n_rows, …)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        check_is_fitted(self, "known_classes_")
        if hasattr(self, "n_features_in_"):
            if getattr(X, "ndim", 2) == 1:
                raise ValueError(
                    f"X has shape {X.shape}, but rows are expected. Reshape your data: X.reshape(1, -1) if "
                    "it is a single row, X.reshape(-1, 1) if it is a single feature."
                )
            validate_data(self, X, skip_check_array=True, reset=False)
        return np.asarray(self._fit_with(X).predict(X))

    def fit_predict(self, X: Any, y: ArrayLike, **fit_params: Any) -> NDArray[Any]:
        """Fit, and return the class that the estimator gives each row of X."""
        return np.asarray(self.fit(X, y, **fit_params).estimator_.predict(X))

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of ``predict``: known classes under their own label, others matched.

        Parameters
        ----------
        X : array-like of shape (n_rows, …)
        y : array-like of shape (n_rows,)
            The truth, which ``predict`` does not see. Rows marked as unlabelled are left out.
        sample_weight : array-like of shape (n_rows,) or None, default=None
            How much each row counts.

        Returns
        -------
        float
        """
        has_label, truth = drop_unlabelled(y, self.missing_label)
        predicted = self.predict(X)
        check_consistent_length(predicted, has_label)
        warn_about_score(y, truth, has_label, self.known_classes_)
        weights = None if sample_weight is None else np.asarray(sample_weight)[has_label]
        return named_accuracy(truth, predicted[has_label], self.known_classes_, sample_weight=weights).all

    def _fit_with(self, X: Any) -> Any:
        """Return the estimator fitted to the training rows and to X without labels."""
        key = joblib.hash(X)
        if key == self._training.key:  # rows of fit, which it has seen
            return self.estimator_
        last = self._last.answer
        if last is not None and last[0] == key:
            return last[1]
        rows = pool(self._training.X, self._training.y, X)
        model = clone(self.estimator).fit(*rows, **self._training.parameters)
        self._last.answer = (key, model)
        return model
