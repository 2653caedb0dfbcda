"""Accuracy, prediction bias and the error of the class count, on cases small enough to count by hand."""

from itertools import permutations

import numpy as np
import pytest

from pnp_gcd.metrics import (
    SplitAccuracy,
    cluster_count_error,
    intra_class_bias,
    named_accuracy,
    prediction_bias,
    split_cluster_accuracy,
)

# Known "a", "b"; novel "c", "d". The best pairing is 0-a, 1-b, 2-c, 3-d; every kind of error occurs once.
TRUE = list("aaaabbbccccddd")
FOUND = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 0, 3, 3, 2]
KNOWN = ["a", "b"]

SPLIT_SCORES = [split_cluster_accuracy, named_accuracy, prediction_bias]
PAIR_SCORES = [intra_class_bias, cluster_count_error]


def _call(score, y_true, y_pred, known=KNOWN):
    return score(y_true, y_pred) if score in PAIR_SCORES else score(y_true, y_pred, known)


def _pairings(found_labels, classes):
    """Yield every one-to-one pairing, as a dict that leaves unpaired found labels out."""
    found_labels, classes = sorted(found_labels), sorted(classes)
    for targets in permutations(classes + [None] * len(found_labels), len(found_labels)):
        yield {f: t for f, t in zip(found_labels, targets, strict=True) if t is not None}


def _slow_splits(y_true, y_pred, known, pairings):
    """Return the (all, known, novel) counts of correct rows of every pairing that is best overall."""
    counts = set()
    for pairing in pairings:
        correct = [t for t, p in zip(y_true, y_pred, strict=True) if pairing.get(p) == t]
        n_known = sum(t in known for t in correct)
        counts.add((len(correct), n_known, len(correct) - n_known))
    return {count for count in counts if count[0] == max(counts)[0]}


def _counts(accuracy, y_true, known):
    n_known = sum(t in known for t in y_true)
    sizes = (len(y_true), n_known, len(y_true) - n_known)
    return tuple(round(a * n) for a, n in zip(accuracy, sizes, strict=True))


def _as_objects(labels):
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _as_mixture(numbers):
    return _as_objects([f"class {number}" if number % 2 else number for number in numbers])


class _NoTruth:
    """Like pandas.NA: a comparison with it is itself, and it is neither true nor false."""

    __hash__ = object.__hash__

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value is ambiguous")

    def __repr__(self):
        return "<NA>"


# Accuracy by one matching


def test_hand_case_splits_into_all_known_and_novel():
    assert split_cluster_accuracy(TRUE, FOUND, KNOWN) == pytest.approx((10 / 14, 5 / 7, 5 / 7))


def test_one_matching_serves_known_and_novel_rows():
    # Cluster 0 fits "a" best (3 rows) and also holds every "c". A second matching for novel rows alone would
    # pair it with "c" again and call the novel rows right.
    assert split_cluster_accuracy(list("aaacc"), [0] * 5, ["a"]) == (0.6, 1.0, 0.0)


def test_known_classes_need_not_keep_their_label_for_cluster_accuracy():
    assert split_cluster_accuracy(["a", "a", "c"], ["c", "c", "a"], ["a"]) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_cluster_accuracy_equals_the_best_of_all_pairings(seed):
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(0, 4, 30).tolist(), rng.integers(0, 3 + seed % 2, 30).tolist()
    best = _slow_splits(y_true, y_pred, {0, 1}, _pairings(set(y_pred), set(y_true)))
    assert _counts(split_cluster_accuracy(y_true, y_pred, [0, 1]), y_true, {0, 1}) in best


def test_without_rows_of_a_kind_its_accuracy_is_nan():
    only_known = split_cluster_accuracy(["a", "b"], [0, 1], ["a", "b"])
    assert only_known[:2] == (1.0, 1.0)
    assert np.isnan(only_known.novel)
    only_novel = split_cluster_accuracy(["a", "b"], [0, 1], [])
    assert np.isnan(only_novel.known)
    assert only_novel.novel == 1.0


def test_scores_are_plain_floats():
    values = [value for score in SPLIT_SCORES for value in score(TRUE, FOUND, KNOWN)]
    values += [cluster_count_error(TRUE, FOUND), intra_class_bias(TRUE, FOUND).mean]
    assert {type(value) for value in values} == {float}


# Accuracy by name


def test_known_classes_count_only_under_their_own_label():
    assert named_accuracy(["a", "a", "b", "b"], ["b", "b", "a", "b"], KNOWN)[:2] == (0.25, 0.25)


def test_a_novel_row_under_a_known_label_is_wrong_even_if_the_label_fits_its_class():
    y_true, y_pred = ["c", "c", "d"], ["a", "a", "new-0"]
    assert split_cluster_accuracy(y_true, y_pred, ["a"]).novel == 1.0
    assert named_accuracy(y_true, y_pred, ["a"]).novel == pytest.approx(1 / 3)


def test_novel_labels_are_matched_whatever_they_are_called():
    # The discovered classes bear each other's true names: names mean nothing for novel classes.
    assert named_accuracy(["a", "c", "d"], ["a", "d", "c"], ["a"]) == (1.0, 1.0, 1.0)


def test_a_known_row_in_a_novel_cluster_is_wrong_and_leaves_the_cluster_free_for_a_novel_class():
    # "new" holds three rows of "a" and one of "c": it fits "a" best, but may only stand for a novel class.
    assert named_accuracy(["a", "a", "a", "c"], ["new"] * 4, ["a"]) == (0.25, 0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_named_accuracy_equals_the_best_of_all_allowed_pairings(seed):
    rng = np.random.default_rng(seed)
    y_true = rng.choice(["a", "b", "c", "d"], 30).tolist()
    y_pred = rng.choice(["a", "b", "n0", "n1", "n2"], 30).tolist()
    novel_pairings = _pairings({"n0", "n1", "n2"}, {"c", "d"})
    best = _slow_splits(y_true, y_pred, KNOWN, ({"a": "a", "b": "b"} | pairing for pairing in novel_pairings))
    assert {_counts(named_accuracy(y_true, y_pred, KNOWN), y_true, KNOWN)} == best


@pytest.mark.parametrize("seed", range(6))
def test_named_accuracy_never_exceeds_cluster_accuracy(seed):
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.choice(list("abcd"), 40), rng.choice(list("abcxy"), 40)
    assert named_accuracy(y_true, y_pred, KNOWN).all <= split_cluster_accuracy(y_true, y_pred, KNOWN).all


# Prediction bias


def test_hand_case_has_each_kind_of_error():
    bias = prediction_bias(TRUE, FOUND, KNOWN)
    assert bias._asdict() == pytest.approx(
        {"false_old": 1 / 14, "false_new": 1 / 14, "true_old": 1 / 14, "true_new": 1 / 14}
    )


@pytest.mark.parametrize(
    ("y_true", "kind"),
    [("aaac", "false_old"), ("ccca", "false_new"), ("aaab", "true_old"), ("cccd", "true_new")],
)
def test_an_error_is_named_by_its_true_and_its_predicted_side(y_true, kind):
    # One cluster, paired with the class of the first three rows: the last row is the error.
    bias = prediction_bias(list(y_true), [0, 0, 0, 0], KNOWN)
    assert {name: value for name, value in bias._asdict().items() if value} == {kind: 0.25}


def test_a_cluster_without_a_class_counts_as_new():
    # Cluster 1 splits a row off the known "a", cluster 3 one off the novel "c"; no class is left for either.
    bias = prediction_bias(list("aaaccc"), [0, 0, 1, 2, 2, 3], ["a"])
    assert bias == pytest.approx((0.0, 1 / 6, 0.0, 1 / 6))


def test_noise_counts_as_new():
    assert prediction_bias(list("aacc"), [0, -1, 1, -1], ["a"]) == (0.0, 0.25, 0.0, 0.25)


@pytest.mark.parametrize("n_found", [1, 3, 9])
@pytest.mark.parametrize("known", [[], [0], [0, 1, 2], [0, 1, 2, 3, 4]])
def test_accuracy_and_the_four_biases_add_up_to_one(n_found, known):
    rng = np.random.default_rng(n_found)
    y_true, y_pred = rng.integers(0, 5, 60), rng.integers(-1, n_found, 60)
    total = split_cluster_accuracy(y_true, y_pred, known).all + sum(prediction_bias(y_true, y_pred, known))
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_each_side_of_the_biases_adds_up_to_that_sides_errors(seed):
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(0, 5, 60), rng.integers(-1, 7, 60)
    accuracy, bias = (score(y_true, y_pred, [0, 1]) for score in (split_cluster_accuracy, prediction_bias))
    share_known = np.mean(y_true < 2)
    assert bias.false_new + bias.true_old == pytest.approx((1 - accuracy.known) * share_known)
    assert bias.false_old + bias.true_new == pytest.approx((1 - accuracy.novel) * (1 - share_known))


def test_intra_class_bias_counts_rows_and_correct_rows_of_each_class():
    bias = intra_class_bias(TRUE, FOUND)
    assert bias.classes.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(bias.n_rows, [4, 3, 4, 3])
    np.testing.assert_array_equal(bias.n_correct, [3, 2, 3, 2])
    assert bias.mean == -1.0


def test_intra_class_bias_weighs_classes_alike_whatever_their_size():
    # All 3 rows of "b" are lost, none of the 9 of "a": (0 - 3) / 2 classes.
    assert intra_class_bias(["a"] * 9 + ["b"] * 3, [0] * 12).mean == -1.5


# Error of the class count


@pytest.mark.parametrize(
    ("y_pred", "error"), [([0, 1, 2, 3], 1.0), ([0, 0, 1, 1], 0.0), ([5, 5, 5, 5], -0.5), ([-1] * 4, -1.0)]
)
def test_count_error_is_positive_for_too_many_and_negative_for_too_few(y_pred, error):
    assert cluster_count_error(["a", "a", "b", "b"], y_pred) == error


# Noise


@pytest.mark.parametrize("noise", [-1, -1.0, "-1"])
def test_noise_rows_are_errors_and_no_cluster(noise):
    # As a cluster, the noise rows would be paired with "b" and count as right.
    y_true, y_pred = ["a", "a", "b", "b"], _as_objects([0, 0, noise, noise])
    assert split_cluster_accuracy(y_true, y_pred, ["a"]) == (0.5, 1.0, 0.0)
    assert named_accuracy(y_true, _as_objects(["a", "a", noise, noise]), ["a"]) == (0.5, 1.0, 0.0)
    assert intra_class_bias(y_true, y_pred).n_correct.tolist() == [2, 0]
    assert cluster_count_error(y_true, y_pred) == -0.5


@pytest.mark.parametrize("label", [-1, "-1"])
def test_minus_one_is_a_cluster_where_the_truth_has_such_a_class(label):
    other = 1 if label == -1 else "1"
    y = [other, other, label]
    assert split_cluster_accuracy(y, y, [other]) == (1.0, 1.0, 1.0)
    assert named_accuracy(y, y, [other, label])[:2] == (1.0, 1.0)
    assert cluster_count_error(y, y) == 0.0


def test_minus_one_among_the_known_classes_alone_does_not_make_it_a_cluster():
    # As from np.unique(y) of a y that marks unlabelled rows by -1.
    assert split_cluster_accuracy([0, 0, 1], [0, 0, -1], [-1, 0]) == (pytest.approx(2 / 3), 1.0, 0.0)


def test_rows_that_are_all_noise_score_nothing():
    y_true, noise = ["a", "b"], [-1, -1]
    assert split_cluster_accuracy(y_true, noise, ["a"]) == (0.0, 0.0, 0.0)
    assert named_accuracy(y_true, noise, ["a"]) == (0.0, 0.0, 0.0)
    assert prediction_bias(y_true, noise, ["a"]) == (0.0, 0.5, 0.0, 0.5)
    assert intra_class_bias(y_true, noise).mean == -1.0


# Invariance


@pytest.mark.parametrize("score", [*SPLIT_SCORES, cluster_count_error])
@pytest.mark.parametrize("as_labels", [np.asarray, _as_mixture])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter_even_with_ties(score, as_labels, seed):
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.integers(0, 4, 12), rng.integers(0, 5, 12)  # few rows: several pairings tie
    order = rng.permutation(12)
    before = _call(score, as_labels(y_true), as_labels(y_pred), as_labels([0, 1]))
    after = _call(score, as_labels(y_true[order]), as_labels(y_pred[order]), as_labels([0, 1]))
    assert before == after


@pytest.mark.parametrize("score", [split_cluster_accuracy, prediction_bias])
def test_new_names_for_clusters_do_not_matter(score):
    renamed = [{0: "z", 1: "c", 2: 7, 3: "a"}[label] for label in FOUND]
    assert score(TRUE, renamed, KNOWN) == score(TRUE, FOUND, KNOWN)


@pytest.mark.parametrize("score", SPLIT_SCORES)
def test_new_names_for_classes_do_not_matter(score):
    y_pred = [{0: "a", 1: "b", 2: "n0", 3: "n1"}[label] for label in FOUND]
    rename = {"a": 9, "b": 3, "c": 5, "d": 1, "n0": 20, "n1": 10}
    renamed = score([rename[label] for label in TRUE], [rename[label] for label in y_pred], [9, 3])
    assert renamed == score(TRUE, y_pred, KNOWN)


# Kinds of label


@pytest.mark.parametrize("container", [list, tuple, np.array, _as_objects])
def test_strings_may_come_in_any_container(container):
    y_pred = ["a", "a", "x", "a"]
    expected = SplitAccuracy(0.75, 1.0, 0.5)
    assert named_accuracy(container(["a", "a", "c", "d"]), container(y_pred), container(["a"])) == expected


def test_known_strings_and_discovered_numbers_may_be_mixed():
    y_true, y_pred = ["a", "a", "c", "d"], ["a", 0, 1, 2]
    assert named_accuracy(y_true, y_pred, ["a"]) == (0.75, 0.5, 1.0)
    assert named_accuracy(y_true, _as_objects(y_pred), {"a"}) == (0.75, 0.5, 1.0)


def test_a_list_keeps_the_number_one_apart_from_the_string_one():
    assert cluster_count_error(["a", "b", "c"], ["1", 1, 2]) == 0.0


def test_whole_floats_and_ints_are_the_same_label():
    assert named_accuracy(np.array([0.0, 1.0]), np.array([0, 1]), [0, 1])[:2] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([2, 1], "i"), (["b", "a"], "U"), (["a", 1], "O"), (_as_objects([(1, 2), (0, 1)]), "O")],
)
def test_classes_come_back_with_their_own_type(labels, kind):
    bias = intra_class_bias(labels, [0, 1])
    assert bias.classes.dtype.kind == kind
    assert set(bias.classes.tolist()) == set(labels)


# Bad input


@pytest.mark.parametrize("score", SPLIT_SCORES + PAIR_SCORES)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        (["a", "b"], [0], "y_pred has 1 rows but y_true has 2"),
        ([], [], "y_true and y_pred are empty"),
        ([["a"], ["b"]], [0, 1], r"y_true=\[\['a'\], \['b'\]\] has shape \(2, 1\).*flatten"),
        (["a", "b"], [[0.9, 0.1], [0.2, 0.8]], r"y_pred=.* has shape \(2, 2\).*argmax"),
        ("a", [0], r"y_true='a' has shape \(\)"),
        ([0.0, np.nan, np.nan], [0, 1, 1], r"y_true\[1\]=nan is no label.*leave it out"),
        (["a", None], [0, 1], r"y_true\[1\]=None is no label"),
        (_as_objects(["a", "b", float("nan")]), [0, 1, 1], r"y_true\[2\]=nan is no label"),
        (_as_objects(["a", _NoTruth()]), [0, 1], r"y_true\[1\]=<NA> is no label"),
        (["a", "b"], [0, np.nan], r"y_pred\[1\]=nan is no label.*-1"),
    ],
)
def test_bad_rows_are_refused_by_name(score, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        _call(score, y_true, y_pred, ["a"])


def test_labels_that_cannot_be_hashed_are_refused_by_name():
    with pytest.raises(TypeError, match=r"y_true=.*unhashable.*numbers or strings"):
        cluster_count_error(_as_objects([["a"], ["b", "c"]]), [0, 1])


@pytest.mark.parametrize("score", SPLIT_SCORES)
@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([0, 1], r"known_classes=\[0, 1\] are numbers, but the labels of y_true are strings"),
        ("a", r"known_classes='a' has shape \(\)"),
        (None, r"known_classes=None has shape \(\)"),
        (["a", None], r"known_classes\[1\]=None is no label"),
    ],
)
def test_bad_known_classes_are_refused_by_name(score, known, message):
    with pytest.raises(ValueError, match=message):
        score(["a", "b"], [0, 1], known)


def test_known_classes_without_rows_and_given_twice_change_nothing():
    assert split_cluster_accuracy(TRUE, FOUND, ["a", "b", "b", "unseen"]) == split_cluster_accuracy(
        TRUE, FOUND, KNOWN
    )
