"""A community in which too few rows have the label of its known class holds another class as well."""

import numpy as np
import pytest

from pnp_gcd.clustering import Clustering, mean_directions
from pnp_gcd.geometry import unit_rows
from pnp_gcd.merging import ClassSizes
from pnp_gcd.parting import part_communities


def usual_of(*known):
    return ClassSizes(float(np.log(40)), 0.1, 0.0, np.array(known, dtype=float))


def make_world(n_known_rows=40, n_labelled=20, n_new=30, apart=0.6, seed=0):
    """Return rows of a known class, then of a new one near it, then 25 of one far away; codes; truth."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [n_known_rows, n_new, 25])
    centres = np.array([[1.0, 0, 0, 0, 0, 0], [1.0, apart, 0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0]])
    features = unit_rows(centres[truth] + 0.05 * rng.normal(size=(len(truth), 6)))
    codes = np.full(len(truth), -1)
    codes[:n_labelled] = 0
    return features, codes, truth


def as_clustering(features, labels):
    labels = np.asarray(labels)
    return Clustering(labels, mean_directions(features, labels), np.zeros(len(labels), dtype=bool))


def together(features, truth):
    """Put the known class and the new one near it into one community."""
    return as_clustering(features, np.where(truth == 2, 1, 0))


def test_a_new_class_leaves_the_community_of_a_known_one():
    features, codes, truth = make_world()
    found = part_communities(features, together(features, truth), codes, usual_of(40))
    np.testing.assert_array_equal(found.labels, truth)
    np.testing.assert_allclose(found.centroids, mean_directions(features, found.labels))


def test_communities_are_numbered_by_size_again():
    features, codes, truth = make_world(n_known_rows=20, n_labelled=10, n_new=60)
    found = part_communities(features, together(features, truth), codes, usual_of(20))
    np.testing.assert_array_equal(found.labels, np.array([2, 0, 1])[truth])


def test_rows_with_a_label_stay_even_if_they_look_like_the_others():
    features, codes, truth = make_world()
    features[0] = features[50]
    found = part_communities(features, together(features, truth), codes, usual_of(40))
    assert found.labels[0] == found.labels[1]
    assert found.labels[50] != found.labels[1]


def unchanged(features, codes, truth, usual):
    before = together(features, truth)
    return part_communities(features, before, codes, usual) is before


def test_a_community_that_shows_as_many_labels_as_its_class_stays_whole():
    features, codes, truth = make_world(n_new=0)
    assert unchanged(features, codes, truth, usual_of(40))


def test_a_class_of_which_few_rows_are_labelled_may_show_few():
    """20 of 400 are labelled: 20 labels among 70 rows are many."""
    features, codes, truth = make_world()
    assert unchanged(features, codes, truth, usual_of(400))


@pytest.mark.parametrize("n_labelled", [0, 1])
def test_one_label_alone_decides_nothing(n_labelled):
    features, codes, truth = make_world(n_labelled=n_labelled)
    assert unchanged(features, codes, truth, usual_of(40))


def test_labels_of_several_classes_decide_nothing():
    features, codes, truth = make_world()
    codes[:20] = np.arange(20) % 2
    assert unchanged(features, codes, truth, usual_of(20, 20))


def test_a_few_rows_too_many_are_no_community():
    features, codes, truth = make_world(n_known_rows=20, n_labelled=20, n_new=3)
    assert unchanged(features, codes, truth, usual_of(20))


def test_rows_that_are_all_alike_stay_together():
    features, codes, truth = make_world()
    features[truth < 2] = features[0]
    assert unchanged(features, codes, truth, usual_of(40))


@pytest.mark.parametrize("seed", range(10))
def test_no_label_ever_leaves_its_community_in_random_worlds(seed):
    rng = np.random.default_rng(seed)
    features = unit_rows(rng.normal(size=(300, 5)))
    before = as_clustering(features, rng.integers(0, 6, size=300))
    codes = np.where(rng.random(300) < 0.3, rng.integers(0, 4, size=300), -1)
    found = part_communities(features, before, codes, usual_of(*rng.integers(20, 80, size=4)))
    for community in range(6):
        labelled = (before.labels == community) & (codes >= 0)
        assert len(np.unique(found.labels[labelled])) == 1
    pairs = np.unique(np.column_stack([before.labels, found.labels]), axis=0)
    assert len(pairs) == found.n_communities  # nothing is put together
