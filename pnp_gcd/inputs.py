"""Read what the caller passes: labels with gaps, rows in several containers, a pool beside them.

Knows arrays, data frames and class names only: no torch, no clustering, no estimator. pandas and polars
are recognised, never imported.
"""

import math
import sys
import warnings
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pnp_gcd.exceptions import FeatureScaleWarning, LabelWarning

__all__ = [
    "EncodedLabels",
    "check_same_scale",
    "encode_labels",
    "join_classes",
    "name_novel_classes",
    "pool",
    "unwrap_pool",
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


# --- labels -----------------------------------------------------------------------------------------------


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
    _check_missing_label(missing_label)
    values, inverse = _distinct(y, name)
    items = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    is_label = ~_find_markers(items, missing_label, name)
    labels = _as_typed_labels(values, items, is_label, name)
    order = np.argsort(labels, kind="stable")
    lookup = np.full(len(values) + 1, -1, dtype=np.int64)  # the last entry serves inverse == -1
    lookup[np.flatnonzero(is_label)[order]] = np.arange(len(labels))
    return EncodedLabels(lookup[inverse], labels[order])


def _check_missing_label(missing_label: Any) -> None:
    """Refuse what cannot be one label's value."""
    scalar = (str, bool, int, float, np.bool_, np.integer, np.floating)
    if not (isinstance(missing_label, scalar) or _is_missing(missing_label)):
        raise TypeError(
            f"missing_label={missing_label!r} must be 'auto', None, NaN, a number, a bool or a str, "
            f"got {type(missing_label).__name__}. Pass the one value that marks an unlabelled row."
        )


def _distinct(y: Any, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
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
        is_faithful = all(isinstance(value, str) for value in originals.flat)
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
    _check_missing_label(missing_label)
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
    joined = _concatenate_unchanged(known, novel)
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


def _concatenate_unchanged(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
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


# --- rows -------------------------------------------------------------------------------------------------


def pool(
    X_labelled: Any, y_labelled: Any, X_unlabelled: Any, *, missing_label: Any = "auto"
) -> tuple[Any, NDArray[Any]]:
    """Stack labelled and unlabelled rows into the ``(X, y)`` that scikit-learn's tools expect.

    The way to pass unlabelled rows through a ``Pipeline`` or a search: ``pipe.fit(*pool(X_labelled,
    y_labelled, X_unlabelled))``. Every step then sees every row.

    Parameters
    ----------
    X_labelled : array-like of shape (n_labelled, n_features) or (n_labelled, n_views, n_features)
        Rows with labels: an array, or a pandas or polars DataFrame.
    y_labelled : array-like of shape (n_labelled,)
        Their labels. Rows already marked as unlabelled stay so.
    X_unlabelled : array-like of shape (n_unlabelled, …)
        Rows without labels, of the same kind; a DataFrame's columns are matched by name.
    missing_label : default="auto"
        What marks an unlabelled row, as in ``PNPDiscoverer(missing_label=…)``. An explicit value is read in
        ``y_labelled`` and written for the unlabelled rows.

    Returns
    -------
    X : ndarray or DataFrame of shape (n_labelled + n_unlabelled, …)
        Labelled rows, then unlabelled ones; of the kind that was given, with the index that was given.
    y : ndarray of shape (n_labelled + n_unlabelled,)
        Labels, and for unlabelled rows -1 (numbers) or "-1" (strings). Where -1 could be taken for a class
        (the only labels are 1, or -1 and 1) and for booleans, the marker is None in an object array, or NaN
        among floats.

    Examples
    --------
    >>> from pnp_gcd.inputs import pool
    >>> X, y = pool([[0.0, 1.0], [1.0, 0.0]], ["cat", "dog"], [[0.5, 0.5]])
    >>> X.shape
    (3, 2)
    >>> y.tolist()
    ['cat', 'dog', '-1']

    """
    X_unlabelled = unwrap_pool(X_unlabelled)
    X = _stack_rows(X_labelled, X_unlabelled)
    codes, classes = encode_labels(y_labelled, missing_label, name="y_labelled")
    n_unlabelled = len(X_unlabelled)
    if len(codes) != len(X) - n_unlabelled:
        raise ValueError(
            f"y_labelled has {len(codes)} labels for the {len(X) - n_unlabelled} rows of X_labelled. "
            "Pass one label per row."
        )
    marker = _choose_marker(classes, missing_label)
    table = _concatenate_unchanged(classes, marker)  # code -1 picks its last entry: the marker
    return X, table[np.concatenate([codes, np.full(n_unlabelled, -1)])]


def _choose_marker(classes: NDArray[Any], missing_label: Any) -> NDArray[Any]:
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


def _stack_rows(X_labelled: Any, X_unlabelled: Any) -> Any:
    """Put the rows of two arrays or two data frames under each other."""
    for name, X in (("X_labelled", X_labelled), ("X_unlabelled", X_unlabelled)):
        if hasattr(X, "toarray"):
            raise TypeError(f"{name} is sparse, but rows must be dense. Use {name}.toarray().")
    frames = _frame_library(X_labelled), _frame_library(X_unlabelled)
    if frames[0] != frames[1]:
        raise TypeError(
            f"X_labelled is a {_describe(X_labelled)} and X_unlabelled a {_describe(X_unlabelled)}. "
            "Pass both as the same kind of container."
        )
    if frames[0] is not None:
        stacked = _stack_frames(X_labelled, X_unlabelled, sys.modules[frames[0]])
    else:
        stacked = _stack_arrays(np.asarray(X_labelled), np.asarray(X_unlabelled))
    if not len(X_unlabelled):
        raise ValueError("X_unlabelled has 0 rows. Pass at least one row, or fit without a pool.")
    return stacked


def _frame_library(X: Any) -> str | None:
    """Name of the library whose DataFrame ``X`` is, if any; that library is then already imported."""
    for library in ("pandas", "polars"):
        module = sys.modules.get(library)
        if module is not None and isinstance(X, module.DataFrame):
            return library
    return None


def _describe(X: Any) -> str:
    return f"{type(X).__module__.partition('.')[0]} {type(X).__name__}".removeprefix("builtins ")


def _stack_frames(first: Any, second: Any, library: Any) -> Any:
    """Concatenate two data frames, taking the second one's columns in the first one's order."""
    columns = list(first.columns)
    if list(second.columns) != columns:
        absent = [column for column in columns if column not in list(second.columns)]
        surplus = [column for column in second.columns if column not in columns]
        if absent or surplus or len(second.columns) != len(columns):
            raise ValueError(
                f"X_labelled and X_unlabelled must have the same columns: X_unlabelled lacks {absent[:5]} "
                f"and has {surplus[:5]} besides. Select the same columns from both."
            )
        second = second[columns]
    if library.__name__ == "polars":
        return library.concat([first, second], how="vertical_relaxed")
    return library.concat([first, second])


def _stack_arrays(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Concatenate two arrays whose rows have one shape."""
    for name, array in (("X_labelled", first), ("X_unlabelled", second)):
        if array.ndim == 0 or (array.ndim == 1 and array.dtype.kind not in "OU"):
            raise ValueError(
                f"{name} of shape {array.shape} must have one row per sample, as (n_rows, n_features) or "
                "(n_rows, n_views, n_features). Reshape a single feature with reshape(-1, 1)."
            )
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(
            f"X_unlabelled has rows of shape {second.shape[1:]}, but X_labelled has rows of shape "
            f"{first.shape[1:]}. Both need the same features."
        )
    return np.concatenate([first, second])


def unwrap_pool(X_unlabelled: Any) -> Any:
    """Take the rows out of a 1-tuple ``(X_unlabelled,)``; anything else but a tuple passes as it is.

    ``GridSearchCV`` slices every fit parameter as long as X, hence a pool with as many rows as X; a 1-tuple
    keeps it whole.
    """
    if not isinstance(X_unlabelled, tuple):
        return X_unlabelled
    if len(X_unlabelled) != 1:
        raise ValueError(
            f"X_unlabelled is a tuple of {len(X_unlabelled)} elements, but a tuple must hold exactly one "
            "array: (X_unlabelled,). Stack several arrays with numpy.concatenate first."
        )
    return X_unlabelled[0]


# --- scale ------------------------------------------------------------------------------------------------


def check_same_scale(X: ArrayLike, X_unlabelled: ArrayLike) -> None:
    """Warn when the pool looks as if it had missed a scaler that X went through, or the reverse.

    Parameters
    ----------
    X : array-like of shape (n_rows, …)
        Rows given to fit.
    X_unlabelled : array-like of shape (n_unlabelled, …)
        The pool, with rows of the same shape.

    Warns
    -----
    FeatureScaleWarning
        If distances *between neighbouring rows* and row norms both differ by a large factor, or if one side
        is standardised column by column and the other lies far outside it. Both compare what novel classes
        leave alone: how tight classes are, and that some rows of the pool lie among those of X.
        Fewer than 5 rows, constant or non-numeric rows are not judged.

    """
    sides = [np.asarray(X), np.asarray(X_unlabelled)]
    n_rows = min(len(sides[0]), len(sides[1]), 256)  # as many on both sides: distances depend on density
    if n_rows < 5 or any(side.dtype.kind not in "biuf" for side in sides):
        return
    whole = [_draw(side, min(len(side), 4096)) for side in sides]
    drawn = [rows[:n_rows] for rows in whole]
    gaps = [float(np.median(_nearest_distance(rows))) for rows in drawn]
    norms = [float(np.median(np.linalg.norm(rows, axis=1))) for rows in drawn]
    if (
        min(norms) == 0
        or not np.isfinite(norms).all()
        or any(gap <= 1e-6 * norm for gap, norm in zip(gaps, norms, strict=True))
    ):
        return
    # k classes against one thin the rows out by k, which widens gaps by k ** (1 / dimension)
    limit = 3 * 10 ** (1 / min(_dimension(rows) for rows in drawn))
    gap_ratio, norm_ratio = gaps[1] / gaps[0], norms[1] / norms[0]
    if gap_ratio < 1:
        gap_ratio, norm_ratio = 1 / gap_ratio, 1 / norm_ratio
    is_rescaled = (gap_ratio > limit and norm_ratio > 1.5) or min(gap_ratio, norm_ratio) > 5
    if is_rescaled or any(
        _is_standardised(whole[side]) and _lies_apart(drawn[side], whole[1 - side]) for side in (0, 1)
    ):
        warnings.warn(
            f"X_unlabelled seems to be on another scale than X: median row norm {norms[1]:.3g} against "
            f"{norms[0]:.3g}, median distance to the nearest row {gaps[1]:.3g} against {gaps[0]:.3g}. If a "
            "Pipeline scales X, X_unlabelled passes by it unscaled: write "
            "pipe.fit(*pool(X_labelled, y_labelled, X_unlabelled)), or, with metadata routing, "
            'Pipeline(..., transform_input=["X_unlabelled"]).',
            FeatureScaleWarning,
            stacklevel=2,
        )


def _draw(rows: NDArray[Any], n_rows: int) -> NDArray[np.float64]:
    """``n_rows`` rows in a fixed shuffled order, flattened to at most 1024 features."""
    chosen = np.random.default_rng(0).permutation(len(rows))[:n_rows]
    flat = rows.reshape(len(rows), -1)
    stride = max(1, -(-flat.shape[1] // 1024))
    return flat[chosen, ::stride].astype(np.float64)


def _dimension(rows: NDArray[np.float64]) -> float:
    """How many columns the variance is spread over: 1 if one column has it all."""
    variances = rows.var(axis=0)
    return float(variances.sum() ** 2 / (variances**2).sum())


def _nearest_distance(rows: NDArray[np.float64], others: NDArray[np.float64] | None = None) -> NDArray[Any]:
    """Distance of each row to the nearest of ``others``, or of the other rows."""
    targets = rows if others is None else others
    centre = targets.mean(axis=0)  # near the origin the expanded square loses fewest digits
    a, b = rows - centre, targets - centre
    squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T
    if others is None:
        np.fill_diagonal(squares, np.inf)
    return np.sqrt(np.maximum(squares.min(axis=1), 0))


def _is_standardised(rows: NDArray[np.float64]) -> bool:
    """Whether the columns have mean 0 and deviation 1 (or 0), as a StandardScaler leaves them."""
    deviations = rows.std(axis=0)
    varies = deviations > 1e-9
    return bool(
        varies.any()
        and (np.abs(rows.mean(axis=0)) < 0.05).mean() > 0.9
        and (np.abs(deviations[varies] - 1) < 0.05).mean() > 0.9
    )


def _lies_apart(rows: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether ``others`` keep off the rows by more than the rows' own extent."""
    extent = np.sqrt(rows.var(axis=0).sum())
    return bool(np.median(_nearest_distance(rows, others)) > 1.5 * extent)
