"""Classes and labels hidden: who is labelled, who is not, who is unseen."""

import numpy as np
import pytest

from pnp_gcd.datasets import DiscoveryDataset, load_dataset, load_digits_split, make_discovery_split

LABELS = np.repeat(["ant", "bee", "cow", "dog"], [10, 20, 30, 40])


def parts_of(split):
    return split.labelled.tolist(), split.unlabelled.tolist(), split.unseen.tolist()


# --- positions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unseen", [0.0, 0.25])
def test_every_row_is_in_exactly_one_part_and_each_part_ascends(unseen):
    split = make_discovery_split(LABELS, unseen=unseen, seed=3)
    parts = parts_of(split)
    assert sorted([row for part in parts for row in part]) == list(range(100))
    assert all(part == sorted(part) for part in parts)
    assert len(split.unseen) == round(100 * unseen)


def test_half_of_each_given_class_is_labelled():
    split = make_discovery_split(LABELS, known=["dog", "bee"])
    names, counts = np.unique(LABELS[split.labelled], return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {"bee": 10, "dog": 20}
    assert split.known_classes.tolist() == ["bee", "dog"]
    assert split.novel_classes.tolist() == ["ant", "cow"]


def test_a_number_of_labels_is_given_to_each_known_class_or_all_it_has():
    split = make_discovery_split(LABELS, known=["ant", "cow"], labelled=12)
    names, counts = np.unique(LABELS[split.labelled], return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {"ant": 10, "cow": 12}


def test_a_small_class_keeps_one_label():
    split = make_discovery_split(["a", "b", "b"], known=2, labelled=0.1)
    assert len(split.labelled) == 2


@pytest.mark.parametrize(("known", "expected"), [(0.5, 2), (3, 3), (0.01, 1), (1.0, 4), (np.int64(2), 2)])
def test_known_is_a_part_or_a_number_of_the_classes(known, expected):
    split = make_discovery_split(LABELS, known=known)
    assert len(split.known_classes) == expected
    assert len(split.novel_classes) == 4 - expected


def test_one_as_a_float_is_all_classes_and_as_an_integer_one():
    assert len(make_discovery_split(LABELS, known=1.0).known_classes) == 4
    assert len(make_discovery_split(LABELS, known=1).known_classes) == 1


def test_the_order_in_which_known_classes_are_given_changes_nothing():
    first = make_discovery_split(LABELS, known=["dog", "bee"], unseen=0.2)
    other = make_discovery_split(LABELS, known=np.array(["bee", "dog"]), unseen=0.2)
    assert parts_of(first) == parts_of(other)


def test_a_split_is_this_one_under_every_version():
    split = make_discovery_split(np.repeat(np.arange(4), 3), unseen=0.25, seed=0)
    assert split.known_classes.tolist() == [2, 3]
    assert parts_of(split) == ([7, 9, 10], [0, 2, 3, 4, 5, 11], [1, 6, 8])


def test_seeds_differ_and_the_global_random_state_is_left_alone():
    np.random.seed(7)
    expected = np.random.random()
    np.random.seed(7)
    first, other = (parts_of(make_discovery_split(LABELS, seed=seed)) for seed in (0, 1))
    assert first != other
    assert np.random.random() == expected


def test_renamed_classes_in_the_same_order_give_the_same_rows():
    numbers = np.unique(LABELS, return_inverse=True)[1]
    split, same = (make_discovery_split(y, unseen=0.3, seed=5) for y in (LABELS, numbers))
    assert parts_of(split) == parts_of(same)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"known": 0}, r"known=0 must be an integer from 1 to 4"),
        ({"known": 5}, r"known=5 must be an integer from 1 to 4"),
        ({"known": 0.0}, r"known=0\.0 must be .* above 0\.0 and up to 1\.0"),
        ({"known": 1.5}, r"known=1\.5 must be"),
        ({"known": float("nan")}, r"known=nan must be"),
        ({"known": True}, r"known=True must be a part of the classes"),
        ({"known": "ant"}, r"known='ant' must be .* a list of them"),
        ({"known": ["ant", "owl"]}, r"known has 'owl', which is no class of y"),
        ({"known": [0, 1]}, r"known has 0, which is no class of y\. Its classes are \['ant'"),
        ({"known": []}, r"known has 0 classes"),
        ({"known": ["ant", "ant"]}, r"known has 2 classes, 1 of them different"),
        ({"labelled": 0}, r"labelled=0 must be above 0"),
        ({"labelled": 1.0}, r"labelled=1\.0 must be above 0 and below 1"),
        ({"labelled": "half"}, r"labelled='half' must be"),
        ({"unseen": 1.0}, r"unseen=1\.0 must be from 0 to below 1"),
        ({"unseen": -0.1}, r"unseen=-0\.1 must be"),
        ({"seed": None}, r"seed=None must be an integer"),
        ({"seed": -1}, r"seed=-1 must be an integer"),
    ],
)
def test_wrong_values_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_discovery_split(LABELS, **wrong)


def test_a_known_class_without_a_row_left_is_an_error():
    with pytest.raises(ValueError, match=r"unseen=0\.9 leaves a known class without rows"):
        make_discovery_split(np.arange(10), known=10, unseen=0.9)


@pytest.mark.parametrize("missing", [-1, None, float("nan"), "-1"])
def test_a_row_without_a_true_class_is_an_error(missing):
    y = np.array([1, 2, missing, 2], dtype=object)
    with pytest.raises(ValueError, match=r"y has 1 missing labels"):
        make_discovery_split(y)


@pytest.mark.parametrize("y", [[], [[1, 2], [1, 2]]])
def test_labels_have_one_dimension(y):
    with pytest.raises(ValueError, match=r"y has the shape"):
        make_discovery_split(y)


# --- rows --------------------------------------------------------------------------------------------------


def test_rows_follow_their_positions():
    X = np.arange(300).reshape(100, 3)
    split = make_discovery_split(LABELS, unseen=0.2)
    data = split.take(X, LABELS)
    for name in ("labelled", "unlabelled", "unseen"):
        np.testing.assert_array_equal(getattr(data, f"X_{name}")[:, 0], 3 * getattr(split, name))
        np.testing.assert_array_equal(getattr(data, f"y_{name}"), LABELS[getattr(split, name)])


def test_rows_that_were_not_split_are_refused():
    with pytest.raises(ValueError, match=r"X has 99 rows and y 100, but 100 were split"):
        make_discovery_split(LABELS).take(np.zeros(99), LABELS)


# --- data sets ---------------------------------------------------------------------------------------------


def make_dataset(*, n_test=4, known_classes=("bee", "cow")):
    known = None if known_classes is None else np.array(known_classes)
    X_test, y_test = np.arange(100, 100 + n_test), np.resize(["ant", "dog"], n_test)
    return DiscoveryDataset(
        "farm", "features", np.arange(100), LABELS, X_test, y_test, np.unique(LABELS), known_classes=known
    )


def test_the_protocol_decides_known_classes_and_the_official_test_rows_are_unseen():
    data = make_dataset().split(seed=1)
    assert data.known_classes.tolist() == ["bee", "cow"]
    assert data.X_unseen.tolist() == [100, 101, 102, 103]
    assert data.y_unseen.tolist() == ["ant", "dog", "ant", "dog"]
    assert len(data.X_labelled) == 25
    assert len(data.X_unlabelled) == 75


def test_a_part_to_keep_unseen_is_drawn_and_the_official_test_rows_are_left_out():
    data = make_dataset().split(unseen=0.3)
    assert len(data.X_unseen) == 30
    assert data.X_unseen.max() < 100


def test_without_test_rows_a_tenth_is_unseen_and_without_a_protocol_half_is_known():
    data = make_dataset(n_test=0, known_classes=None).split()
    assert len(data.X_unseen) == 10
    assert len(data.known_classes) == 2
    drawn = {tuple(make_dataset(known_classes=None).split(seed).known_classes) for seed in range(10)}
    assert len(drawn) > 1


def test_known_classes_may_be_chosen_against_the_protocol():
    assert make_dataset().split(known=["ant"]).known_classes.tolist() == ["ant"]
    assert len(make_dataset().split(known=3).known_classes) == 3


def test_a_protocol_of_which_no_class_is_there_is_an_error():
    with pytest.raises(ValueError, match=r"no row of a class that its protocol knows"):
        make_dataset(known_classes=["owl"]).split()
    assert make_dataset(known_classes=["owl", "cow"]).split().known_classes.tolist() == ["cow"]


def test_rows_without_labels_are_refused():
    with pytest.raises(ValueError, match=r"X_test of 'farm' has 2 rows, but y_test 3"):
        DiscoveryDataset("farm", "features", np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(3), np.zeros(1))


@pytest.mark.parametrize("seed", [0, 4])
def test_digits_by_name_are_split_as_load_digits_split_does(seed):
    data, same = load_dataset("digits").split(seed), load_digits_split(random_state=seed)
    np.testing.assert_array_equal(data.X_labelled, same.X_labelled)
    np.testing.assert_array_equal(data.y_unlabelled, same.y_unlabelled)
    np.testing.assert_array_equal(data.X_unseen, same.X_unseen)
