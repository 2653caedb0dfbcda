"""Score an estimator on rows of known and of hidden classes.

Knows predictions and labels: no rows.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnp_gcd.labels import drop_unlabelled
from pnp_gcd.metrics import named_accuracy, split_cluster_accuracy
from pnp_gcd.model_selection.transduction import Transductive, last_step
from pnp_gcd.workflows import warn_about_score

__all__ = ["DiscoveryScorer", "discovery_scorer", "find_known_classes"]

Metric = Literal["all", "known", "novel", "named", "neg_count_error"]
_METRICS = ("all", "known", "novel", "named", "neg_count_error")


class DiscoveryScorer:
    """A scorer for scikit-learn's searches: All, known, novel and named accuracy, and the number of classes.

    ========================  ==========================================================================
    ``"all"``                 accuracy over all rows; found and true classes paired one to one
    ``"known"``, ``"novel"``  the same pairing, over rows of known and of other classes; NaN without rows
    ``"named"``               accuracy where a known class counts only under its own label
    ``"neg_count_error"``     minus the relative error of the number of classes in these rows
    ========================  ==========================================================================

    Greater is better for all of them. Rows without a label are left out. Classes are counted by their
    effective number, the exponential of the entropy of their sizes, which a few stray rows hardly change.

    Parameters
    ----------
    metric : {"all", "known", "novel", "named", "neg_count_error"} or None, default=None
        One number, or a dict of all five. scikit-learn's searches take the dict as several metrics
        and want the one to choose by in ``refit``. Tools that take one metric only
        (``HalvingGridSearchCV``, ``learning_curve``) need a name here.
    missing_label : object, default="auto"
        What marks an unlabelled row in y, as in :class:`~pnp_gcd.PNPDiscoverer`.

    See Also
    --------
    Transductive : What to wrap an estimator in, for classes nobody labelled to be found.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import cross_validate
    >>> from pnp_gcd import PNPDiscoverer
    >>> from pnp_gcd.model_selection import ClassHoldoutSplit, Transductive, discovery_scorer
    >>> X, y = make_blobs(300, n_features=8, centers=6, random_state=0)
    >>> y[y > 3] = -1
    >>> model = Transductive(PNPDiscoverer(max_iter=1, random_state=0), lazy=True)
    >>> folds = ClassHoldoutSplit(2, random_state=0)
    >>> scores = cross_validate(model, X, y, cv=folds, scoring=discovery_scorer)
    >>> scores["test_novel"]
    array([1., 1.])
    """

    def __init__(self, metric: Metric | None = None, *, missing_label: Any = "auto") -> None:
        if metric is not None and metric not in _METRICS:
            raise ValueError(f"metric={metric!r} must be one of {', '.join(_METRICS)}, or None for all.")
        self.metric = metric
        self.missing_label = missing_label

    def __repr__(self) -> str:
        return f"DiscoveryScorer({self.metric!r})" if self.metric else "DiscoveryScorer()"

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> Any:
        """Return the metric, or a dict of all, on rows X with truth y."""
        predicted, known = np.asarray(estimator.predict(X)), find_known_classes(estimator)
        has_label, truth = drop_unlabelled(y, self.missing_label, known=known)
        if len(has_label) != len(predicted):
            raise ValueError(
                f"y has {len(has_label)} labels for {len(predicted)} rows of X. Pass one per row."
            )
        has_seen_rows = isinstance(last_step(estimator), Transductive)
        warn_about_score(y, known, missing_label=self.missing_label, has_seen_rows=has_seen_rows)
        predicted = predicted[has_label]
        accuracy = split_cluster_accuracy(truth, predicted, known)
        scores = {
            **accuracy._asdict(),
            "named": named_accuracy(truth, predicted, known).all,
            "neg_count_error": -_count_error(truth, predicted),
        }
        return scores if self.metric is None else scores[self.metric]


discovery_scorer = DiscoveryScorer()


def find_known_classes(estimator: Any) -> NDArray[Any]:
    """Return the classes that had labels in the estimator's fit, inside pipelines and searches too."""
    seen = last_step(estimator)
    while seen is not None:
        if hasattr(seen, "known_classes_"):
            return np.asarray(seen.known_classes_)
        seen = last_step(getattr(seen, "best_estimator_", None) or getattr(seen, "estimator_", None))
    if hasattr(estimator, "classes_"):
        return np.asarray(estimator.classes_)
    raise TypeError(
        f"{type(estimator).__name__} does not say which classes it knew: it has neither known_classes_ nor "
        "classes_. Wrap it in Transductive, which remembers them."
    )


def _count_error(truth: NDArray[Any], predicted: NDArray[Any]) -> float:
    true, found = _effective_number(truth), _effective_number(predicted)
    return abs(found - true) / true


def _effective_number(labels: NDArray[Any]) -> float:
    """Return the exponential of the entropy: K for K classes of one size."""
    _, counts = np.unique(labels, return_counts=True)
    part = counts / counts.sum()
    return float(np.exp(-(part * np.log(part)).sum()))
