"""A community in which too few rows have the label of its known class holds another class as well."""

import numpy as np
import pytest

from pnp_gcd.geometry import unit_rows
from pnp_gcd.merging import ClassSizes
from pnp_gcd.parting import part_communities


def usual_of(*known, shift=0.0):
    return ClassSizes(float(np.log(40)), 0.1, shift, np.array(known, dtype=float))


def make_world(n_known_rows=40, n_labelled=20, n_new=30, apart=0.6, seed=0):
    """Return rows of a known class, then of a new one near it, then 25 of one far away; codes; truth."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [n_known_rows, n_new, 25])
    centres = np.array([[1.0, 0, 0, 0, 0, 0], [1.0, apart, 0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0]])
    features = unit_rows(centres[truth] + 0.05 * rng.normal(size=(len(truth), 6)))
    codes = np.full(len(truth), -1)
    codes[:n_labelled] = 0
    return features, codes, truth


def together(truth):
    """Put the known class and the new one near it into one community."""
    return np.where(truth == 2, 1, 0)


def test_a_new_class_leaves_the_community_of_a_known_one():
    features, codes, truth = make_world()
    found = part_communities(features, together(truth), codes, usual_of(40))
    np.testing.assert_array_equal(found, truth)


def test_communities_are_numbered_by_size_again():
    features, codes, truth = make_world(n_known_rows=20, n_labelled=10, n_new=60)
    found = part_communities(features, together(truth), codes, usual_of(20))
    np.testing.assert_array_equal(found, np.array([2, 0, 1])[truth])


def test_rows_with_a_label_stay_even_if_they_look_like_the_others():
    features, codes, truth = make_world()
    features[0] = features[50]
    found = part_communities(features, together(truth), codes, usual_of(40))
    assert found[0] == found[1]
    assert found[50] != found[1]


def unchanged(features, codes, truth, usual):
    parted = part_communities(features, together(truth), codes, usual)
    return len(np.unique(parted)) == 2


def test_a_community_that_shows_as_many_labels_as_its_class_stays_whole():
    features, codes, truth = make_world(n_new=0)
    assert unchanged(features, codes, truth, usual_of(40))


def test_a_class_of_which_few_rows_are_labelled_may_show_few():
    """20 of 400 are labelled: 20 labels among 70 rows are many."""
    features, codes, truth = make_world()
    assert unchanged(features, codes, truth, usual_of(400))


def test_a_share_that_may_be_lower_than_estimated_proves_less():
    """20 labels among 52 rows are few if 20 of 28 are labelled, and as many as expected of 20 of 51."""
    features, codes, truth = make_world(n_new=12)
    assert not unchanged(features, codes, truth, usual_of(28))
    assert unchanged(features, codes, truth, usual_of(28, shift=0.3))


def test_a_class_that_seems_wholly_labelled_may_have_a_few_rows_more():
    features, codes, truth = make_world(n_known_rows=40, n_labelled=36, n_new=4)
    assert unchanged(features, codes, truth, usual_of(36))


@pytest.mark.parametrize("n_labelled", [0, 1])
def test_one_label_alone_decides_nothing(n_labelled):
    """With two, of a class of four, the same community comes apart."""
    features, codes, truth = make_world(n_known_rows=2, n_labelled=n_labelled)
    assert unchanged(features, codes, truth, usual_of(2))
    features, codes, truth = make_world(n_known_rows=4, n_labelled=2)
    assert not unchanged(features, codes, truth, usual_of(4))


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


def test_few_rows_that_leave_are_no_community():
    """Eleven rows are too many, but only three of them look like a class of their own."""
    features, codes, truth = make_world(n_known_rows=30, n_new=3, apart=3.0)
    assert unchanged(features, codes, truth, usual_of(20))
    features, codes, truth = make_world(n_known_rows=30, n_new=4, apart=3.0)
    assert not unchanged(features, codes, truth, usual_of(20))


def test_rows_with_the_label_of_another_class_are_not_too_many():
    """60 of 120 rows show the label of the class, as half of it is labelled; 40 more show another's."""
    rng = np.random.default_rng(0)
    lumps = np.repeat([0, 1, 0], [60, 60, 40])
    features = unit_rows(
        np.array([[1.0, 0, 0, 0], [1.0, 0.5, 0, 0]])[lumps] + 0.05 * rng.normal(size=(160, 4))
    )
    codes = np.repeat([0, -1, 1], [60, 60, 40])
    homes = np.zeros(160, dtype=np.int64)
    assert part_communities(features, homes, codes, usual_of(120, 40)).max() == 0
    codes[codes == 1] = -1
    assert part_communities(features, homes, codes, usual_of(120, 40)).max() == 1


def test_no_label_ever_leaves_its_community_in_random_worlds():
    n_parted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        before = rng.integers(0, 6, size=300)
        features = unit_rows(rng.normal(size=(6, 5))[before] + 0.8 * rng.normal(size=(300, 5)))
        codes = np.where((before < 4) & (rng.random(300) < 0.3), before, -1)
        found = part_communities(features, before, codes, usual_of(*rng.integers(20, 60, size=4)))
        for community in range(6):
            labelled = (before == community) & (codes >= 0)
            assert len(np.unique(found[labelled])) <= 1
        pairs = np.unique(np.column_stack([before, found]), axis=0)
        assert len(pairs) == found.max() + 1  # nothing is put together
        assert (np.diff(np.bincount(found)) <= 0).all()  # by size
        n_parted += len(pairs) - 6
    assert n_parted >= 10
