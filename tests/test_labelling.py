"""Which community is which class, and what class a row is."""

import math

import numpy as np
import pytest

from pnp_gcd.clustering import Clustering, mean_directions
from pnp_gcd.geometry import unit_rows
from pnp_gcd.labelling import (
    Grouping,
    Labelling,
    classify_rows,
    group_communities,
    label_groups,
    name_groups,
    score_classes,
    vote_for_communities,
)
from pnp_gcd.neighbours import find_neighbours


def grouped_rows(sizes, width=10, spread=0.1, seed=0):
    homes = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(homes), width))
    return unit_rows(np.eye(width)[homes] + spread * noise), homes


@pytest.fixture
def labelling():
    prototypes = unit_rows(np.random.default_rng(0).normal(size=(5, 4)))
    return Labelling(prototypes, np.array([0, 1, 2, 1, 0]), 1, 3)


def test_scores_are_the_logarithm_of_sums_over_a_class_s_prototypes(labelling):
    rows = unit_rows(np.random.default_rng(1).normal(size=(6, 4)))
    scores = score_classes(rows, labelling, 0.1)
    for i, row in enumerate(rows):
        for c in range(3):
            total = 0.0
            for prototype, owner in zip(labelling.prototypes, labelling.classes, strict=True):
                if owner == c:
                    total += math.exp(
                        sum(float(a) * float(b) for a, b in zip(row, prototype, strict=True)) / 0.1
                    )
            assert scores[i, c] == pytest.approx(math.log(total), rel=1e-4, abs=1e-4)
    np.testing.assert_array_equal(classify_rows(rows, labelling, 0.1), scores.argmax(axis=1))


def test_scores_stay_finite_at_a_tiny_temperature(labelling):
    scores = score_classes(labelling.prototypes, labelling, 1e-4)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores.argmax(axis=1), labelling.classes)


def test_names_give_owners_their_code_and_new_groups_numbers_by_size():
    homes = np.repeat([0, 1, 2, 3, 4], [10, 5, 9, 2, 3])
    sizes = np.bincount(homes)
    owner = np.array([1, -1, -1, -1, -1])
    group = np.array([0, 1, 2, 3, 1])  # communities 1 and 4 are one group of 8 rows
    found = name_groups(group, homes, sizes, owner, n_known=2, min_size=3)
    assert found.n_classes == 4
    assert [int(found.rows[homes == h][0]) for h in range(5)] == [1, 3, 2, -1, 3]


def grouping_of(codes, homes, features, **settings):
    return group_communities(
        codes,
        homes,
        np.ones(len(homes), dtype=bool),
        find_neighbours(features, 10),
        **({"n_known": int(codes.max()) + 1, "cut": np.inf} | settings),
    )


def test_communities_of_one_known_class_become_that_class_and_others_new():
    features, homes = grouped_rows([20, 20, 20, 30])
    codes = np.where((np.arange(len(homes)) % 2 == 0) & (homes < 3), np.array([0, 0, 1, -1])[homes], -1)
    found = grouping_of(codes, homes, features)
    assert found.n_classes == 3
    np.testing.assert_array_equal(found.rows, np.array([0, 0, 1, 2])[homes])


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_merging_goes_on_until_no_more_than_n_clusters_are_left(n_clusters):
    features, homes = grouped_rows([30, 20, 25, 30, 15], spread=0.5)
    codes = np.where((homes == 0) & (np.arange(len(homes)) % 2 == 0), 0, -1)
    assert grouping_of(codes, homes, features).n_classes == 5
    assert grouping_of(codes, homes, features, n_clusters=n_clusters).n_classes <= n_clusters


def test_without_links_to_merge_the_smallest_groups_give_way_to_n_clusters():
    features, homes = grouped_rows([30, 20, 25, 15], spread=0.01)
    codes = np.full(len(homes), -1)
    found = grouping_of(codes, homes, features, n_known=0, n_clusters=2)
    assert found.n_classes == 2
    np.testing.assert_array_equal(found.rows, np.array([0, -1, 1, -1])[homes])


def test_small_groups_are_no_class_unless_nothing_else_is():
    features, homes = grouped_rows([30, 3], spread=0.01)
    codes = np.full(len(homes), -1)
    assert grouping_of(codes, homes, features, n_known=0, min_size=5).n_classes == 1
    assert grouping_of(codes, homes, features, n_known=0, min_size=50).n_classes == 2


def test_a_known_class_without_a_community_still_counts():
    features, homes = grouped_rows([30, 30])
    codes = np.where((homes == 0) & (np.arange(60) % 2 == 0), 0, -1)
    assert grouping_of(codes, homes, features, n_known=3).n_classes == 4


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


def test_rows_far_from_every_community_vote_for_none():
    members = unit_rows(np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.1, 1.0, 0.0]]))
    labels = np.array([0, 0, 1, 1])
    clustering = Clustering(labels, mean_directions(members, labels), np.zeros(4, dtype=bool))
    asking = unit_rows(np.array([[1.0, 0.05, 0.0], [0.05, 1.0, 0.0], [0.3, 0.0, 1.0]]))
    assert vote_for_communities(asking, clustering, members).tolist() == [0, 1, -1]
