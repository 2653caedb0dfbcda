"""Rows of any features on a unit sphere."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.covariance import ledoit_wolf

from pnp_gcd.geometry import class_residuals, fit_geometry, reduce_rows, shrunk_spread, unit_rows

WHITENINGS = ["within", "soft-within", "soft-total", None]


def gaussian_classes(n_rows=20_000, n_classes=4, width=5, seed=0):
    """Return rows of classes that share one covariance, its square root, and the codes."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(width, width)) * np.geomspace(3, 1, width)
    codes = rng.integers(n_classes, size=n_rows)
    rows = 30 * rng.normal(size=(n_classes, width))[codes] + rng.normal(size=(n_rows, width)) @ root
    return rows + 100.0, root, codes


def test_unit_rows_have_unit_length_in_float32():
    rows = np.random.default_rng(0).normal(size=(6, 3, 4)) * np.geomspace(1e-6, 1e6, 6)[:, None, None]
    out = unit_rows(rows)
    assert out.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(out * np.linalg.norm(rows, axis=-1, keepdims=True), rows, rtol=1e-5)


def test_a_zero_row_becomes_the_first_axis():
    np.testing.assert_array_equal(unit_rows(np.zeros((2, 3))), [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(unit_rows([[0.0, 0.0], [0.0, 2.0]]), [[1, 0], [0, 1]])


@pytest.mark.parametrize("whitening", WHITENINGS)
@pytest.mark.parametrize("width", [1, 3, 40])
def test_every_geometry_gives_finite_unit_rows(whitening, width):
    rng = np.random.default_rng(0)
    rows, codes = rng.normal(size=(60, width)) + 5, rng.integers(-1, 3, size=60)
    geometry = fit_geometry(reduce_rows(rows), codes, whitening=whitening)
    out = geometry.apply(rows)
    assert out.shape == (60, geometry.n_columns)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("whitening", WHITENINGS)
@pytest.mark.parametrize("kind", ["constant", "constant column", "duplicate column", "huge offset"])
def test_degenerate_columns_do_no_harm(whitening, kind):
    rng = np.random.default_rng(0)
    rows, codes = rng.normal(size=(50, 4)), rng.integers(0, 2, size=50)
    rows = {
        "constant": lambda: np.ones((50, 4)),
        "constant column": lambda: np.column_stack([rows, np.full(50, 7.0)]),
        "duplicate column": lambda: np.column_stack([rows, rows[:, 0]]),
        "huge offset": lambda: rows + 1e6,
    }[kind]()
    out = fit_geometry(reduce_rows(rows), codes, whitening=whitening).apply(rows)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1.0, rtol=1e-5)


def test_within_whitening_makes_the_inside_of_classes_round():
    rows, root, codes = gaussian_classes()
    geometry = fit_geometry(reduce_rows(rows), codes, whitening="within")
    whiten = geometry.axes.astype(float) @ geometry.scaling.astype(float)
    np.testing.assert_allclose(whiten.T @ (root.T @ root) @ whiten, np.eye(5), atol=0.06)


def test_soft_within_whitening_leaves_the_square_root_of_the_spread():
    rows, root, codes = gaussian_classes()
    geometry = fit_geometry(reduce_rows(rows), codes, whitening="soft-within")
    whiten = geometry.axes.astype(float) @ geometry.scaling.astype(float)
    left = linalg.eigvalsh(whiten.T @ (root.T @ root) @ whiten)
    wanted = np.sqrt(linalg.eigvalsh(root.T @ root))
    np.testing.assert_allclose(left / left.sum(), wanted / wanted.sum(), rtol=0.05)


def test_soft_total_whitening_leaves_the_square_root_of_the_total_spread_and_reads_no_label():
    rows, _, codes = gaussian_classes(2000)
    reduction = reduce_rows(rows)
    geometry = fit_geometry(reduction, codes, whitening="soft-total")
    mapped = reduction.coordinates @ geometry.scaling
    np.testing.assert_allclose(mapped.var(axis=0), np.sqrt(reduction.variances), rtol=0.3)
    other = fit_geometry(reduction, np.full(2000, -1), whitening="soft-total")
    np.testing.assert_array_equal(geometry.scaling, other.scaling)


def test_labels_of_unlabelled_rows_do_not_exist_for_within_whitening():
    rows, _, codes = gaussian_classes(400)
    shown = np.where(np.arange(400) < 200, codes, -1)
    half = fit_geometry(reduce_rows(rows), shown, whitening="within")
    residuals = class_residuals(reduce_rows(rows).coordinates[:200].astype(np.float64), codes[:200])
    spread, turn = shrunk_spread(residuals)
    np.testing.assert_allclose(half.scaling, turn / np.sqrt(spread), rtol=1e-5)


def test_without_whitening_angles_between_centred_rows_stay():
    rows = np.random.default_rng(0).normal(size=(30, 20)) + 3
    out = fit_geometry(reduce_rows(rows, n_components=None), np.full(30, -1)).apply(rows)
    centred = unit_rows(rows - rows.mean(axis=0))
    np.testing.assert_allclose(out @ out.T, centred @ centred.T, atol=1e-5)


def test_theshrunk_spread_is_that_of_ledoit_and_wolf():
    residuals = np.random.default_rng(0).normal(size=(40, 12)) * np.geomspace(3, 0.3, 12)
    covariance, _ = ledoit_wolf(residuals, assume_centered=True)
    spread, turn = shrunk_spread(residuals)
    np.testing.assert_allclose(turn * spread @ turn.T, covariance, rtol=1e-6, atol=1e-9)


def testclass_residuals_estimate_the_covariance_without_bias():
    # 2000 classes of two rows: plain residuals would show half of the variance.
    rows = np.random.default_rng(0).normal(size=(4000, 3))
    residuals = class_residuals(rows, np.repeat(np.arange(2000), 2))
    np.testing.assert_allclose((residuals**2).mean(axis=0), 1.0, atol=0.08)


def test_a_class_of_one_row_says_nothing_about_spread():
    rows = np.array([[0.0, 0.0], [2.0, 0.0], [50.0, 50.0]])
    assert len(class_residuals(rows, np.array([0, 0, 1]))) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_class_residuals_keep_the_precision_of_the_rows(dtype):
    rows = np.random.default_rng(0).normal(size=(6, 2)).astype(dtype)
    assert class_residuals(rows, np.repeat([0, 1], 3)).dtype == dtype


def test_one_column_keeps_the_size_of_a_row_by_a_lift():
    rows = np.array([[-3.0], [-1.0], [0.5], [1.0], [2.5]])
    geometry = fit_geometry(reduce_rows(rows), np.full(5, -1))
    out = geometry.apply(rows).astype(float)
    assert geometry.n_columns == 2
    cosines = out @ out[0]
    assert (np.diff(np.abs(cosines)) != 0).all()
    assert (np.diff(cosines) < 0).all() or (np.diff(cosines) > 0).all()
    assert abs(out[3] @ out[4]) < 1 - 1e-3  # 1.0 and 2.5 have one direction but two lengths


@pytest.mark.parametrize(("width", "lifted"), [(16, True), (17, False)])
def test_only_narrow_rows_are_lifted(width, lifted):
    rows = np.random.default_rng(0).normal(size=(60, width))
    geometry = fit_geometry(reduce_rows(rows), np.full(60, -1))
    assert (geometry.lift > 0) is lifted
    assert geometry.n_columns == width + lifted


def test_reduction_keeps_the_directions_of_largest_variance():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 6)) * [10, 1, 8, 0.1, 5, 0.2] + 4
    reduction = reduce_rows(rows, n_components=3)
    directions = reduction.axes / np.linalg.norm(reduction.axes, axis=0)
    np.testing.assert_allclose(np.abs(directions[[0, 2, 4]]), np.eye(3), atol=0.1)
    np.testing.assert_allclose(directions.T @ directions, np.eye(3), atol=1e-5)
    assert reduction.variances[0] == pytest.approx(1)
    np.testing.assert_allclose(reduction.coordinates.var(axis=0), reduction.variances, rtol=1e-3)
    assert (np.diff(reduction.variances) < 0).all()


def test_more_columns_than_rows_and_very_wide_rows_are_reduced():
    rng = np.random.default_rng(0)
    for width in (50, 3000):
        rows = rng.normal(size=(12, width))
        reduction = reduce_rows(rows)
        assert reduction.coordinates.shape == (12, 11)
        scale = 1 / np.linalg.norm(reduction.axes[:, 0])
        np.testing.assert_allclose(
            scale**2 * reduction.coordinates @ reduction.coordinates.T,
            (rows - rows.mean(0)) @ (rows - rows.mean(0)).T,
            rtol=1e-3,
            atol=1e-3 * width,
        )


def test_apply_to_coordinates_is_apply_after_the_reduction():
    rows, _, codes = gaussian_classes(300)
    reduction = reduce_rows(rows)
    geometry = fit_geometry(reduction, codes, whitening="within")
    np.testing.assert_allclose(
        geometry.apply_to_coordinates(reduction.coordinates), geometry.apply(rows), atol=1e-5
    )
    views = np.stack([rows[:10], rows[10:20]], axis=1)
    np.testing.assert_allclose(geometry.apply(views)[:, 1], geometry.apply(rows[10:20]), atol=1e-6)


def test_a_row_is_mapped_to_the_same_bits_wherever_it_stands():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1100, 48)).astype(np.float32)
    geometry = fit_geometry(reduce_rows(rows), np.full(len(rows), -1), whitening="soft-total")
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(geometry.apply(rows[order]), geometry.apply(rows)[order])


# --- directions weighed by how classes differ in them ------------------------------------------------------


def half_known(n_classes, rows_per_class, width, n_telling, *, spread, seed):
    """Return rows, classes and codes; classes differ in the first columns only, half of them are known."""
    rng = np.random.default_rng(seed)
    centres = np.zeros((n_classes, width))
    centres[:, :n_telling] = spread * rng.normal(size=(n_classes, n_telling))
    y = np.repeat(np.arange(n_classes), rows_per_class)
    codes = np.where((y < n_classes // 2) & (np.arange(len(y)) % 2 == 0), y, -1)
    return reduce_rows(centres[y] + rng.normal(size=(len(y), width))), y, codes


def test_a_direction_in_which_classes_do_not_differ_is_nearly_dropped():
    reduction, _, codes = half_known(12, 40, 8, 3, spread=6, seed=0)
    scales = {}
    for whitening in ("within", "discriminant"):
        geometry = fit_geometry(reduction, codes, whitening=whitening)
        scales[whitening] = np.linalg.norm(geometry.axes @ geometry.scaling, axis=1)
    assert scales["within"][3:].mean() > 0.5 * scales["within"][:3].mean()
    assert scales["discriminant"][3:].mean() < 0.2 * scales["discriminant"][:3].mean()


def test_weighed_directions_bring_rows_of_new_classes_together():
    reduction, y, codes = half_known(20, 30, 60, 6, spread=2, seed=1)

    def purity(whitening):
        rows = fit_geometry(reduction, codes, whitening=whitening).apply_to_coordinates(reduction.coordinates)
        near = np.argsort(-(rows @ rows.T), axis=1)[:, 1:6]
        return (y[near] == y[:, None])[y >= 10].mean()

    assert purity("discriminant") > purity("soft-within") + 0.1


def test_columns_in_which_nothing_is_left_are_dropped_and_cosines_stay():
    rng = np.random.default_rng(0)
    spread = np.r_[np.ones(40), np.full(24, 1e-3)]
    rows = rng.normal(size=(500, 64)) * spread
    reduction = reduce_rows(rows)
    geometry = fit_geometry(reduction, np.full(500, -1), whitening=None)
    assert geometry.n_columns == 40
    whole = unit_rows(reduction.coordinates)
    out = geometry.apply(rows)
    np.testing.assert_allclose(out @ out.T, whole @ whole.T, atol=2e-3)


def test_few_columns_are_all_kept():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 20)) * np.geomspace(1, 1e-4, 20)
    assert fit_geometry(reduce_rows(rows), np.full(500, -1), whitening="soft-total").n_columns == 20


def test_directions_are_found_where_the_routine_for_some_of_them_gives_up(monkeypatch):
    """On some machines LAPACK does so on its own account, for rows that are one in one column each."""
    rows = np.random.default_rng(0).normal(size=(50, 12))
    expected = reduce_rows(rows, n_components=5)
    decompose = linalg.eigh

    def give_up(matrix, *, subset_by_index=None, **options):
        if subset_by_index is not None:
            raise linalg.LinAlgError("Internal Error.")
        return decompose(matrix, **options)

    monkeypatch.setattr(linalg, "eigh", give_up)
    found = reduce_rows(rows, n_components=5)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-10)
    np.testing.assert_allclose(np.abs(found.coordinates), np.abs(expected.coordinates), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_rows", range(20, 60, 5))
def test_rows_that_are_one_in_one_column_each_are_reduced(n_rows):
    assert np.isfinite(reduce_rows(np.eye(n_rows)).coordinates).all()
