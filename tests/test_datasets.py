"""The digits as category discovery meets them."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_digits

from pnp_gcd.datasets import load_digits_split


def test_every_digit_row_is_in_exactly_one_part():
    split = load_digits_split()
    parts = [
        np.column_stack([split.X_labelled, split.y_labelled]),
        np.column_stack([split.X_unlabelled, split.y_unlabelled]),
        np.column_stack([split.X_unseen, split.y_unseen]),
    ]
    stacked = np.concatenate(parts)
    X, y = load_digits(return_X_y=True)
    whole = np.column_stack([X, y])
    np.testing.assert_array_equal(stacked[np.lexsort(stacked.T)], whole[np.lexsort(whole.T)])


def test_only_known_classes_have_labels_and_the_pool_holds_all():
    split = load_digits_split(n_known=4, random_state=3)
    np.testing.assert_array_equal(np.unique(split.y_labelled), split.known_classes)
    assert len(split.known_classes) == 4
    np.testing.assert_array_equal(np.unique(split.y_unlabelled), np.arange(10))
    np.testing.assert_array_equal(np.unique(split.y_unseen), np.arange(10))


def test_half_of_each_known_class_is_labelled_and_a_tenth_unseen():
    split = load_digits_split(random_state=1)
    assert len(split.X_unseen) == 180  # a tenth of 1797, rounded
    for label in split.known_classes:
        n_labelled = (split.y_labelled == label).sum()
        n_pool = (split.y_unlabelled == label).sum()
        assert abs(n_labelled - n_pool) <= 1


def test_the_seed_decides_classes_and_rows():
    first, again, other = (load_digits_split(random_state=seed) for seed in (0, 0, 1))
    for field in dataclasses.fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(again, field.name))
    assert first.known_classes.tolist() != other.known_classes.tolist()


def test_the_global_random_state_is_left_alone():
    np.random.seed(7)
    expected = np.random.random()
    np.random.seed(7)
    load_digits_split(random_state=None)
    assert np.random.random() == expected


def test_a_split_cannot_be_changed():
    split = load_digits_split()
    with pytest.raises(dataclasses.FrozenInstanceError):
        split.known_classes = np.arange(3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_known": 0}, r"n_known=0 must be an integer from 1 to 10"),
        ({"n_known": 11}, r"n_known=11 must be an integer from 1 to 10"),
        ({"n_known": 2.5}, r"n_known=2\.5 must be an integer"),
        ({"labelled": 0.0}, r"labelled=0\.0 must be above 0 and below 1"),
        ({"labelled": 1.0}, r"labelled=1\.0 must be above 0 and below 1"),
        ({"unseen": 1.0}, r"unseen=1\.0 must be from 0 to below 1"),
        ({"unseen": -0.1}, r"unseen=-0\.1 must be from 0 to below 1"),
        ({"labelled": float("nan")}, r"labelled=nan must be"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        load_digits_split(**wrong)
