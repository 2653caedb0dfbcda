"""How many rows known classes have, by what labels show."""

import numpy as np
import pytest

from pnp_gcd.neighbours import Neighbours
from pnp_gcd.sizing import (
    LabelMixture,
    LookingKnown,
    describe_sizes,
    estimate_sizes,
    expect_known_part,
    look_known,
    read_labels,
    split_shares,
)


def mixture_of(n_labelled, sizes, n_rows=10**6):
    """Return what is seen around classes of some sizes, of which ``n_labelled`` rows are labelled."""
    n_labelled, sizes = np.asarray(n_labelled), np.asarray(sizes)
    return LabelMixture((n_labelled - 1) / (sizes - 1), 0.0, n_labelled, 10**9, n_rows)


# --- what labels say ---------------------------------------------------------------------------------------


def neighbours_of(indices):
    indices = np.array(indices, dtype=np.int64)
    return Neighbours(indices, np.ones(indices.shape, dtype=np.float32))


def test_labels_around_labelled_rows_are_counted_by_hand():
    # Around class 0: 3 of 4 are labelled; around class 1: 1 of 2. Of those four, two are alike.
    near = neighbours_of([[1, 3], [0, 2], [1, 4], [0, 1], [0, 2]])
    found = read_labels(near, np.array([0, 0, 1, -1, -1]), 2)
    np.testing.assert_allclose(found.seen, [4 / 6, 4 / 6])  # six neighbours: classes differ by chance only
    assert found.n_labelled.tolist() == [2, 1]
    assert found.n_seen == 4
    assert found.mixing == pytest.approx(2 / 5)  # two of four and one
    assert found.n_rows == 5


def test_shares_that_differ_by_more_than_chance_are_kept_apart():
    # Two classes of 100 rows each, every row sees the ten rows before it; 95 and 5 rows are labelled.
    rows = np.arange(100)
    indices = np.concatenate([(rows[:, None] - np.arange(1, 11)) % 100 + start for start in (0, 100)])
    codes = np.full(200, -1)
    codes[:95], codes[100:200:20] = 0, 1
    found = read_labels(neighbours_of(indices), codes, 2)
    near = np.array([(codes[indices[codes == c]] >= 0).mean() for c in (0, 1)])
    assert near[0] > 0.9
    assert near[1] == 0.0  # twenty rows apart
    np.testing.assert_allclose(found.seen, near, atol=0.05)


def test_only_the_ten_nearest_rows_are_looked_at():
    indices = np.array([np.delete(np.arange(14), row) for row in range(14)])
    codes = np.where(np.arange(14) < 11, 0, -1)  # the last columns alone are unlabelled rows
    found = read_labels(neighbours_of(indices), codes, 1)
    np.testing.assert_allclose(found.seen, [1.0])


def test_without_labelled_neighbours_nothing_is_seen():
    found = read_labels(neighbours_of([[1], [0], [1]]), np.array([0, -1, -1]), 1)
    np.testing.assert_allclose(found.seen, [0.0])
    assert split_shares(found, 1.0)[0] > 0


def test_a_labelled_row_is_not_its_own_neighbour():
    # 5 of 20 rows labelled: each of the 5 sees 4 among 19 others.
    found = estimate_sizes(mixture_of([5, 2], [20, 30]), 0.0)
    np.testing.assert_allclose(found, [20.0, 30.0])
    np.testing.assert_allclose(split_shares(mixture_of([5, 2], [20, 30]), 0.0), [5 / 20, 2 / 30])


@pytest.mark.parametrize("n_new", [0.0, 2.0, 7.5])
def test_neighbours_from_new_classes_hide_part_of_the_share_by_the_closed_form(n_new):
    mixture = LabelMixture(np.array([0.2, 0.3, 0.4]), 0.1, np.array([11, 21, 31]), 99, 10**6)
    share = mixture.seen * (1 + 0.1 * n_new / (3 + 1))
    # Nine in ten neighbours are of the row's own class, where the row itself is left out.
    np.testing.assert_allclose(estimate_sizes(mixture, n_new), 0.9 + np.array([10.1, 20.1, 30.1]) / share)


def test_a_share_is_never_above_one_nor_nothing():
    found = split_shares(LabelMixture(np.array([0.0, 0.9]), 0.5, np.array([3, 3]), 9, 10**6), 20.0)
    np.testing.assert_allclose(found, [3 / (0.5 + 2.5e3), 1.0])


def test_a_class_with_one_labelled_row_goes_by_what_is_seen_around_it():
    mixture = LabelMixture(np.array([0.1]), 0.0, np.array([1]), 1, 10**6)
    np.testing.assert_allclose(estimate_sizes(mixture, 0.0), [10.0])


def test_known_classes_together_have_no_more_rows_than_there_are():
    mixture = LabelMixture(np.zeros(3), 0.0, np.array([1, 2, 3]), 0, 60)
    assert estimate_sizes(mixture, 2.0).sum() == pytest.approx(60.0)


# --- labels held back --------------------------------------------------------------------------------------


def looking(held, unlabelled, weights=None):
    return LookingKnown(held, unlabelled, np.ones(len(held)) if weights is None else weights)


def test_a_row_looks_as_known_as_the_part_of_its_neighbours_with_a_visible_label():
    near = neighbours_of([[0, 1, 3], [0, 2, 3]])  # of two rows among four
    np.testing.assert_allclose(look_known(near, np.array([0, 1, -1, -1])), [2 / 3, 1 / 3])


def test_near_neighbours_say_more_about_how_known_a_row_looks():
    near = Neighbours(np.array([[0, 2], [1, 0]]), np.array([[0.9, 0.7], [0.7, 0.6]], dtype=np.float32))
    found = look_known(near, np.array([0, -1, -1]))
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-2.0)), 1 / (1 + np.exp(1.0))], rtol=1e-5)


@pytest.mark.parametrize("n_of_new", [0, 100, 4000])
def test_rows_of_known_classes_are_counted_beside_new_ones_that_look_less_known(n_of_new):
    rng = np.random.default_rng(0)
    unlabelled = np.concatenate([rng.uniform(0.5, 1.0, 2000), rng.uniform(0.0, 0.6, n_of_new)])
    looks = [looking(rng.uniform(0.5, 1.0, 1000), unlabelled) for _ in range(2)]
    assert expect_known_part(looks) == pytest.approx(2000 / (2000 + n_of_new), rel=0.05)


def test_new_classes_that_look_just_as_known_are_counted_with_the_known_ones():
    rng = np.random.default_rng(0)
    looks = [looking(rng.uniform(size=1000), rng.uniform(size=3000)) for _ in range(2)]
    assert expect_known_part(looks) == pytest.approx(1.0, rel=0.1)


def test_a_class_with_few_labels_counts_by_the_rows_it_has():
    # Two known classes: one with 800 labels held back and 200 unlabelled rows, one with 200 and 800.
    rng = np.random.default_rng(0)
    many, few = (lambda n: rng.uniform(0.7, 1.0, n)), (lambda n: rng.uniform(0.3, 0.6, n))
    unlabelled = np.concatenate([many(200), few(800), rng.uniform(0.0, 0.2, 1000)])
    held = np.concatenate([many(800), few(200)])
    weighed = expect_known_part([looking(held, unlabelled, np.repeat([0.25, 4.0], [800, 200]))])
    assert weighed == pytest.approx(0.5, rel=0.05)
    assert expect_known_part([looking(held, unlabelled)]) < 0.2


def test_of_few_labels_held_back_nothing_is_told():
    assert expect_known_part([looking(np.ones(150), np.ones(50)), looking(np.ones(99), np.ones(50))]) is None
    assert expect_known_part([looking(np.ones(150), np.ones(50), np.repeat([0.01, 1.0], [130, 20]))]) is None
    assert expect_known_part([]) is None


def test_a_handful_of_rows_that_look_most_known_does_not_decide():
    # Of 120 rows held back, the 14 most known have no unlabelled row beside them.
    held, unlabelled = np.linspace(0.0, 1.0, 120), np.linspace(0.0, 0.88, 600)
    assert expect_known_part([looking(held, unlabelled)]) > 0.3


def test_rows_that_all_look_alike_are_all_known():
    assert expect_known_part([looking(np.zeros(120), np.zeros(30))]) == pytest.approx(1.0)


def test_both_ways_count_alike():
    mixture = mixture_of([10, 20], [20, 40])
    found = estimate_sizes(mixture._replace(n_expected=120.0), 0.0)
    unlabelled = np.sqrt(30.0 * 120.0)  # by neighbours 30 rows are without a label
    np.testing.assert_allclose(found, [10 + unlabelled / 3, 20 + unlabelled * 2 / 3])
    agreed = estimate_sizes(mixture._replace(n_expected=30.0), 0.0)
    np.testing.assert_allclose(agreed, estimate_sizes(mixture, 0.0))


# --- sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "mean", "squares"), [([10.0], 10.0, 0.0), ([10.0, 40.0], 20.0, 2 * np.log(2.0) ** 2)]
)
def test_usual_sizes_are_described_by_their_logarithms(sizes, mean, squares):
    found = describe_sizes(mixture_of(np.full(len(sizes), 5), sizes), np.array(sizes))
    assert found.mean == pytest.approx(np.log(mean))
    assert found.spread == pytest.approx(np.sqrt((squares + 0.05) / (len(sizes) - 0.8)))


@pytest.mark.parametrize(("n_labelled", "shift"), [(4, 0.0), (7, 0.0), (10, 1.0)])
def test_sizes_of_classes_that_were_labelled_whole_need_not_be_those_of_others(n_labelled, shift):
    found = describe_sizes(mixture_of(np.full(4, n_labelled), np.full(4, 10.0)), np.full(4, 10.0))
    assert found.shift == pytest.approx(shift, abs=1e-3)
