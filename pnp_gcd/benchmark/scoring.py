"""Score one run: the answers of a method on the pool and on unseen rows, beside the truth.

Knows labels only. The truth of the pool is read here, after the fit, and nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.datasets import DiscoveryData
from pnp_gcd.matching import match_by_overlap
from pnp_gcd.metrics import named_accuracy, prediction_bias, split_cluster_accuracy

__all__ = ["is_right", "pair_classes", "score_answers"]


def score_answers(
    data: DiscoveryData,
    found: NDArray[Any],
    found_unseen: NDArray[Any],
    *,
    n_clusters: int,
    novelty: NDArray[np.floating] | None = None,
) -> dict[str, float | int | None]:
    """Score the answers of one method.

    Parameters
    ----------
    data : DiscoveryData
        With the truth.
    found : ndarray of shape (n_unlabelled,)
        Classes found in the pool.
    found_unseen : ndarray of shape (n_unseen,)
        Classes predicted for unseen rows.
    n_clusters : int
        How many classes the method found, or was given.
    novelty : ndarray of shape (n_unlabelled,) or None, default=None
        How surely each row of the pool is of a new class.

    Returns
    -------
    dict
        Accuracies and biases from 0 to 1, None where there are no rows to tell. ``unseen_*`` pair classes
        by the rows of the pool, so that a class must mean the same in both.
    """
    truth, known = data.y_unlabelled, data.known_classes
    accuracy = split_cluster_accuracy(truth, found, known)
    unseen = _score_unseen(data, found, found_unseen)
    scores: dict[str, float | int | None] = {
        "all": _finite(accuracy.all),
        "known": _finite(accuracy.known),
        "novel": _finite(accuracy.novel),
        "named": _finite(named_accuracy(truth, found, known).all),
        **{f"unseen_{part}": _finite(value) for part, value in unseen.items()},
        "n_clusters": int(n_clusters),
        "n_true": data.count_classes(),
        "auroc": None if novelty is None else _tell_novel(data, novelty),
    }
    return scores | prediction_bias(truth, found, known)._asdict()


def pair_classes(data: DiscoveryData, found: NDArray[Any]) -> dict[Any, Any]:
    """Pair classes found in the pool with true ones (Hungarian); known names absent there mean themselves.

    Parameters
    ----------
    data : DiscoveryData
    found : ndarray of shape (n_unlabelled,)

    Returns
    -------
    dict
        From the names of classes found to true classes; those left over are missing.
    """
    true_names, true_codes = np.unique(data.y_unlabelled, return_inverse=True)
    found_names, found_codes = np.unique(found, return_inverse=True)
    match = match_by_overlap(true_codes, found_codes, len(true_names), len(found_names))
    names = true_names.tolist()
    pairs = {label: label for label in data.known_classes.tolist() if label not in names}
    matched = zip(found_names.tolist(), match.tolist(), strict=True)
    return pairs | {label: names[code] for label, code in matched if code >= 0}


def is_right(truth: NDArray[Any], found: NDArray[Any], pairs: dict[Any, Any]) -> NDArray[np.bool_]:
    """Tell for each row whether its class found is paired with its true one.

    Parameters
    ----------
    truth, found : ndarray of shape (n_rows,)
    pairs : dict
        As `pair_classes` returns it.

    Returns
    -------
    ndarray of shape (n_rows,), bool
    """
    rows = zip(truth.tolist(), found.tolist(), strict=True)
    return np.array([label in pairs and pairs[label] == true for true, label in rows], dtype=np.bool_)


def _score_unseen(data: DiscoveryData, found: NDArray[Any], found_unseen: NDArray[Any]) -> dict[str, float]:
    right = is_right(data.y_unseen, found_unseen, pair_classes(data, found))
    is_known = np.isin(data.y_unseen, data.known_classes)
    parts = {"all": right, "known": right[is_known], "novel": right[~is_known]}
    return {name: float(part.mean()) if len(part) else float("nan") for name, part in parts.items()}


def _tell_novel(data: DiscoveryData, novelty: NDArray[np.floating]) -> float | None:
    """Return the area under the ROC curve of known rows against novel ones."""
    from sklearn.metrics import roc_auc_score

    is_novel = ~np.isin(data.y_unlabelled, data.known_classes)
    return float(roc_auc_score(is_novel, novelty)) if 0 < is_novel.sum() < len(is_novel) else None


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
