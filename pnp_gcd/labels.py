"""Read labels with gaps, and name the classes that have none yet.

Knows labels only: no rows, no torch, no estimator. pandas and polars are recognised, never imported.
"""

import math
import warnings
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pnp_gcd.exceptions import LabelWarning

__all__ = [
    "EncodedLabels",
    "check_missing_label",
    "choose_marker",
    "concatenate_unchanged",
    "drop_unlabelled",
    "encode_labels",
    "find_distinct",
    "is_marker",
    "join_classes",
    "mark_rejected",
    "name_novel_classes",
]

_LARGEST_INT = int(np.iinfo(np.int64).max)
_LARGEST_EXACT_FLOAT = 2**53  # above it, adding 1 to a float64 may change nothing


class EncodedLabels(NamedTuple):
    """Labels as integers.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,), int64
        Position of each row's label in ``classes``; -1 for an unlabelled row.
    classes : ndarray of shape (n_classes,)
        The distinct labels as given, sorted.

    """

    codes: NDArray[np.int64]
    classes: NDArray[Any]

    def with_unlabelled(self, n_rows: int) -> NDArray[np.int64]:
        """Return the codes, and -1 for further unlabelled rows up to ``n_rows`` in all."""
        return np.concatenate([self.codes, np.full(n_rows - len(self.codes), -1)])


def encode_labels(y: Any, missing_label: Any = "auto", *, name: str = "y") -> EncodedLabels:
    """Turn labels with gaps into codes and sorted classes.

    Labels are integers, integral floats, booleans or strings. Object arrays (and pandas or polars series
    with missing entries) of integers, floats or booleans give classes of the plain NumPy type; strings keep
    their dtype.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        List, array, or pandas or polars series. A column of shape (n_rows, 1) is ravelled with scikit-learn's
        ``DataConversionWarning``.
    missing_label : "auto", None, NaN, number, bool or str, default="auto"
        What marks an unlabelled row. "auto" takes -1 and "-1", but reads a y of no other values than -1 and 1
        as two classes, with a ``LabelWarning``. Anything else means that value alone. None, NaN and
        ``pandas.NA`` mean unlabelled in every case, since they cannot be classes.
    name : str, default="y"
        What messages call ``y``.

    Returns
    -------
    EncodedLabels
        ``codes`` and ``classes``; ``classes[codes[i]]`` is row i's label where ``codes[i] >= 0``.

    """
    check_missing_label(missing_label)
    values, inverse = find_distinct(y, name)
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    is_label = ~_find_markers(items, missing_label, name)
    labels = _as_typed_labels(values, items, is_label, name)
    order = np.argsort(labels, kind="stable")
    lookup = np.full(len(values) + 1, -1, dtype=np.int64)  # the last entry serves inverse == -1
    lookup[np.flatnonzero(is_label)[order]] = np.arange(len(labels))
    return EncodedLabels(lookup[inverse], labels[order])


def drop_unlabelled(
    y: Any, missing_label: Any = "auto", *, known: NDArray[Any] | None = None
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return which rows have a label, and their labels; raises where none has.

    With ``known`` classes, of which none is −1, a −1 is a marker even beside no other label than 1.
    """
    is_auto = isinstance(missing_label, str) and missing_label == "auto"
    if is_auto and known is not None and known.dtype.kind in "iuf" and not (known == -1).any():
        missing_label = -1
    codes, classes = encode_labels(y, missing_label)
    has_label = codes >= 0
    if not has_label.any():
        raise ValueError("y holds no label to score against. Pass rows of which some are labelled.")
    return has_label, classes[codes[has_label]]


def check_missing_label(missing_label: Any) -> None:
    """Refuse what cannot be one label's value."""
    scalar = (str, bool, int, float, np.bool_, np.integer, np.floating)
    if not (isinstance(missing_label, scalar) or _is_missing(missing_label)):
        raise TypeError(
            f"missing_label={missing_label!r} must be 'auto', None, NaN, a number, a bool or a str, "
            f"got {type(missing_label).__name__}. Pass the one value that marks an unlabelled row."
        )


def find_distinct(y: Any, name: str = "y") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct values of ``y`` in any order, and each row's position in them (-1: missing).

    Every rule about labels is then applied to the few distinct values instead of the many rows.
    """
    if hasattr(y, "factorize"):  # pandas: keeps integers integers beside NA, which to_numpy does not
        inverse, uniques = y.factorize()
        return np.asarray(uniques), np.asarray(inverse, dtype=np.int64)
    values = _as_label_array(y, name)
    if values.ndim != 1:
        values = column_or_1d(values, warn=True)
    if values.dtype.kind not in "OT":
        uniques, inverse = np.unique(values, return_inverse=True)
        return uniques, inverse
    keys = values.tolist()
    has_bool = not {bool, np.bool_}.isdisjoint(map(type, keys))
    if has_bool:  # a dict would take True for 1
        keys = [(isinstance(value, (bool, np.bool_)), value) for value in keys]
    try:
        position = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    except TypeError as error:
        raise TypeError(f"{name} must hold one number or string per row, but {error}.") from error
    uniques = _object_array([key[1] if has_bool else key for key in position])
    return uniques, np.fromiter(map(position.__getitem__, keys), np.int64, len(keys))


def _as_label_array(y: Any, name: str) -> NDArray[Any]:
    """Make ``y`` an array in which nothing has turned into text or lost digits."""
    if np.ma.isMaskedArray(y):
        values = np.ma.getdata(y).astype(object)
        values[np.ma.getmaskarray(y)] = None
        return values
    if isinstance(y, np.ndarray):
        return y
    if hasattr(y, "to_list"):  # polars: its to_numpy makes floats of integers beside null
        return _object_array(y.to_list())
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} must hold one label per row in a 1d array-like: {error}") from error
    if values.dtype.kind not in "Uf":
        return values
    originals = np.asarray(y, dtype=object)
    if values.dtype.kind == "U":
        # NumPy also cuts zeros off the end of a text: two labels would become one.
        is_faithful = all(isinstance(value, str) and value[-1:] != "\0" for value in originals.flat)
    else:  # NumPy makes floats of large integers
        is_faithful = any(isinstance(value, float) for value in originals.flat)
    return values if is_faithful else originals


def _object_array(items: list[Any]) -> NDArray[Any]:
    """One object per element, whatever the objects are."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_missing(value: Any) -> bool:
    """Whether ``value`` is None, NaN, NaT or pandas.NA."""
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _is_same_label(value: Any, marker: Any) -> bool:
    """Equality under which 0 is not False and -1 is not "-1"."""
    for kind in (str, (bool, np.bool_)):
        if isinstance(value, kind) or isinstance(marker, kind):
            return isinstance(value, kind) and isinstance(marker, kind) and bool(value == marker)
    return bool(value == marker)


def is_marker(value: Any, missing_label: Any = "auto") -> bool:
    """Whether ``value`` would be read as the mark of an unlabelled row, so that it can be no class's name."""
    is_auto = isinstance(missing_label, str) and missing_label == "auto"
    markers = (-1, "-1") if is_auto else (missing_label,)
    return _is_missing(value) or any(_is_same_label(value, marker) for marker in markers)


def _find_markers(items: list[Any], missing_label: Any, name: str) -> NDArray[np.bool_]:
    """Which of the distinct values mean "unlabelled"."""
    is_marker = np.array([_is_missing(item) for item in items], dtype=bool)
    if _is_missing(missing_label):
        return is_marker
    markers: tuple[Any, ...] = (missing_label,)
    if isinstance(missing_label, str) and missing_label == "auto":
        present = [item for item, missing in zip(items, is_marker, strict=True) if not missing]
        if _is_plus_minus_one(present):
            warnings.warn(
                f"{name} holds no other values than -1 and 1: both are read as classes. If -1 marks the "
                "unlabelled rows here, pass missing_label=-1; if both are classes, pass missing_label=None "
                "to silence this warning.",
                LabelWarning,
                stacklevel=3,
            )
            return is_marker
        markers = (-1, "-1")
    for index in np.flatnonzero(~is_marker):
        is_marker[index] = any(_is_same_label(items[index], marker) for marker in markers)
    return is_marker


def _is_plus_minus_one(items: list[Any]) -> bool:
    """Whether the distinct values are exactly the numbers -1 and 1."""
    return len(items) == 2 and all(any(_is_same_label(item, one) for item in items) for one in (-1, 1))


def _as_typed_labels(
    values: NDArray[Any], items: list[Any], is_label: NDArray[np.bool_], name: str
) -> NDArray[Any]:
    """Pick the distinct values that are labels and give them a plain type."""
    labels = values[is_label]
    if labels.dtype.kind in "OT":
        kept = [item for item, keep in zip(items, is_label, strict=True) if keep]
        labels = _infer_labels(kept, any(isinstance(item, str) for item in items), name)
    if labels.dtype.kind not in "biufUO":
        raise TypeError(
            f"{name} has dtype {labels.dtype}, but labels must be integers, integral floats, booleans or "
            f"strings. Turn them into strings first, for example {name}.astype(str)."
        )
    if labels.dtype.kind == "f":
        if np.isinf(labels).any():
            raise ValueError(
                f"Input {name} contains infinity or a value too large for {labels.dtype!r}. "
                "Mark unlabelled rows with -1 or NaN."
            )
        if (labels != np.floor(labels)).any():
            check_classification_targets(labels)  # raises scikit-learn's "Unknown label type: continuous"
    return labels


def _infer_labels(items: list[Any], has_text: bool, name: str) -> NDArray[Any]:
    """Array of Python objects' common type; object for strings, and for booleans beside integers."""
    if not items:
        return np.empty(0, dtype=str if has_text else np.int64)
    kinds = list(dict.fromkeys(map(type, items)))
    if all(issubclass(kind, str) for kind in kinds):
        return _object_array(items)
    if all(issubclass(kind, int) for kind in kinds) and len(set(items)) == len(items):  # not True beside 1
        is_mixed = bool in kinds and len(kinds) > 1
        return _object_array(items) if is_mixed else _plain_integers(items)
    if bool not in kinds and all(issubclass(kind, (int, float)) for kind in kinds):
        return np.array(items, dtype=np.float64)
    example = " and ".join(repr(next(item for item in items if type(item) is kind)) for kind in kinds)
    raise TypeError(
        f"{name} holds {example}: labels must be all numbers, all booleans or all strings, so that they can "
        f"be sorted. Turn them into strings first, for example [str(label) for label in {name}]."
    )


def _plain_integers(items: list[Any]) -> NDArray[Any]:
    """Integers or booleans as an array: bool, int64, uint64, or object if too large for these."""
    if all(isinstance(item, bool) for item in items):
        return np.array(items)
    if max(items) <= _LARGEST_INT and min(items) >= -_LARGEST_INT - 1:
        return np.array(items, dtype=np.int64)
    if min(items) >= 0 and max(items) <= np.iinfo(np.uint64).max:
        return np.array(items, dtype=np.uint64)
    return _object_array(items)


# --- class names ------------------------------------------------------------------------------------------


def name_novel_classes(
    known_classes: ArrayLike, n_novel: int, *, missing_label: Any = "auto"
) -> NDArray[Any]:
    """Name ``n_novel`` classes in the manner of the known ones, never reusing a name.

    Parameters
    ----------
    known_classes : array-like of shape (n_known,)
        Classes as ``encode_labels`` gives them.
    n_novel : int
        How many names are wanted.
    missing_label : default="auto"
        The marker of unlabelled rows, as in ``encode_labels``; it never becomes a name.

    Returns
    -------
    ndarray of shape (n_novel,)
        Integers (int64) continue after the largest known one, floats after its floor, in both cases at 0 or
        above, since -1 means unlabelled; where no room is left above, the smallest free integers from 0.
        Strings are "novel_0", "novel_1", …. Beside booleans stand the integers 2, 3, … in an object array.
        Without known classes: 0, 1, …, or strings if the (empty) array is one of strings.

    """
    if n_novel < 0:
        raise ValueError(f"n_novel={n_novel} must be 0 or more.")
    check_missing_label(missing_label)
    known = np.asarray(known_classes)
    items = known.tolist()
    taken = {*items, missing_label}
    if known.dtype.kind == "U" or (items and all(isinstance(item, str) for item in items)):
        texts = (f"novel_{index}" for index in count())
        names = list(islice((text for text in texts if text not in taken), n_novel))
        return np.array(names, dtype=object if known.dtype == object else str)
    if not all(isinstance(item, (int, float)) for item in items):
        raise TypeError(
            f"known_classes of dtype {known.dtype} must be numbers, booleans or strings, so that novel "
            "classes can be named like them. Turn the labels into strings first."
        )
    start = max(0, *(math.floor(item) + 1 for item in items)) if items else 0
    if any(isinstance(item, bool) for item in items):
        start = max(2, start)
    is_float = known.dtype.kind == "f" and bool(items)
    numbers = list(islice((number for number in count(start) if number not in taken), n_novel))
    if numbers and numbers[-1] > (_LARGEST_EXACT_FLOAT if is_float else _LARGEST_INT):
        numbers = list(islice((number for number in count() if number not in taken), n_novel))
    if items and known.dtype.kind in "bO":
        return _object_array(numbers)
    return np.array(numbers, dtype=np.float64 if is_float else np.int64)


def join_classes(known_classes: ArrayLike, novel_names: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Merge known and novel classes into one sorted array that changes none of them.

    Parameters
    ----------
    known_classes : array-like of shape (n_known,)
        Classes as ``encode_labels`` gives them.
    novel_names : array-like of shape (n_novel,)
        Names as ``name_novel_classes`` gives them.

    Returns
    -------
    classes : ndarray of shape (n_known + n_novel,)
        All classes, sorted, of a dtype that holds both kinds (object for booleans beside integers).
    order : ndarray of shape (n_known + n_novel,), int64
        Position in ``classes`` of each of ``[*known_classes, *novel_names]``.

    """
    known, novel = np.asarray(known_classes), np.asarray(novel_names)
    joined = concatenate_unchanged(known, novel)
    try:
        sorting = np.argsort(joined, kind="stable")
    except TypeError as error:
        raise TypeError(f"known_classes and novel_names cannot be sorted together: {error}.") from error
    classes = joined[sorting]
    if len(classes) > 1 and bool(np.any(classes[1:] == classes[:-1])):
        twice = classes[1:][classes[1:] == classes[:-1]][0]
        raise ValueError(f"The class {twice!r} occurs twice in known_classes and novel_names.")
    order = np.empty(len(sorting), dtype=np.int64)
    order[sorting] = np.arange(len(sorting))
    return classes, order


def concatenate_unchanged(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Concatenate in a dtype that alters no value; an empty array has no say in it."""
    if not len(first) or not len(second):
        return first.copy() if len(first) or not len(second) else second.copy()
    kinds = {"i" if array.dtype.kind in "iu" else array.dtype.kind for array in (first, second)}
    dtype = np.dtype(object)
    if len(kinds) == 1 or kinds == {"i", "f"}:
        dtype = np.result_type(first, second)
    if kinds == {"i"} and dtype.kind == "f":  # uint64 beside a signed type: NumPy would take float64
        return _plain_integers([*first.tolist(), *second.tolist()])
    return np.concatenate([first.astype(dtype), second.astype(dtype)])


def choose_marker(classes: NDArray[Any], missing_label: Any) -> NDArray[Any]:
    """One-element array holding a marker that no class can be mistaken for."""
    none = np.array([None], dtype=object)
    kind = classes.dtype.kind
    if not (isinstance(missing_label, str) and missing_label == "auto"):
        if _is_missing(missing_label):
            return np.array([np.nan]) if kind == "f" else none
        return np.array([missing_label], dtype=object if kind == "O" else None)
    if kind == "U" or (kind == "O" and all(isinstance(item, str) for item in classes)):
        return np.array(["-1"], dtype=classes.dtype if kind == "O" else None)
    if kind in "bO":
        return none
    if len(classes) and (classes.max() > _LARGEST_INT or set(classes.tolist()) in ({1}, {-1, 1})):
        return np.array([np.nan]) if kind == "f" else none
    return np.array([-1], dtype=np.int8)


def mark_rejected(labels: NDArray[Any], is_rejected: NDArray[np.bool_], marker: NDArray[Any]) -> NDArray[Any]:
    """Return ``labels`` with the one ``marker`` where ``is_rejected``, in a dtype that holds both.

    Examples
    --------
    >>> mark_rejected(np.array(["cat", "dog"]), np.array([False, True]), np.array(["-1"])).tolist()
    ['cat', '-1']

    """
    both = concatenate_unchanged(labels, marker)
    out: NDArray[Any] = np.where(is_rejected, both[-1:], both[:-1])
    return out
