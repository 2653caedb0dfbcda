"""A person's word on the classes that were found: other names, one class of several, labels for a next fit.

A change is planned in full before anything is written, so that an error leaves the model as it was. The
classes of the fit stay as they are underneath, and a merged class is all of its parts. Knows a fitted model's
classes and labels: no rows, no torch.
"""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pnp_gcd.labels import (
    choose_marker,
    concatenate_unchanged,
    encode_labels,
    find_distinct,
    is_marker,
    join_classes,
    mark_rejected,
)

__all__ = ["confirm_rows", "list_confirmed", "merge_classes", "rename_classes"]

_N_LISTED = 10
_ROW_LABELS = ("labels_", "unlabelled_labels_")


@dataclass(frozen=True)
class _Plan:
    """The classes there will be, in any order.

    Attributes
    ----------
    homes : ndarray of shape (n_before,)
        Which of them each class, known then new, goes to.
    names : list
    is_known, is_confirmed : ndarray of shape (n_after,), bool
    """

    homes: NDArray[np.int64]
    names: list[Any]
    is_known: NDArray[np.bool_]
    is_confirmed: NDArray[np.bool_]


def rename_classes(model: Any, mapping: Mapping[Any, Any]) -> None:
    """Give classes other names. See :meth:`pnp_gcd.PNPDiscoverer.rename_classes`."""
    if not isinstance(mapping, Mapping):
        raise TypeError(f'mapping={mapping!r:.60} must be a dict of names: {{"novel_3": "orchid"}}.')
    plan = _plan_nothing(model)
    names, is_confirmed = list(plan.names), plan.is_confirmed.copy()
    finder = _Finder(plan.names)
    for old, new in mapping.items():
        place = finder.find(old)
        names[place] = _check_name(new, model)
        is_confirmed[place] |= not _is_respelt(plan.names[place], names[place])
    _apply(model, replace(plan, names=names, is_confirmed=is_confirmed))


def merge_classes(model: Any, groups: Iterable[Iterable[Any]], names: Sequence[Any] | None = None) -> None:
    """Make one class of several. See :meth:`pnp_gcd.PNPDiscoverer.merge_classes`."""
    plan = _plan_nothing(model)
    places = _find_groups(_Finder(plan.names), groups)
    wanted = [None] * len(places) if names is None else list(names)
    if isinstance(names, str) or len(wanted) != len(places):
        raise ValueError(f"names={names!r:.60} must be a list of {len(places)}: one for each group, or None.")
    is_gone = np.zeros(len(plan.names), dtype=bool)
    homes, given = np.arange(len(plan.names)), list(plan.names)
    is_known, is_confirmed = plan.is_known.copy(), plan.is_confirmed.copy()
    for group, name in zip(places, wanted, strict=True):
        keeper = _choose_keeper(plan, group, is_named=name is not None)
        homes[group] = keeper
        is_gone[[place for place in group if place != keeper]] = True
        is_known[keeper] = plan.is_known[group].any()
        is_confirmed[keeper] = True
        given[keeper] = given[keeper] if name is None else _check_name(name, model)
    left = np.flatnonzero(~is_gone)
    _apply(
        model,
        _Plan(
            np.searchsorted(left, homes), [given[place] for place in left], is_known[left], is_confirmed[left]
        ),
    )


def list_confirmed(model: Any) -> NDArray[Any]:
    """Return the known classes and those that a person has named or merged, sorted."""
    return join_classes(model.known_classes_, model.novel_classes_[model._is_confirmed])[0]


def confirm_rows(
    model: Any, labels: NDArray[Any], probabilities: NDArray[np.float64], min_probability: float
) -> NDArray[Any]:
    """Return predicted labels, but the missing label where the class is not confirmed, or not sure enough.

    Parameters
    ----------
    model : PNPDiscoverer
    labels : ndarray of shape (n_rows,)
        As predicted; where ``probabilities`` are NaN, anything.
    probabilities : ndarray of shape (n_rows, n_clusters_)
    min_probability : float
    """
    if (
        isinstance(min_probability, bool)
        or not isinstance(min_probability, numbers.Real)
        or not 0.0 <= float(min_probability) <= 1.0
    ):
        raise ValueError(f"min_probability={min_probability!r} must be a number from 0 to 1.")
    is_confirmed = np.concatenate([np.ones(len(model.known_classes_), dtype=bool), model._is_confirmed])
    in_order = np.empty_like(is_confirmed)
    in_order[model._position] = is_confirmed
    top = probabilities.max(axis=1)
    is_kept = in_order[probabilities.argmax(axis=1)] & (top >= float(min_probability))  # NaN is not
    return mark_rejected(labels, ~is_kept, choose_marker(model.classes_, model.missing_label))


# --- finding classes ---------------------------------------------------------------------------------------


def _plain(name: Any) -> Any:
    return name.item() if isinstance(name, np.generic) else name


def _key(name: Any) -> tuple[bool, Any]:
    """Return what a class is looked up by: True is not 1."""
    name = _plain(name)
    return isinstance(name, bool), name


def _is_respelt(old: Any, new: Any) -> bool:
    """Tell whether a name is only of another kind, as "3" is for 3: that is nobody's word on the class."""
    return type(old) is not type(new) and str(old) == str(new)


class _Finder:
    """Finds classes by their names.

    Parameters
    ----------
    names : list
    """

    def __init__(self, names: list[Any]) -> None:
        self.names = names
        self.places = {_key(name): place for place, name in enumerate(names)}

    def find(self, name: Any) -> int:
        """Return the place of a class; names that look alike are told if there is none."""
        try:
            return self.places[_key(name)]
        except (KeyError, TypeError):  # a list cannot be looked up
            pass
        near = difflib.get_close_matches(str(name), [str(known) for known in self.names], n=3)
        close = [repr(known) for known in self.names if str(known) in near]
        listed = ", ".join(map(repr, self.names[:_N_LISTED]))
        more = f" and {len(self.names) - _N_LISTED} more" if len(self.names) > _N_LISTED else ""
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Classes are {listed}{more}."
        raise ValueError(f"{name!r:.60} is not a class of this model. {hint}")


def _find_groups(finder: _Finder, groups: Iterable[Iterable[Any]]) -> list[list[int]]:
    """Return the places of each group's classes; no class may be in two."""
    found: list[list[int]] = []
    used: set[int] = set()
    for group in _as_list(groups, "groups"):
        places = [finder.find(name) for name in _as_list(group, "a group")]
        for n, place in enumerate(places):
            if place in used or place in places[:n]:
                raise ValueError(f"{finder.names[place]!r} is named twice in groups. Name each class once.")
        if len(places) < 2:
            raise ValueError(f"The group {group!r:.60} must name two classes or more. Rename a single one.")
        used.update(places)
        found.append(places)
    return found


def _as_list(values: Any, what: str) -> list[Any]:
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise TypeError(
            f'{what}={values!r:.60}: groups must be a list of lists of classes: [["novel_3", "novel_7"]].'
        )
    return list(values)


def _choose_keeper(plan: _Plan, group: list[int], *, is_named: bool) -> int:
    """Return the class whose name stays: the known one, else one that a person has named, else the first."""
    known = [place for place in group if plan.is_known[place]]
    if len(known) > 1 and not is_named:
        both = " and ".join(repr(plan.names[place]) for place in known)
        raise ValueError(f"{both} are known classes. Say what they shall be called together, by names=[…].")
    named = [place for place in group if plan.is_confirmed[place]]
    return (known or named or group)[0]


def _check_name(name: Any, model: Any) -> Any:
    """Return a new name as a plain value, a number of the kind that classes have."""
    name, classes = _plain(name), model.classes_
    if is_marker(name, model.missing_label):
        raise ValueError(f"{name!r} marks unlabelled rows and cannot be a class's name. Choose another name.")
    is_strange = isinstance(name, bool) and not any(isinstance(item, bool) for item in classes.tolist())
    if is_strange or not isinstance(name, str | int | float):
        raise TypeError(
            f"{name!r:.60} cannot be a class's name here. Pass one of the kind that classes have."
        )
    if isinstance(name, float) and classes.dtype.kind in "iu" and name.is_integer():
        return int(name)  # else all classes would become floats
    return float(name) if classes.dtype.kind == "f" and not isinstance(name, str) else name


# --- changing them -----------------------------------------------------------------------------------------


def _plan_nothing(model: Any) -> _Plan:
    """Return the plan that leaves all as it is."""
    names = [*model.known_classes_.tolist(), *model.novel_classes_.tolist()]
    n_known = len(model.known_classes_)
    is_known = np.arange(len(names)) < n_known
    is_confirmed = np.concatenate([np.ones(n_known, dtype=bool), model._is_confirmed])
    return _Plan(np.arange(len(names)), names, is_known, is_confirmed)


def _check_names(before: list[Any], names: list[Any]) -> None:
    """Refuse a name that two classes would have, and strings beside numbers."""
    places: dict[tuple[bool, Any], int] = {}
    for place, name in enumerate(names):
        if places.setdefault(_key(name), place) != place:
            raise ValueError(
                f"Two classes would be called {name!r}. Choose another name, or make them one class by "
                f"merge_classes([[{name!r}, …]])."
            )
    texts = [name for name in names if isinstance(name, str)]
    if texts and len(texts) < len(names):
        other = next(name for name in names if not isinstance(name, str))
        way = f"Pass a string: {str(other)!r}."
        if not any(isinstance(name, str) for name in before):
            way = (
                "To have strings, name every class: model.rename_classes({c: str(c) for c in model.classes_} "
                f"| {{…: {texts[0]!r}}})."
            )
        raise ValueError(
            f"Classes cannot be called {texts[0]!r} and {other!r} side by side: names are all strings or all "
            f"numbers, so that they can be sorted. {way}"
        )
    encode_labels(np.array(names, dtype=object), None, name="names")  # what y may hold, and nothing else


def _apply(model: Any, plan: _Plan) -> None:
    """Work out all that follows from a plan, then change the model in one step."""
    before = _plan_nothing(model).names
    _check_names(before, plan.names)
    found = {name: _find_codes(getattr(model, name), before) for name in _ROW_LABELS}
    moved = {name: np.where(codes < 0, -1, plan.homes[codes]) for name, codes in found.items()}
    order = _order_classes(plan, moved["unlabelled_labels_"])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    n_known = int(plan.is_known.sum())
    names = [plan.names[place] for place in order]
    known = _name_array(names[:n_known], model.known_classes_)
    novel = _name_array(names[n_known:], model.novel_classes_)
    classes, position = join_classes(known, novel)
    in_order = classes[position]
    homes = rank[plan.homes][model._homes]
    state: dict[str, Any] = {
        "known_classes_": known,
        "novel_classes_": novel,
        "classes_": classes,
        "n_clusters_": len(classes),
        "n_clusters_interval_": _shift_interval(model, len(classes), n_known),
        "prototype_labels_": in_order[homes[model._labelling.classes]],
        "_position": position,
        "_homes": homes,
        "_is_confirmed": plan.is_confirmed[order][n_known:],
    }
    for name, codes in moved.items():
        rows = in_order[np.where(codes < 0, 0, rank[codes])]
        if (codes < 0).any():  # images that were skipped
            rows = mark_rejected(rows, codes < 0, choose_marker(classes, model.missing_label))
        state[name] = rows
    vars(model).update(state)


def _find_codes(labels: NDArray[Any], names: list[Any]) -> NDArray[np.int64]:
    """Return the place in ``names`` of each row's label, −1 for the missing label."""
    places = {_key(name): place for place, name in enumerate(names)}
    distinct, inverse = find_distinct(labels)
    lookup = np.array([places.get(_key(label), -1) for label in distinct.tolist()], dtype=np.int64)
    return lookup[inverse]


def _order_classes(plan: _Plan, unlabelled: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of classes: known ones sorted by name, then new ones, largest first."""
    known, novel = np.flatnonzero(plan.is_known), np.flatnonzero(~plan.is_known)
    by_name = sorted(known.tolist(), key=lambda place: plan.names[place])
    if len(plan.names) < len(plan.homes):  # some were merged; names alone change no size
        sizes = np.bincount(unlabelled[unlabelled >= 0], minlength=len(plan.names))
        novel = novel[np.argsort(-sizes[novel], kind="stable")]
    return np.array([*by_name, *novel.tolist()], dtype=np.int64)


def _name_array(names: list[Any], before: NDArray[Any]) -> NDArray[Any]:
    """Return names in the dtype of those before, widened where one does not fit."""
    if not names:
        return before[:0].copy()
    if before.dtype == object:
        array = np.empty(len(names), dtype=object)
        array[:] = names
        return array
    fresh = np.array(names)
    if fresh.dtype.kind == before.dtype.kind and before.size:
        return concatenate_unchanged(before[:1], fresh)[1:]
    return fresh


def _shift_interval(model: Any, n_classes: int, n_known: int) -> tuple[int, int]:
    """Return the interval of the number of classes: those that were one are too many at both its ends."""
    low, high = model.n_clusters_interval_
    n_gone = model.n_clusters_ - n_classes
    return min(max(low - n_gone, n_known, 1), n_classes), max(high - n_gone, n_classes)
