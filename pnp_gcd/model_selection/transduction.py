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
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pnp_gcd._compat import CallbackSupportMixin, ParameterHelpMixin, Tags, with_callbacks
from pnp_gcd.inputs import pool
from pnp_gcd.labels import choose_marker, concatenate_unchanged, encode_labels
from pnp_gcd.metrics import score_named
from pnp_gcd.workflows import warn_about_score, warn_if_cut

__all__ = ["Transductive", "last_step"]


class _Training(NamedTuple):
    """What fit was given.

    Attributes
    ----------
    model : estimator
        Unfitted, with the parameters it had then.
    X, y
        Rows and labels; unlabelled rows are marked as the model reads them.
    parameters : dict
        For the model's fit.
    missing_label
        What the model takes for unlabelled; −1 for one that does not say.
    with_routing : bool
        Whether metadata routing was on.
    key : str
        Tells the rows from others.
    """

    model: Any
    X: Any
    y: NDArray[Any]
    parameters: dict[str, Any]
    missing_label: Any
    with_routing: bool
    key: str

    def fit(self, X: Any, y: NDArray[Any]) -> Any:
        """Return the model fitted to these rows."""
        with sklearn.config_context(enable_metadata_routing=self.with_routing):
            return clone(self.model).fit(X, y, **self.parameters)


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
        search by ``score`` or :class:`DiscoveryScorer` never asks: it saves one of two fits per fold. Fits
        that fail then do so in ``score``; pass ``error_score="raise"`` to the search to see why.
    missing_label : object, default="auto"
        What marks an unlabelled row in y, as in :class:`~pnp_gcd.PNPDiscoverer`. "auto" is what the estimator
        says, if it does.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to the rows of ``fit`` alone. To predict new rows without another fit, use its ``predict``.
    known_classes_ : ndarray
        Classes with a label in ``fit``.
    classes_ : ndarray
        Classes of ``estimator_``; the known ones while a lazy wrapper has not fitted it.
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
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
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
        for name in ("n_features_in_", "feature_names_in_", "known_classes_", "estimator_", "classes_"):
            self.__dict__.pop(name, None)
        self._check_rows(X, y, fit_params)
        model = clone(self.estimator)
        known, marked, missing_label = self._mark(y, model)
        check_consistent_length(X, marked)
        with_routing = bool(sklearn.get_config()["enable_metadata_routing"])
        self._training = _Training(
            model, X, marked, self._route(fit_params), missing_label, with_routing, _fingerprint(X)
        )
        self._last = _LastModel()
        if not self.lazy:
            self._fit_first()
        else:
            self.classes_ = known
            if hasattr(last_step(model), "_validate_params"):
                last_step(model)._validate_params()  # else a mistyped value would show in score only
        self.known_classes_ = known
        return self

    def _check_rows(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        if self._takes_tables() and getattr(X, "ndim", 2) == 2:  # not texts, paths or images
            validate_data(self, X, skip_check_array=True, reset=True)
        if y is None:
            raise ValueError("Transductive requires y to be passed, but the target y is None.")
        if getattr(getattr(X, "dtype", None), "kind", None) == "c":
            raise ValueError(
                f"Complex data not supported: X has dtype {X.dtype}. Pass its two parts as columns."
            )
        if hasattr(X, "toarray"):
            raise TypeError("Sparse X is not supported: rows are stacked as dense ones. Use X.toarray().")
        for name, value in fit_params.items():
            is_pool = name.split("__")[-1] == "X_unlabelled" and hasattr(value, "__len__")
            if is_pool and not isinstance(value, tuple):
                warn_if_cut(len(X), len(value))

    def _mark(self, y: ArrayLike, model: Any) -> tuple[NDArray[Any], NDArray[Any], Any]:
        """Return the known classes, y marked as the model reads it, and what it reads as unlabelled.

        Of the labels −1, 0 and 1 a fold may hold −1 and 1 alone, which "auto" reads as two classes: the
        marker is then another.
        """
        parameters = last_step(model).get_params()  # of a search, its estimator's too
        stated = [value for name, value in parameters.items() if name.split("__")[-1] == "missing_label"]
        reads = stated[0] if stated else -1  # as scikit-learn's own semi-supervised estimators
        mine = reads if _is_auto(self.missing_label) else self.missing_label
        codes, classes = encode_labels(y, mine)
        if not len(classes):
            raise ValueError(
                "y holds no label: all entries mark unlabelled rows. Label some rows of each known class."
            )
        if not stated and classes.dtype.kind not in "iu":
            raise ValueError(
                f"{type(last_step(model)).__name__} takes integers only where rows are unlabelled, but the "
                f"labels have dtype {classes.dtype}. Encode them, for example with LabelEncoder, keeping -1."
            )
        marker = choose_marker(classes, reads)
        marked = concatenate_unchanged(classes, marker)[codes]  # code −1 picks the last entry: the marker
        if not np.array_equal(encode_labels(marked, reads).codes, codes):
            raise ValueError(
                f"missing_label={self.missing_label!r} of Transductive and missing_label={reads!r} of "
                f"{type(last_step(model)).__name__} read y differently. Pass the same to both."
            )
        return classes, marked, reads

    def _fit_first(self) -> None:
        """Fit to the rows of fit alone, with the callbacks of the caller."""
        model = clone(self._training.model)
        context = self._init_callback_context(max_subtasks=1)
        context.call_on_fit_task_begin(estimator=self)
        inner = context.subcontext(task_name="fit-estimator")
        with inner.propagate_callback_context(model):
            inner.call_on_fit_task_begin(estimator=self)
            model.fit(self._training.X, self._training.y, **self._training.parameters)
            inner.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)
        self._keep(model)

    def _keep(self, model: Any) -> None:
        self.estimator_ = model
        if hasattr(model, "classes_"):
            self.classes_ = np.asarray(model.classes_)

    def __getattr__(self, name: str) -> Any:
        """Fit a lazy wrapper's estimator when it is asked for; what only lists attributes does not ask."""
        if name == "estimator_" and "known_classes_" in self.__dict__:
            self._keep(self._training.fit(self._training.X, self._training.y))
            return self.estimator_
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _route(self, fit_params: dict[str, Any]) -> dict[str, Any]:
        if not sklearn.get_config()["enable_metadata_routing"]:
            return fit_params
        return dict(process_routing(self, "fit", **fit_params).estimator.fit) if fit_params else {}

    def _takes_tables(self) -> bool:
        """Tell whether rows have features; of a Pipeline its first step knows."""
        first = self.estimator
        while isinstance(first, Pipeline) and first.steps:
            first = first.steps[0][1]
        known = first if hasattr(first, "__sklearn_tags__") else self.estimator
        return bool(get_tags(known).input_tags.two_d_array)

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
        predicted = self.predict(X)
        known, marker = self.known_classes_, self.missing_label
        marker = self._training.missing_label if _is_auto(marker) else marker
        warn_about_score(y, known, missing_label=marker, has_seen_rows=True)
        return score_named(y, predicted, known, missing_label=marker, sample_weight=sample_weight)

    def _fit_with(self, X: Any) -> Any:
        """Return the estimator fitted to the training rows and to X without labels."""
        key = _fingerprint(X)
        if key == self._training.key:  # rows of fit, which it has seen
            return self.estimator_
        last = self._last.answer
        if last is not None and last[0] == key:
            return last[1]
        try:
            rows = pool(self._training.X, self._training.y, X, missing_label=self._training.missing_label)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"X cannot be put beside the rows of fit (here X_labelled; X is X_unlabelled): {error}"
            ) from error
        model = self._training.fit(*rows)
        self._last.answer = (key, model)
        return model


def last_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline, of the innermost of several; any other estimator as it is."""
    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[-1][1]
    return estimator


def _is_auto(missing_label: Any) -> bool:
    return isinstance(missing_label, str) and missing_label == "auto"


def _fingerprint(X: Any) -> str:
    """Return a text that tells these rows from others, in whatever order memory holds them."""
    return str(joblib.hash(np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X))
