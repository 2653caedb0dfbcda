"""What classes look like, and how well a row fits each."""

import math

import numpy as np
import pytest

from pnp_gcd import labelling as module
from pnp_gcd.geometry import unit_rows
from pnp_gcd.grouping import Grouping
from pnp_gcd.labelling import (
    Labelling,
    classify_rows,
    fit_sharpness,
    join_scores,
    label_groups,
    measure_closeness,
    score_classes,
)
from pnp_gcd.refinement import Discriminant, fit_discriminant


def grouped_rows(sizes, width=10, spread=0.1, seed=0):
    homes = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(homes), width))
    return unit_rows(np.eye(width)[homes] + spread * noise), homes


def draw_unit(seed, n_rows):
    return unit_rows(np.random.default_rng(seed).normal(size=(n_rows, 4)))


# --- scores ------------------------------------------------------------------------------------------------


@pytest.fixture
def labelling():
    """Five prototypes of three classes, and three class means in a space that is turned and stretched."""
    axes = np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32)
    discriminant = Discriminant(axes, draw_unit(3, 3))
    return Labelling(draw_unit(0, 5), np.array([0, 1, 2, 1, 0]), discriminant, 1, 3)


def dot(first, second):
    return sum(float(a) * float(b) for a, b in zip(first, second, strict=True))


def test_scores_add_up_what_prototypes_and_class_means_say(labelling):
    rows, temperature = draw_unit(1, 6), 0.1
    scores = score_classes(rows, labelling, temperature)
    axes, means = labelling.discriminant
    for i, row in enumerate(rows):
        mapped = [dot(row, column) for column in axes.T]
        length = math.sqrt(dot(mapped, mapped))
        for name in range(3):
            kernels = [
                math.exp(dot(row, prototype) / (module._LOCAL * temperature))
                for prototype, owner in zip(labelling.prototypes, labelling.classes, strict=True)
                if owner == name
            ]
            expected = math.log(sum(kernels) / len(kernels)) + dot(mapped, means[name]) / length / temperature
            assert scores[i, name] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    np.testing.assert_array_equal(classify_rows(rows, labelling, temperature), scores.argmax(axis=1))


@pytest.mark.parametrize("block", [1, 4, 1000])
def test_the_size_of_blocks_does_not_matter(labelling, monkeypatch, block):
    rows = draw_unit(1, 9)
    monkeypatch.setattr(module, "_BLOCK_ROWS", block)
    np.testing.assert_array_equal(
        classify_rows(rows, labelling, 0.1), score_classes(rows, labelling, 0.1).argmax(axis=1)
    )


def test_scores_stay_finite_at_a_tiny_temperature(labelling):
    scores = score_classes(labelling.prototypes, labelling, 1e-4)
    assert np.isfinite(scores).all()


def test_closeness_is_the_cosine_with_the_nearest_class_mean():
    features, rows = grouped_rows([20, 20, 20], spread=0.3)
    discriminant = fit_discriminant(features, rows, 3)
    labelling = Labelling(features[:3], np.arange(3), discriminant, 3, 3)
    mapped = features.astype(float) @ discriminant.axes
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    slow = [max(dot(row, mean) for mean in discriminant.directions) for row in mapped]
    np.testing.assert_allclose(measure_closeness(features, labelling), slow, atol=1e-6)


def test_rows_unlike_any_class_are_farther_than_every_row_of_a_class():
    features, rows = grouped_rows([30, 30, 30])
    labelling = Labelling(features[:3], np.arange(3), fit_discriminant(features, rows, 3), 3, 3)
    strangers = unit_rows(np.eye(10)[[5, 6, 7]])
    assert measure_closeness(strangers, labelling).max() < measure_closeness(features, labelling).min()


# --- sharpness ---------------------------------------------------------------------------------------------


def mean_top(scores, sharpness):
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return (weights.max(axis=1) / weights.sum(axis=1)).mean()


@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.9])
def test_sharpness_makes_the_mean_top_probability_the_accuracy(accuracy):
    scores = 10 * np.random.default_rng(0).normal(size=(300, 5))
    assert mean_top(scores, fit_sharpness(scores, accuracy)) == pytest.approx(accuracy, abs=1e-3)


def test_sharpness_of_two_classes_by_its_closed_form():
    scores = np.tile([[4.0, 0.0], [0.0, 4.0]], (10, 1))
    assert fit_sharpness(scores, 0.8) == pytest.approx(math.log(0.8 / 0.2) / 4, abs=1e-3)


@pytest.mark.parametrize(("accuracy", "end"), [(1.0, 1), (0.0, 0), (1 / 5, 0)])
def test_sharpness_stays_within_its_limits_where_the_accuracy_is_out_of_reach(accuracy, end):
    scores = np.random.default_rng(0).normal(size=(300, 5))
    assert fit_sharpness(scores, accuracy) == module._SHARPNESS[end]


def test_sharpness_does_not_depend_on_an_offset_of_a_row_s_scores():
    rng = np.random.default_rng(0)
    scores = 10 * rng.normal(size=(100, 4))
    moved = scores + 1e3 * rng.normal(size=(100, 1))
    assert fit_sharpness(moved, 0.8) == pytest.approx(fit_sharpness(scores, 0.8), abs=1e-3)


# --- prototypes --------------------------------------------------------------------------------------------


def test_labelled_rows_alone_speak_for_the_mean_of_a_known_class():
    features, homes = grouped_rows([20, 20])
    codes = np.where((homes == 0) & (np.arange(40) < 5), 0, -1)
    found = label_groups(features, codes, Grouping(homes, 2), homes, n_known=1)
    np.testing.assert_allclose(
        found.prototypes[0], unit_rows(features[:5].mean(0, keepdims=True))[0], atol=1e-6
    )
    np.testing.assert_allclose(
        found.prototypes[1], unit_rows(features[20:].mean(0, keepdims=True))[0], atol=1e-6
    )
    assert found.classes.tolist() == [0, 1]


def test_a_class_of_several_communities_has_a_prototype_for_each_beside_its_mean():
    features, homes = grouped_rows([20, 20, 15])
    codes = np.full(55, -1)
    found = label_groups(features, codes, Grouping(np.array([0, 0, 1])[homes], 2), homes, n_known=0)
    assert found.classes.tolist() == [0, 1, 0, 0]
    for place, home in ((2, 0), (3, 1)):
        mean = unit_rows(features[homes == home].mean(0, keepdims=True))[0]
        np.testing.assert_allclose(found.prototypes[place], mean, atol=1e-6)


def test_new_classes_are_numbered_by_the_rows_they_win():
    features, homes = grouped_rows([10, 30, 20])
    found = label_groups(features, np.full(60, -1), Grouping(homes, 3), homes, n_known=0)
    won = np.bincount(classify_rows(features, found, 0.1))
    assert won.tolist() == [30, 20, 10]


def test_a_new_class_that_wins_no_row_is_dropped():
    features, homes = grouped_rows([20, 20])
    codes = np.where((homes == 0) & (np.arange(40) % 2 == 0), 0, -1)
    codes[homes == 1] = 1
    # Class 2 is a row that its own known neighbours win.
    rows = homes.copy()
    rows[1] = 2
    found = label_groups(features, codes, Grouping(rows, 3), homes, n_known=2, temperature=0.1)
    won = np.bincount(classify_rows(features[codes < 0], found, 0.1), minlength=found.n_classes)
    assert (won[2:] > 0).all()


@pytest.mark.parametrize("n_clusters", [3, 5, 12])
def test_classes_are_added_until_there_are_exactly_n_clusters(n_clusters):
    features, homes = grouped_rows([20, 20, 20])
    codes = np.where((homes == 0) & (np.arange(60) % 2 == 0), 0, -1)
    found = label_groups(features, codes, Grouping(homes, 3), homes, n_known=1, n_clusters=n_clusters)
    assert found.n_classes == n_clusters
    assert set(found.classes.tolist()) == set(range(n_clusters))
    assert (np.bincount(classify_rows(features[codes < 0], found, 0.1), minlength=n_clusters) > 0).all()


def test_rows_without_a_class_have_no_say_in_prototypes():
    features, homes = grouped_rows([20, 20, 4])
    rows = np.array([0, 1, -1])[homes]
    found = label_groups(features, np.full(44, -1), Grouping(rows, 2), homes, n_known=0)
    alone = label_groups(features[:40], np.full(40, -1), Grouping(rows[:40], 2), homes[:40], n_known=0)
    np.testing.assert_array_equal(np.sort(found.prototypes, axis=0), np.sort(alone.prototypes, axis=0))


def test_known_classes_keep_their_codes_whatever_their_size():
    features, homes = grouped_rows([5, 40, 20])
    codes = np.where(np.arange(65) % 2 == 0, np.where(homes < 2, homes, -1), -1)
    found = label_groups(features, codes, Grouping(homes, 3), homes, n_known=2)
    np.testing.assert_array_equal(classify_rows(features, found, 0.1), homes)


def test_the_discriminant_is_fitted_on_labelled_rows_under_their_label():
    features, homes = grouped_rows([20, 20, 20])
    codes = np.full(60, -1)
    codes[[0, 25]] = [1, 1]  # row 0 lies in the community of class 0
    found = label_groups(features, codes, Grouping(homes, 3), homes, n_known=2)
    rows = homes.copy()
    rows[0] = 1
    np.testing.assert_allclose(
        found.discriminant.cosines(features), fit_discriminant(features, rows, 3).cosines(features), atol=1e-5
    )


def test_class_means_are_renumbered_together_with_prototypes():
    features, homes = grouped_rows([10, 30, 20], spread=0.3)
    found = label_groups(features, np.full(60, -1), Grouping(homes, 3), homes, n_known=0)
    renamed = np.array([2, 0, 1])[homes]  # largest first
    np.testing.assert_array_equal(found.discriminant.cosines(features).argmax(axis=1), renamed)
    np.testing.assert_array_equal(found.classes[(features @ found.prototypes.T).argmax(axis=1)], renamed)


def test_a_community_split_between_classes_speaks_for_each_with_its_own_rows():
    features, homes = grouped_rows([20, 20, 20])
    rows = homes.copy()
    rows[:5] = 1  # a corner of community 0 went to class 1
    found = label_groups(features, np.full(60, -1), Grouping(rows, 3), homes, n_known=0)
    pieces = {tuple(p) for p in found.prototypes.round(4).tolist()}
    for piece in (features[:5], features[20:40]):
        mean = unit_rows(piece.astype(float).mean(axis=0, keepdims=True))[0]
        assert min(np.abs(mean - p).max() for p in pieces) < 1e-3


def test_a_class_that_lost_its_rows_is_no_class():
    # Refinement left class 2 without a row; class 0 reaches from the first axis to the third.
    axis = np.repeat([0, 2, 1], [20, 20, 30])
    features = unit_rows(np.eye(6)[axis] + 0.15 * np.random.default_rng(0).normal(size=(70, 6)))
    rows = np.repeat([0, 1], [40, 30])
    assert label_groups(features, np.full(70, -1), Grouping(rows, 3), rows, n_known=0).n_classes == 2


def test_a_class_that_lost_its_rows_is_begun_anew_where_exactly_so_many_are_asked_for():
    features, rows = grouped_rows([30, 30], spread=0.2)
    found = label_groups(features, np.full(60, -1), Grouping(rows, 3), rows, n_known=0, n_clusters=3)
    assert (np.bincount(classify_rows(features, found, 0.1), minlength=3) > 0).all()


# --- classes that were merged ------------------------------------------------------------------------------


def softmax(scores, sharpness):
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("sharpness", [0.02, 1.0, 2.0])
def test_the_probability_of_joined_classes_is_the_sum_of_their_parts(sharpness):
    scores = np.random.default_rng(0).normal(0, 20, (50, 5))
    homes = np.array([2, 0, 1, 2, 0])
    found = softmax(join_scores(scores, homes, sharpness), sharpness)
    parts = softmax(scores, sharpness)
    expected = np.stack([parts[:, homes == home].sum(axis=1) for home in range(3)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_classes_that_are_not_joined_keep_every_bit():
    scores = np.random.default_rng(0).normal(0, 20, (50, 4))
    assert np.array_equal(join_scores(scores, np.arange(4), 0.3), scores)
    assert np.array_equal(join_scores(scores, np.array([3, 1, 0, 2]), 0.3), scores[:, [2, 1, 3, 0]])
    assert np.array_equal(join_scores(scores, np.array([0, 1, 1, 2]), 0.3)[:, [0, 2]], scores[:, [0, 3]])


@pytest.mark.filterwarnings("error")
def test_scores_that_are_nothing_stay_nothing():
    assert np.isnan(join_scores(np.full((2, 3), np.nan), np.array([0, 0, 1]), 1.0)).all()
