"""Put rows of any features on a unit sphere where cosine similarity means something.

Pixels, table columns and embeddings differ in offset, scale and correlation. A
:class:`Geometry` is the affine map, learnt once per fit, that removes them; it ends with
unit-length rows. Knows arrays only: no torch, no epochs, no class names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

__all__ = [
    "Geometry",
    "Reduction",
    "Whitening",
    "class_residuals",
    "fit_geometry",
    "reduce_rows",
    "shrunk_spread",
    "unit_rows",
]

Whitening = Literal["discriminant", "within", "soft-within", "soft-total"] | None

# Above this width the full eigendecomposition costs more than it tells.
_MAX_EXACT_WIDTH = 2048
# Spread between classes, relative to that inside them, that every direction is granted.
_LEAST_BETWEEN = 1e-3
# Part of the spread, in the directions with least of it, that a geometry leaves out; columns it keeps anyway.
_DROPPED = 1e-3
_KEPT_COLUMNS = 32
# Rows beyond this add nothing to a covariance of a few hundred columns.
_MAX_COVARIANCE_ROWS = 50_000
# Up to this many columns the length of a centred row is news, not noise: it is kept by a lift.
_MAX_LIFTED_WIDTH = 16
# Below this a spread is none: it cannot be divided by.
_NO_SPREAD = 1e-30
# One over a smaller number is too large for single precision.
_NO_SCALE = 1e-37
# Numbers up to this may be multiplied by two of single precision and squared in double precision.
_FAR = 1e50


def unit_rows(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return ``rows`` scaled to unit length; a zero row becomes the first axis."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    if not np.isfinite(norms).all():  # squares of such numbers are beyond the largest one
        rows = rows / np.maximum(np.abs(rows).max(axis=-1, keepdims=True), 1.0)
        norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    tiny = norms[..., 0] < 1e-12
    out: NDArray[np.float32] = (rows / np.maximum(norms, 1e-12)).astype(np.float32)
    if tiny.any():
        out[tiny] = 0.0
        out[tiny, 0] = 1.0
    return out


@dataclass(frozen=True)
class Geometry:
    """The map ``row -> unit((row - centre) @ axes @ scaling)``, with an optional constant column.

    Parameters
    ----------
    centre : ndarray of shape (d,)
        Subtracted from each row.
    axes : ndarray of shape (d, p)
        Principal directions kept.
    scaling : ndarray of shape (p, q)
        Turns and scales the principal coordinates, and drops what is then next to nothing.
    lift : float
        If positive, a constant column of this value is appended before normalising, so
        that the length of a row survives; 0 for wide rows, whose length says little.
    whitening : str or None
        How ``scaling`` was made, see :func:`fit_geometry`.
    """

    centre: NDArray[np.float64]
    axes: NDArray[np.float32]
    scaling: NDArray[np.float32]
    lift: float
    whitening: Whitening

    @property
    def n_columns(self) -> int:
        """Width of the rows that come out."""
        return int(self.scaling.shape[1]) + (self.lift > 0)

    def apply(self, rows: NDArray[np.floating]) -> NDArray[np.float32]:
        """Map rows of shape (..., d) to unit rows of shape (..., n_columns).

        In double precision: a matrix product may round a row differently at another place, and after
        the final rounding to single precision that no longer shows.
        """
        return self.prepare()(rows)

    def prepare(self) -> Callable[[NDArray[np.floating]], NDArray[np.float32]]:
        """Return what :meth:`apply` does with rows, for many calls."""
        axes, scaling = self.axes.astype(np.float64), self.scaling.astype(np.float64)

        def apply(rows: NDArray[np.floating]) -> NDArray[np.float32]:
            rows = np.asarray(rows, dtype=np.float64)
            if max(rows.max(initial=0.0), -rows.min(initial=0.0)) <= _FAR:
                return self._unite((rows - self.centre) @ axes @ scaling, np.float64(self.lift))
            # Only their direction counts: rows from very far away come nearer, so that no product overflows.
            shrinking = np.minimum(1.0, _FAR / np.maximum(np.abs(rows).max(axis=-1, keepdims=True), 1.0))
            centred = rows * shrinking - self.centre * shrinking
            return self._unite(centred @ axes @ scaling, self.lift * shrinking)

        return apply

    def apply_to_coordinates(self, coordinates: NDArray[np.floating]) -> NDArray[np.float32]:
        """Map principal coordinates (..., p), as :class:`Reduction` holds them, to unit rows."""
        return self._unite(coordinates @ self.scaling, np.float64(self.lift))

    def _unite(
        self, mapped: NDArray[np.floating], constant: NDArray[np.float64] | np.float64
    ) -> NDArray[np.float32]:
        if self.lift > 0:
            column = np.broadcast_to(constant.astype(mapped.dtype), (*mapped.shape[:-1], 1))
            mapped = np.concatenate([mapped, column], axis=-1)
        return unit_rows(mapped)


class Reduction(NamedTuple):
    """Rows in their principal coordinates, computed once and shared by every geometry of a fit.

    Attributes
    ----------
    centre : ndarray of shape (d,)
    axes : ndarray of shape (d, p)
        Orthogonal, largest variance first, all of one length that makes the largest variance 1.
    variances : ndarray of shape (p,)
    coordinates : ndarray of shape (n, p), float32
    """

    centre: NDArray[np.float64]
    axes: NDArray[np.float32]
    variances: NDArray[np.float64]
    coordinates: NDArray[np.float32]


def reduce_rows(rows: NDArray[np.floating], *, n_components: int | None = 256) -> Reduction:
    """Centre rows (n, d) and turn them to their first ``n_components`` principal directions."""
    centre = rows.mean(axis=0, dtype=np.float64)
    variances, axes = _principal_axes(rows, centre, n_components)
    scale = float(np.sqrt(variances[0]))  # so that single precision holds what follows
    if scale < _NO_SCALE:  # rows that are all alike, up to rounding
        scale = 1.0
    scaled = (axes / scale).astype(np.float32)
    coordinates = (np.asarray(rows, dtype=np.float64) - centre) @ scaled.astype(np.float64)
    return Reduction(centre, scaled, variances / scale**2, coordinates.astype(np.float32))


def fit_geometry(reduction: Reduction, codes: NDArray[np.int64], *, whitening: Whitening = None) -> Geometry:
    """Learn how to scale directions, from all rows and, if asked, from the labels.

    Parameters
    ----------
    reduction : Reduction
        Labelled and unlabelled rows together.
    codes : ndarray of shape (n,)
        Known-class code of each row, −1 for unlabelled ones.
    whitening : {"discriminant", "within", "soft-within", "soft-total"} or None
        ``"within"`` divides every direction by its spread *inside* the known classes
        (shrunk by Ledoit and Wolf's rule): directions in which one class varies count
        less, also for classes nobody has labelled yet. ``"soft-within"`` divides by the
        square root of that spread. ``"discriminant"`` does so too, and gives a direction the
        more weight the further all rows, labelled or not, are spread beyond that: classes,
        known or new, differ there. ``"soft-total"`` needs no labels: it divides by the
        square root of the spread over all rows. ``None`` only centres and rotates.
    """
    turn = np.eye(len(reduction.variances))
    power = 0.0
    spread = reduction.variances + 1e-3 * reduction.variances.max(initial=0.0)
    if whitening == "soft-total":
        power = 0.25
    elif whitening is not None:
        labelled = codes >= 0
        spread, turn = shrunk_spread(
            class_residuals(reduction.coordinates[labelled].astype(np.float64), codes[labelled])
        )
        power = 0.5 if whitening == "within" else 0.25
    floor = max(float(spread.max(initial=0.0)) * 1e-10, 1e-30)
    spread = np.maximum(spread, floor)
    if whitening == "discriminant":
        scaling = _weigh_directions(reduction.variances, turn, spread)
    else:
        scaling = (turn / spread**power).astype(np.float32)
    scaling = _drop_empty_columns(scaling, reduction.variances)
    lift = _lift(reduction.coordinates @ scaling)
    return Geometry(reduction.centre, reduction.axes, scaling, lift, whitening)


def _drop_empty_columns(scaling: NDArray[np.float32], variances: NDArray[np.float64]) -> NDArray[np.float32]:
    """Turn what comes out to its principal directions, and drop those in which next to nothing is left.

    Cosines stay as they are but for ``_DROPPED``; every product after this one is the cheaper.
    """
    if len(scaling) <= _KEPT_COLUMNS:
        return scaling
    wide = scaling.astype(np.float64)
    left, turn = linalg.eigh((wide.T * variances) @ wide)
    n_dropped = int(np.searchsorted(np.cumsum(np.maximum(left, 0.0)), _DROPPED * left.sum()))
    n_dropped = min(n_dropped, len(left) - _KEPT_COLUMNS)
    out: NDArray[np.float32] = (wide @ turn[:, n_dropped:][:, ::-1]).astype(np.float32)
    return out


def _weigh_directions(
    variances: NDArray[np.float64], turn: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return a scaling that keeps a direction as far as classes differ in it.

    Where rows inside the classes have unit spread, all rows have spread 1 + λ, λ of it between classes,
    known and new alike. λ / (1 + 2λ) is what the product of two rows' coordinates then says about
    whether their class is the same (two-covariance model with Gaussian classes). ``variances`` are those
    of all rows along their principal directions.
    """
    whiten = turn / np.sqrt(spread)
    total, axes = linalg.eigh((whiten.T * variances) @ whiten)
    between = np.maximum(total - 1.0, _LEAST_BETWEEN)
    weighed = (axes * np.sqrt(between / (1.0 + 2.0 * between))) @ axes.T
    # Half of the whitening is taken back: spreads learnt on known classes fit new ones only roughly.
    out: NDArray[np.float32] = (whiten @ weighed * spread**0.25).astype(np.float32)
    return out


def _principal_axes(
    rows: NDArray[np.floating], centre: NDArray[np.float64], n_components: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return variances (p,) and orthonormal axes (d, p), largest variance first."""
    step = max(1, len(rows) // _MAX_COVARIANCE_ROWS)
    centred = np.asarray(rows[::step], dtype=np.float64) - centre
    n_rows, width = centred.shape
    keep = min(width, max(n_rows - 1, 1), n_components or width)
    if width <= _MAX_EXACT_WIDTH:
        covariance = centred.T @ centred / n_rows
        variances, axes = _largest_directions(covariance, keep)
    else:
        from sklearn.utils.extmath import randomized_svd

        _, singular, components = randomized_svd(centred, min(keep, 512), random_state=0)
        variances, axes = singular**2 / n_rows, components.T
    carries = variances > max(variances[0], 0.0) * 1e-13
    keep = max(1, min(keep, int(carries.sum())))
    return np.maximum(variances[:keep], 0.0), axes[:, :keep]


def _largest_directions(
    covariance: NDArray[np.float64], n_kept: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the largest eigenvalues (n_kept,), falling, and their eigenvectors (d, n_kept)."""
    width = len(covariance)
    try:
        variances, axes = linalg.eigh(covariance, subset_by_index=(width - n_kept, width - 1))
    except linalg.LinAlgError:
        # Where many are equal, LAPACK may give up on finding some of them; it finds all.
        variances, axes = linalg.eigh(covariance, driver="evd")
        variances, axes = variances[width - n_kept :], axes[:, width - n_kept :]
    return variances[::-1], axes[:, ::-1]


def class_residuals(rows: NDArray[np.floating], codes: NDArray[np.int64]) -> NDArray[np.floating]:
    """Return each row minus its class mean, scaled so that small classes are not under-counted.

    In the precision of ``rows``.
    """
    counts = np.bincount(codes)
    ones = np.ones(len(codes), dtype=rows.dtype)
    membership = sparse.csr_array((ones, (codes, np.arange(len(codes)))), shape=(len(counts), len(codes)))
    residuals = rows - ((membership @ rows) / np.maximum(counts, 1)[:, None].astype(rows.dtype))[codes]
    unbiased = np.sqrt(counts / np.maximum(counts - 1, 1)).astype(rows.dtype)
    out: NDArray[np.floating] = residuals * unbiased[codes][:, None]
    return out[counts[codes] > 1]


def shrunk_covariance(residuals: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the Ledoit-Wolf shrunk covariance of ``residuals``, the identity where nothing spreads."""
    from sklearn.covariance import ledoit_wolf_shrinkage

    width = residuals.shape[1]
    if len(residuals) < 2:
        return np.eye(width)
    covariance = residuals.T @ residuals / len(residuals)
    shrinkage = ledoit_wolf_shrinkage(residuals, assume_centered=True) if width > 1 else 0.0
    target = shrinkage * np.trace(covariance) / width
    covariance *= 1.0 - shrinkage
    covariance.flat[:: width + 1] += target
    if covariance.diagonal().max() < _NO_SPREAD:  # rows of each class are copies of one
        return np.eye(width)
    out: NDArray[np.floating] = covariance
    return out


def shrunk_spread(residuals: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues and eigenvectors of the shrunk covariance of ``residuals``."""
    spread, turn = linalg.eigh(shrunk_covariance(residuals))
    return np.maximum(spread, spread.max() * 1e-6), turn


def _lift(mapped: NDArray[np.float32]) -> float:
    """Return the constant column for narrow rows: their typical length, else 0."""
    if mapped.shape[1] > _MAX_LIFTED_WIDTH:
        return 0.0
    return float(np.sqrt(np.mean(np.sum(mapped**2, axis=1)))) or 1.0
