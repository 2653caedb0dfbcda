"""Tell when a scikit-learn tool is about to do something else than was meant.

A fit sees arrays, not the tool that cut or passed by them; whoever called it does. So the callers are looked
at, for a warning only: no result depends on them. Knows scikit-learn's tools by name: no torch, no rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.exceptions import WorkflowWarning

__all__ = ["warn_about_score", "warn_if_cut", "warn_if_passed_by"]

# Where scikit-learn fits and scores a fold: searches, cross_validate, learning_curve and others.
_VALIDATION = "sklearn.model_selection._validation"


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _find_validation() -> FrameType | None:
    """Return the frame in which scikit-learn fits and scores a fold, if there is one."""
    return next((frame for frame in _callers() if _is_validation(frame)), None)


def _is_validation(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == _VALIDATION


def warn_if_cut(n_rows: int, n_pool: int) -> None:
    """Warn where a search has cut the pool: it is as long as the fold's rows, and no tuple kept it whole."""
    if n_rows == n_pool and _find_validation() is not None:
        warnings.warn(
            f"X_unlabelled has {n_pool} rows, exactly as many as this fold has of X: scikit-learn cuts every "
            "fit parameter that is as long as X, so rows of the pool are missing here. Pass a tuple of one, "
            "X_unlabelled=(X_unlabelled,), or stack the rows: search.fit(*pool(X_labelled, y_labelled, "
            "X_unlabelled)).",
            WorkflowWarning,
            stacklevel=3,
        )


def warn_if_passed_by(estimator: Any) -> bool:
    """Warn, and return True, where a Pipeline hands its last step a pool that earlier steps never saw."""
    for frame in _callers():
        pipeline = frame.f_locals.get("self")
        steps = getattr(pipeline, "steps", None)
        if not steps or not isinstance(steps, list) or steps[-1][1] is not estimator:
            continue
        earlier = [name for name, step in steps[:-1] if step is not None and step != "passthrough"]
        if not earlier or "X_unlabelled" in (getattr(pipeline, "transform_input", None) or ()):
            return False
        warnings.warn(
            f"X_unlabelled passes by {', '.join(map(repr, earlier))} of the Pipeline: X was transformed, the "
            "pool was not. Stack the rows: pipe.fit(*pool(X_labelled, y_labelled, X_unlabelled)). Or, with "
            "metadata routing, write "
            'Pipeline(..., transform_input=["X_unlabelled"]).',
            WorkflowWarning,
            stacklevel=3,
        )
        return True
    return False


def warn_about_score(y: Any, truth: NDArray[Any], has_label: NDArray[np.bool_], known: NDArray[Any]) -> None:
    """Warn where a validation's folds cannot judge discovery, or take unlabelled rows from training.

    Parameters
    ----------
    y : array-like
        What score was given, to tell the rows of a test fold from those of training.
    truth : ndarray
        Labels among them.
    has_label : ndarray of bool
        Which rows have one.
    known : ndarray
        Classes with labels in fit.
    """
    validation = [frame for frame in _callers() if _is_validation(frame)]
    if not validation or any(frame.f_locals.get("y_train") is y for frame in validation):
        return
    n_lost = int((~has_label).sum())
    if n_lost:
        warnings.warn(
            f"{n_lost} unlabelled rows are in a test fold: training went without them, and they cannot be "
            "scored. Pass cv=KeepUnlabelled(5), or cv=ClassHoldoutSplit(5) with Transductive(estimator), all "
            "from pnp_gcd.model_selection.",
            WorkflowWarning,
            stacklevel=3,
        )
    if len(known) and np.isin(truth, known).all():
        warnings.warn(
            "All scored rows belong to known classes: the score says how well these are recognised, and a "
            "setting that finds no new class can win. To judge discovery, wrap the estimator in Transductive "
            "and pass cv=ClassHoldoutSplit(), both from pnp_gcd.model_selection.",
            WorkflowWarning,
            stacklevel=3,
        )
