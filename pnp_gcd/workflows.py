"""Tell when a scikit-learn tool is about to do something else than was meant.

A fit sees arrays, not the tool that cut or passed by them; whoever called it does. So scikit-learn's own
calls on the stack are looked at, for a warning only: no result depends on them, and no variable of anybody
else is read. Knows scikit-learn's tools by name, and labels: no torch, no rows.
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
from pnp_gcd.labels import drop_unlabelled

__all__ = ["warn_about_score", "warn_if_cut", "warn_if_passed_by"]

# Where scikit-learn fits and scores a fold: searches, cross_validate, learning_curve and others.
_VALIDATION = "sklearn.model_selection._validation"
_PIPELINES = ("sklearn.pipeline", "imblearn.pipeline")
# Reading a frame's variables can keep them alive until it ends: callers' own frames are left alone.
_LOOKED_AT = ("sklearn.", "imblearn.", "pnp_gcd.")


def _callers() -> Iterator[tuple[str, FrameType]]:
    """Yield module and frame of each call of a library on the stack, the last one first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module.startswith(_LOOKED_AT):
            yield module, frame
        frame = frame.f_back


def warn_if_cut(n_rows: int, n_pool: int) -> None:
    """Warn where a search has cut the pool: it is as long as the fold's rows, and no tuple kept it whole."""
    if n_rows == n_pool and any(module == _VALIDATION for module, _ in _callers()):
        warnings.warn(
            f"X_unlabelled has {n_pool} rows, exactly as many as this fold has of X. scikit-learn cuts every "
            "fit parameter that is as long as X, so rows of the pool are probably missing here. Pass a tuple "
            "of one, X_unlabelled=(X_unlabelled,), or stack the rows: search.fit(*pool(X_labelled, "
            "y_labelled, X_unlabelled)).",
            WorkflowWarning,
            stacklevel=3,
        )


def warn_if_passed_by(estimator: Any) -> bool:
    """Warn, and return True, where a Pipeline hands its last step a pool that earlier steps never saw."""
    inside = [estimator]  # what is being fitted, from the estimator outwards
    for module, frame in _callers():
        outer = frame.f_locals.get("self")
        if outer is None or any(outer is one for one in inside):
            continue
        steps = outer.steps if module in _PIPELINES and hasattr(outer, "steps") else None
        if steps is not None and any(steps[-1][1] is one for one in inside):
            earlier = [name for name, step in steps[:-1] if step is not None and step != "passthrough"]
            if earlier and "X_unlabelled" not in (getattr(outer, "transform_input", None) or ()):
                _warn_passed_by(earlier)
                return True
        inside.append(outer)
    return False


def _warn_passed_by(earlier: list[str]) -> None:
    warnings.warn(
        f"X_unlabelled passes by {', '.join(map(repr, earlier))} of the Pipeline: X was transformed there, "
        "the pool was not. Stack the rows: pipe.fit(*pool(X_labelled, y_labelled, X_unlabelled)). Or, with "
        'metadata routing, write Pipeline(..., transform_input=["X_unlabelled"]).',
        WorkflowWarning,
        stacklevel=4,
    )


def warn_about_score(
    y: Any, known: NDArray[Any], *, missing_label: Any = "auto", has_seen_rows: bool = False
) -> None:
    """Warn where a validation's folds cannot judge discovery, or take unlabelled rows from training.

    Parameters
    ----------
    y : array-like
        What score was given.
    known : ndarray
        Classes with labels in fit.
    missing_label
        What marks an unlabelled row in y.
    has_seen_rows : bool
        Whether the estimator was fitted to these rows too, without labels.
    """
    validation = [frame for module, frame in _callers() if module == _VALIDATION]
    if not validation or any(frame.f_locals.get("y_train") is y for frame in validation):
        return
    has_label, truth = drop_unlabelled(y, missing_label, known=known)
    is_known = np.isin(truth, known)
    n_lost = int((~has_label).sum())
    if n_lost and not has_seen_rows:
        message = (
            f"{n_lost} unlabelled rows are in a test fold: training went without them, and they cannot be "
            "scored. Pass cv=KeepUnlabelled(5), or cv=ClassHoldoutSplit(5) with Transductive(estimator), all "
            "from pnp_gcd.model_selection."
        )
        warnings.warn(message, WorkflowWarning, stacklevel=3)
    if len(known) and is_known.all():
        message = (
            "All scored rows belong to known classes: the score says how well these are recognised, and a "
            "setting that finds no new class can win. To judge discovery, wrap the estimator in Transductive "
            "and pass cv=ClassHoldoutSplit(), both from pnp_gcd.model_selection."
        )
        warnings.warn(message, WorkflowWarning, stacklevel=3)
    elif not is_known.all() and not has_seen_rows:
        message = (
            "Scored rows belong to classes that had no label in training, and the estimator has not seen "
            "these rows: a class can be discovered only in rows that are seen. Wrap the estimator in "
            "pnp_gcd.model_selection.Transductive."
        )
        warnings.warn(message, WorkflowWarning, stacklevel=3)
