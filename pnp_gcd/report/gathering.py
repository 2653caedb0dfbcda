"""A fitted model and rows to all that a page tells of them, as plain data.

Knows the public face of a fitted estimator: no page, no file, no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pnp_gcd.projection import project_rows
from pnp_gcd.report.choosing import choose_colours, choose_doubtful, choose_edges, choose_middle
from pnp_gcd.report.describing import Trait, describe_columns, describe_texts
from pnp_gcd.report.items import Items
from pnp_gcd.report.judging import Verdict, judge

__all__ = ["ClassFinding", "Findings", "NearClass", "RowFindings", "gather_findings"]

# Below this the model itself thinks that a row's class is more likely wrong than right.
UNSURE_BELOW = 0.5
# As in predict(X, reject_below=...): farther from every class than 99 in 100 rows of the fit.
FAR_BELOW = 0.01
# Two classes of which this part of the rows could as well be in the other may be one.
SAME_FROM = 0.1
_N_NEAR = 3
# Items of a kind on all cards together, and on one of them: typical ones, and doubtful ones.
_N_SHOWN = 600
_MOST_TYPICAL = {"images": 8}
_FEW = 4


@dataclass(frozen=True)
class RowFindings:
    """What the model says of each row; -1 and NaN for images that were skipped.

    Attributes
    ----------
    places : ndarray of shape (n_rows, 2)
    codes, seconds : ndarray of shape (n_rows,), int64
        The class of a row, given or else the likeliest, and the likeliest other one, as places in
        ``classes_``; -1 for none.
    probability, second_probability, typicality : ndarray of shape (n_rows,)
    is_given : ndarray of shape (n_rows,), bool
        Rows that had a label.
    """

    places: NDArray[np.float32]
    codes: NDArray[np.int64]
    seconds: NDArray[np.int64]
    probability: NDArray[np.float64]
    second_probability: NDArray[np.float64]
    typicality: NDArray[np.float64]
    is_given: NDArray[np.bool_]

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Rows that have a class."""
        return self.codes >= 0

    @property
    def is_unsure(self) -> NDArray[np.bool_]:
        """Rows without a label whose class the model itself thinks more likely wrong than right."""
        out: NDArray[np.bool_] = self.is_there & ~self.is_given & (self.probability < UNSURE_BELOW)
        return out

    @property
    def open_codes(self) -> NDArray[np.int64]:
        """Classes of rows that had no label; -1 for those that had one, of which nothing is in doubt."""
        return np.where(self.is_given, -1, self.codes)


@dataclass(frozen=True)
class NearClass:
    """A class beside another.

    Attributes
    ----------
    code : int
    overlap : float
        The part of the rows of both that, by their probabilities, belong to the other one.
    cosine : float
        Between the mean prototypes of the two.
    """

    code: int
    overlap: float
    cosine: float


@dataclass(frozen=True)
class ClassFinding:
    """One class; rows and classes are numbers, traits are texts."""

    label: Any
    is_known: bool
    is_confirmed: bool
    size: int
    n_unsure: int
    confidence: float
    colour: int
    typical: tuple[int, ...]
    doubtful: tuple[int, ...]
    near: tuple[NearClass, ...]
    traits: tuple[Trait, ...]


@dataclass(frozen=True)
class Findings:
    """All that a page tells.

    Attributes
    ----------
    rows : RowFindings
    classes : tuple of ClassFinding
        In the order of ``classes_``.
    doubtful : tuple of int
        Rows worth a label next, the most useful first.
    interval : tuple of int
        Lowest and highest number of classes that the evidence allows.
    n_asked : int or None
        The number of classes that was asked for; None if it was estimated.
    history, calibration : tuple of dict
    verdict : Verdict or None
    """

    rows: RowFindings
    classes: tuple[ClassFinding, ...]
    doubtful: tuple[int, ...]
    interval: tuple[int, int]
    n_asked: int | None
    history: tuple[dict[str, Any], ...]
    calibration: tuple[dict[str, Any], ...]
    verdict: Verdict | None


def check_model(model: Any) -> None:
    """Refuse what is no fitted discoverer."""
    if not hasattr(model, "inspect"):
        advice = "Pass the fitted PNPDiscoverer"
        if hasattr(model, "steps"):
            advice = (
                "Pass its last step, pipe[-1], and the rows as that step sees them, pipe[:-1].transform(X)"
            )
        raise TypeError(f"model is a {type(model).__name__}, which has no inspect(X). {advice}.")
    check_is_fitted(model)


def gather_findings(
    model: Any,
    inspection: Any,
    items: Items,
    *,
    truth: Any = None,
    given: NDArray[np.int64] | None = None,
    random_state: Any = 0,
) -> Findings:
    """Draw together what a person wants to see of rows that the model was asked about once.

    Parameters
    ----------
    model : fitted PNPDiscoverer
    inspection : Inspection
        What ``model.inspect(X)`` says.
    items : Items
    truth : array-like of shape (n_rows,) or None
    given : ndarray of shape (n_rows,) or None
        Places in ``classes_`` of the classes that rows were given; -1 for rows without a label.
    random_state : int, RandomState or None
        Of the map.

    Returns
    -------
    Findings
    """
    features = np.asarray(inspection.features)
    probabilities = np.asarray(inspection.probabilities)
    rows = _gather_rows(inspection, given, random_state)
    verdict = None if truth is None else judge(model, rows.codes, truth, is_given=rows.is_given)
    interval = tuple(int(bound) for bound in model.n_clusters_interval_)
    n_asked = getattr(model, "n_clusters", None)
    return Findings(
        rows=rows,
        classes=_gather_classes(model, rows, features, probabilities, items),
        doubtful=choose_doubtful(rows.open_codes, rows.probability, rows.second_probability, features),
        interval=(interval[0], interval[-1]),
        n_asked=None if n_asked is None else int(n_asked),
        history=tuple(map(dict, model.history_)),
        calibration=tuple(map(dict, model.calibration_)),
        verdict=verdict,
    )


def _gather_rows(inspection: Any, given: NDArray[np.int64] | None, random_state: Any) -> RowFindings:
    probabilities = np.asarray(inspection.probabilities)
    is_there = np.isfinite(probabilities).all(axis=1) & np.isfinite(inspection.features).all(axis=1)
    filled = np.where(is_there[:, None], probabilities, 0.0)
    at = np.arange(len(filled))
    codes = filled.argmax(axis=1)
    is_given = np.zeros(len(filled), dtype=bool) if given is None else is_there & (given >= 0)
    if given is not None:
        codes = np.where(is_given, given, codes)
    probability = filled[at, codes]
    rest = filled.copy()
    rest[at, codes] = -1.0
    seconds = rest.argmax(axis=1)
    has_second = is_there & (filled.shape[1] > 1)
    return RowFindings(
        places=project_rows(inspection.features, random_state=random_state),
        codes=np.where(is_there, codes, -1),
        seconds=np.where(has_second, seconds, -1),
        probability=np.where(is_there, probability, np.nan),
        second_probability=np.where(has_second, rest[at, seconds], np.where(is_there, 0.0, np.nan)),
        typicality=np.where(is_there, inspection.typicality, np.nan),
        is_given=is_given,
    )


def _gather_classes(
    model: Any,
    rows: RowFindings,
    features: NDArray[np.float32],
    probabilities: NDArray[np.float64],
    items: Items,
) -> tuple[ClassFinding, ...]:
    labels = model.classes_.tolist()
    n_classes = len(labels)
    known, confirmed = set(model.known_classes_.tolist()), _confirmed(model)
    n_typical = min(max(_N_SHOWN // n_classes, _FEW), _MOST_TYPICAL.get(items.kind, _FEW))
    sizes = np.bincount(rows.codes[rows.is_there], minlength=n_classes)
    unsure = np.bincount(rows.codes[rows.is_unsure], minlength=n_classes)
    middle = choose_middle(rows.codes, features, n_classes, n_typical)
    edges = choose_edges(rows.open_codes, rows.probability - rows.second_probability, n_classes, _FEW)
    near = _find_near(model, rows.codes, probabilities)
    colours = choose_colours(rows.places, rows.codes, n_classes)
    traits = _describe(items, rows.codes, n_classes)
    sums = np.bincount(rows.codes[rows.is_there], rows.probability[rows.is_there], minlength=n_classes)
    return tuple(
        ClassFinding(
            label=label,
            is_known=label in known,
            is_confirmed=label in confirmed,
            size=int(sizes[code]),
            n_unsure=int(unsure[code]),
            confidence=float(sums[code] / sizes[code]) if sizes[code] else float("nan"),
            colour=int(colours[code]),
            typical=middle[code],
            doubtful=tuple(row for row in edges[code] if row not in middle[code]),
            near=near[code],
            traits=tuple(traits[code]),
        )
        for code, label in enumerate(labels)
    )


def _confirmed(model: Any) -> set[Any]:
    """Return labels of classes that a person has named."""
    confirmed = getattr(model, "confirmed_classes_", None)
    return set() if confirmed is None else set(np.asarray(confirmed).tolist())


def _describe(items: Items, codes: NDArray[np.int64], n_classes: int) -> list[list[Trait]]:
    if items.kind == "texts":
        return describe_texts(items.texts, codes, n_classes)
    return describe_columns(items.columns, codes, n_classes)


def _find_near(
    model: Any, codes: NDArray[np.int64], probabilities: NDArray[np.float64]
) -> list[tuple[NearClass, ...]]:
    """Return the nearest other classes of each: by rows they could exchange, then by direction."""
    n_classes = len(model.classes_)
    is_there = codes >= 0
    given = np.zeros((n_classes, n_classes))
    np.add.at(given, codes[is_there], probabilities[is_there])
    sizes = np.bincount(codes[is_there], minlength=n_classes)
    overlap = (given + given.T) / np.maximum(sizes[:, None] + sizes, 1)
    cosine = _class_cosines(model)
    found = []
    for code in range(n_classes):
        others = np.delete(np.arange(n_classes), code)
        order = others[np.lexsort((-cosine[code, others], -overlap[code, others].round(3)))][:_N_NEAR]
        found.append(tuple(NearClass(int(o), float(overlap[code, o]), float(cosine[code, o])) for o in order))
    return found


def _class_cosines(model: Any) -> NDArray[np.float64]:
    """Return cosines (n_classes, n_classes) between mean prototypes."""
    place = {label: code for code, label in enumerate(model.classes_.tolist())}
    means = np.zeros((len(place), model.prototypes_.shape[1]))
    np.add.at(means, [place[label] for label in model.prototype_labels_.tolist()], model.prototypes_)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means /= np.where(lengths > 0, lengths, 1.0)
    out: NDArray[np.float64] = means @ means.T
    return out
