"""Read rows in several containers, and a pool of unlabelled rows beside them.

Knows arrays and data frames: no torch, no clustering, no estimator. pandas and polars are recognised,
never imported.
"""

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pnp_gcd.exceptions import FeatureScaleWarning
from pnp_gcd.images import is_picture
from pnp_gcd.labels import choose_marker, concatenate_unchanged, encode_labels

__all__ = ["check_range", "check_same_scale", "pool", "refuse_dates", "unwrap_pool"]

# Scales whose inverse single precision holds, with room for the factors of a whitening.
_LARGEST, _SMALLEST_RANGE = 1e32, 1e-30


def pool(
    X_labelled: Any, y_labelled: Any, X_unlabelled: Any, *, missing_label: Any = "auto"
) -> tuple[Any, NDArray[Any]]:
    """Stack labelled and unlabelled rows into the ``(X, y)`` that scikit-learn's tools expect.

    The way to pass unlabelled rows through a ``Pipeline`` or a search: ``pipe.fit(*pool(X_labelled,
    y_labelled, X_unlabelled))``. Every step then sees every row.

    Parameters
    ----------
    X_labelled : array-like of shape (n_labelled, n_features) or (n_labelled, n_views, n_features)
        Rows with labels: an array, a pandas or polars DataFrame, or images or their paths.
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
    X_labelled, X_unlabelled = _sized(X_labelled), _sized(unwrap_pool(X_unlabelled))
    X = _stack_rows(X_labelled, X_unlabelled)
    codes, classes = encode_labels(y_labelled, missing_label, name="y_labelled")
    n_unlabelled = len(X_unlabelled)
    if len(codes) != len(X) - n_unlabelled:
        raise ValueError(
            f"y_labelled has {len(codes)} labels for the {len(X) - n_unlabelled} rows of X_labelled. "
            "Pass one label per row."
        )
    marker = choose_marker(classes, missing_label)
    table = concatenate_unchanged(classes, marker)  # code -1 picks its last entry: the marker
    return X, table[np.concatenate([codes, np.full(n_unlabelled, -1)])]


def _sized(X: Any) -> Any:
    """Return rows that can be counted: what only knows how to become an array becomes one."""
    return X if hasattr(X, "__len__") or not hasattr(X, "__array__") else np.asarray(X)


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
        stacked = _stack_arrays(_as_array(X_labelled), _as_array(X_unlabelled))
    if not len(X_unlabelled):
        raise ValueError("X_unlabelled has 0 rows. Pass at least one row, or fit without a pool.")
    return stacked


def _as_array(X: Any) -> NDArray[Any]:
    """Return rows as an array; pictures and texts stay what they are, one a row."""
    # An array of fixed-width strings would give every text the room of the longest.
    if isinstance(X, list | tuple) and len(X) and (is_picture(X[0]) or isinstance(X[0], str)):
        items = np.empty(len(X), dtype=object)
        items[:] = X
        return items
    return np.asarray(X)


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
                f"and has {surplus[:5]} besides. Pass the same columns in both."
            )
        second = second[columns]
    if library.__name__ == "polars":
        return library.concat([first, second], how="vertical_relaxed")
    return library.concat([first, second])


def _stack_arrays(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Concatenate two arrays whose rows have one shape."""
    for name, array in (("X_labelled", first), ("X_unlabelled", second)):
        if array.ndim == 0 or (array.ndim == 1 and array.dtype.kind not in "OUT"):
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


def refuse_dates(X: Any, name: str = "X") -> None:
    """Refuse dates and spans of time, which NumPy would silently count in units of its own.

    Parameters
    ----------
    X : array, data frame or nested lists
    name : str
        What messages call X.
    """
    cell = X
    while isinstance(cell, list | tuple) and len(cell):
        cell = cell[0]
    kinds = list(cell.dtypes) if hasattr(cell, "dtypes") else [getattr(cell, "dtype", None)]
    for kind in kinds:
        if getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("Date", "Duration", "Time")):
            raise TypeError(
                f"{name} holds {kind}, but features must be numbers. Turn dates into numbers of a unit that "
                f'you choose, for example ({name} - {name}.min()) / numpy.timedelta64(1, "D").'
            )


def check_range(*parts: NDArray[np.floating]) -> None:
    """Refuse numbers so large, or so close together, that a fit could not tell rows apart.

    Parameters
    ----------
    parts : ndarray of shape (n_rows, …)
        Together all rows of a fit, finite.
    """
    low = np.min([part.min(axis=0) for part in parts], axis=0).astype(np.float64)
    high = np.max([part.max(axis=0) for part in parts], axis=0).astype(np.float64)
    largest = max(-float(low.min()), float(high.max()))
    if largest > _LARGEST:
        raise ValueError(
            f"X holds values up to {largest:.3g}, but a fit takes values up to {_LARGEST:g}. Divide X, and "
            "rows for predict, by one large number."
        )
    widest = float((high - low).max())
    if 0.0 < widest < _SMALLEST_RANGE:
        raise ValueError(
            f"X holds columns whose values differ by {widest:.3g} at most, but a fit needs a difference of "
            f"{_SMALLEST_RANGE:g}. Multiply X, and rows for predict, by one large number."
        )


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
