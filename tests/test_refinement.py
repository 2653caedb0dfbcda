"""Rows that change class."""

import numpy as np
import pytest
from scipy import linalg
from sklearn.covariance import ledoit_wolf

from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import find_neighbours
from pnp_gcd.refinement import _vote, fit_discriminant, refine_rows


def grouped_rows(sizes, width=6, spread=0.2, seed=0):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(groups), width))
    return unit_rows(np.eye(width)[groups] + spread * noise), groups


def refine(features, codes, rows, n_classes, temperature=0.1, n_neighbors=15):
    found = find_neighbours(features, n_neighbors)
    return refine_rows(features, found, codes, rows, n_classes, temperature=temperature)


# --- the discriminant --------------------------------------------------------------------------------------


def slow_cosines(features, rows, n_classes):
    """Return cosines with class means after dividing by the spread inside classes, row by row."""
    features = features.astype(np.float64)
    residuals = []
    for name in range(n_classes):
        members = features[rows == name]
        residuals += [
            (row - members.mean(axis=0)) * np.sqrt(len(members) / (len(members) - 1)) for row in members
        ]
    covariance, _ = ledoit_wolf(np.array(residuals), assume_centered=True)
    root = np.real(linalg.inv(linalg.sqrtm(covariance)))
    mapped = [row @ root / np.linalg.norm(row @ root) for row in features]
    means = [
        np.mean([m for m, r in zip(mapped, rows, strict=True) if r == name], axis=0)
        for name in range(n_classes)
    ]
    return [[m @ mean / np.linalg.norm(mean) for mean in means] for m in mapped]


def test_cosines_with_class_means_are_those_of_a_plain_loop():
    features, rows = grouped_rows([34, 29, 41], spread=np.array([0.02, 0.05, 0.1, 0.3, 0.5, 0.8]))
    rows[[3, 50]] = -1  # in no class: counted nowhere
    found = fit_discriminant(features, rows, 3)
    np.testing.assert_allclose(found.cosines(features), slow_cosines(features, rows, 3), atol=1e-4)
    assert found.axes.shape == (6, 6)
    np.testing.assert_allclose(np.linalg.norm(found.directions, axis=1), 1.0, rtol=1e-5)


def test_directions_in_which_classes_are_wide_count_less():
    # Two classes differ in the first column; the second one is noise, ten times as wide.
    rng = np.random.default_rng(0)
    rows = np.repeat([0, 1], 200)
    plain = np.column_stack([rows * 2.0 - 1, np.zeros(400), np.full(400, 5.0)])
    features = unit_rows(plain + rng.normal(size=(400, 3)) * [0.3, 3.0, 0.3])
    found = fit_discriminant(features, rows, 2)
    assert (found.cosines(features).argmax(axis=1) == rows).mean() > 0.99


def test_a_row_s_cosines_do_not_depend_on_its_place():
    features, rows = grouped_rows([40, 40, 40], width=24)
    found = fit_discriminant(features, rows, 3)
    order = np.random.default_rng(0).permutation(120)
    np.testing.assert_array_equal(found.cosines(features[order]), found.cosines(features)[order])


# --- votes -------------------------------------------------------------------------------------------------


def test_votes_are_the_parts_of_the_neighbours_in_each_class_fading_with_distance():
    features, rows = grouped_rows([12, 12], spread=0.6)
    rows[::5] = -1
    found = find_neighbours(features, 18)
    votes = _vote(found, rows, 3)
    for row in range(len(rows)):
        sums = np.full(3, 1e-3)
        for other, cosine in zip(found.indices[row, :15], found.similarities[row, :15], strict=True):
            if rows[other] >= 0:
                sums[rows[other]] += np.exp((float(cosine) - float(found.similarities[row, 0])) / 0.1)
        np.testing.assert_allclose(votes[row], np.log(sums / sums.sum()), rtol=1e-5)


# --- refinement --------------------------------------------------------------------------------------------


def test_a_row_surrounded_by_another_class_moves_there():
    features, groups = grouped_rows([30, 30])
    rows = groups.copy()
    rows[[2, 40]] = 1 - rows[[2, 40]]
    np.testing.assert_array_equal(refine(features, np.full(60, -1), rows, 2), groups)


def test_labelled_rows_keep_their_code_even_among_another_class():
    features, groups = grouped_rows([30, 30])
    codes = np.full(60, -1)
    codes[[2, 3, 40]] = [1, 0, 0]
    found = refine(features, codes, groups, 2)
    assert found[[2, 3, 40]].tolist() == [1, 0, 0]
    np.testing.assert_array_equal(np.delete(found, [2, 40]), np.delete(groups, [2, 40]))


def test_rows_without_a_class_get_the_one_around_them():
    features, groups = grouped_rows([30, 30])
    rows = np.where(np.arange(60) % 3 == 0, -1, groups)
    np.testing.assert_array_equal(refine(features, np.full(60, -1), rows, 2), groups)


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_class_without_rows_is_never_given(empty):
    # Rows lie in every direction: wherever a mean of nobody were put, it would be the nearest to some.
    features = unit_rows(np.random.default_rng(0).normal(size=(200, 3)))
    names = np.delete(np.arange(3), empty)
    rows = names[(features[:, 2] > 0).astype(int)]
    found = refine(features, np.full(200, -1), rows, 3, temperature=1e-3)
    assert set(found.tolist()) == set(names.tolist())


def test_where_no_row_has_a_class_none_is_given():
    features, _ = grouped_rows([10, 10])
    assert (refine(features, np.full(20, -1), np.full(20, -1), 3) == -1).all()


def test_labels_alone_are_a_start():
    features, groups = grouped_rows([30, 30])
    codes = np.where(np.arange(60) % 6 == 0, groups, -1)
    np.testing.assert_array_equal(refine(features, codes, np.full(60, -1), 2), groups)


@pytest.mark.parametrize(("temperature", "expected"), [(1e-3, 1), (1e3, 0)])
def test_the_temperature_weighs_class_means_against_neighbours(temperature, expected):
    # A row that lies at the mean of class 1, but whose neighbours are all rows of class 0.
    features, groups = grouped_rows([20, 20], width=2, spread=0.05)
    row = unit_rows(features[20:].mean(axis=0, keepdims=True))
    near = find_neighbours(np.concatenate([features, row]), 15)
    near.indices[40] = np.arange(15)
    rows = refine_rows(
        np.concatenate([features, row]),
        near,
        np.r_[groups, -1],
        np.r_[groups, -1],
        2,
        temperature=temperature,
    )
    assert rows[40] == expected


def test_the_start_is_left_as_it_was():
    features, groups = grouped_rows([15, 15])
    start = np.where(np.arange(30) % 2 == 0, 0, groups)
    kept = start.copy()
    refine(features, np.full(30, -1), start, 2)
    np.testing.assert_array_equal(start, kept)


def test_classes_renamed_are_found_under_their_new_names():
    features, groups = grouped_rows([30, 25, 20], spread=0.5)
    codes = np.full(75, -1)
    found = refine(features, codes, groups, 3)
    rename = np.array([2, 0, 1])
    np.testing.assert_array_equal(refine(features, codes, rename[groups], 3), rename[found])


def test_refinement_puts_right_most_of_what_communities_mixed_up():
    features, groups = grouped_rows([100, 100, 100], spread=0.3)
    rng = np.random.default_rng(0)
    start = np.where(rng.random(300) < 0.25, rng.integers(3, size=300), groups)
    found = refine(features, np.full(300, -1), start, 3)
    assert (start == groups).mean() < 0.87
    assert (found == groups).mean() > 0.97


@pytest.mark.parametrize("block", [1, 50, 1 << 23])
def test_the_size_of_blocks_does_not_matter_to_classes(monkeypatch, block):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), 40)
    features = unit_rows(np.eye(5)[truth] + 0.5 * rng.normal(size=(120, 5)))
    start = np.where(rng.random(120) < 0.3, rng.integers(3, size=120), truth)
    found = find_neighbours(features, 15)
    whole = refine_rows(features, found, np.full(120, -1), start, 3, temperature=0.1)
    monkeypatch.setattr("pnp_gcd.refinement._BLOCK_EVIDENCE", block)
    blocked = refine_rows(features, found, np.full(120, -1), start, 3, temperature=0.1)
    np.testing.assert_array_equal(blocked, whole)
    assert (whole != start).any()


def overlapping_rows():
    # Rows of a known class, most of which have a label, lie among rows of a new class.
    features, groups = grouped_rows([60, 60], width=4, spread=0.9)
    codes = np.where((groups == 0) & (np.arange(120) % 5 > 0), 0, -1)
    return features, codes, groups


def test_a_row_without_a_label_is_less_often_of_a_class_whose_rows_have_theirs():
    features, codes, groups = overlapping_rows()
    near = find_neighbours(features, 15)
    plain = refine_rows(features, near, codes, groups, 2, temperature=0.1)
    known = refine_rows(features, near, codes, groups, 2, temperature=0.1, known_sizes=np.array([60.0]))
    free = codes < 0
    assert (known[free] == groups[free]).mean() > (plain[free] == groups[free]).mean() + 0.03
    assert (known[~free] == 0).all()


def test_a_class_of_which_hardly_any_row_has_a_label_loses_none():
    features, codes, groups = overlapping_rows()
    near = find_neighbours(features, 15)
    plain = refine_rows(features, near, codes, groups, 2, temperature=0.1)
    known = refine_rows(features, near, codes, groups, 2, temperature=0.1, known_sizes=np.array([1e12]))
    np.testing.assert_array_equal(known, plain)


def test_a_class_whose_rows_are_all_labelled_may_still_have_one_without():
    features, groups = grouped_rows([30, 30], spread=0.1)
    codes = np.where((groups == 0) & (np.arange(60) > 0), 0, -1)
    found = refine_rows(
        features,
        find_neighbours(features, 15),
        codes,
        groups,
        2,
        temperature=0.1,
        known_sizes=np.array([29.0]),
    )
    np.testing.assert_array_equal(found, groups)
