"""How many classes nobody has labelled."""

import numpy as np
import pytest

from pnp_gcd.counting import (
    ClassCount,
    CountingTrial,
    _count_in_trial,
    _walk,
    combine_counts,
    count_by_size,
    count_new_classes,
)
from pnp_gcd.hiding import hide_classes
from pnp_gcd.merging import find_merges, own_communities
from pnp_gcd.sizing import LabelMixture


def mixture_of(n_labelled, sizes, n_rows=10**6):
    """Return what is seen around classes of some sizes, of which ``n_labelled`` rows are labelled."""
    n_labelled, sizes = np.asarray(n_labelled), np.asarray(sizes)
    return LabelMixture((n_labelled - 1) / (sizes - 1), 0.0, n_labelled, 10**9, n_rows)


# --- counting, in worlds where the answer is known ---------------------------------------------------------

ROWS = 48  # of every class: divides into equal pieces, and labels divide among these


def count(n_pieces, n_known, *, seed=0, has_links=False, cross=0.0, n_labelled=2):
    """Count in a world of classes in pieces: communities of equal size, every second row labelled.

    Pieces of one class may have links, no two of them as many; ``cross`` times as many have those of
    different classes.
    """
    classes = np.repeat(np.arange(len(n_pieces)), n_pieces)
    sizes = ROWS // np.asarray(n_pieces)[classes]
    homes = np.repeat(np.arange(len(classes)), sizes)
    truth = classes[homes]
    codes = np.where((truth < n_known) & (np.arange(len(homes)) % n_labelled == 0), truth, -1)
    links = np.random.default_rng(seed).uniform(1, 2, size=(len(classes), len(classes)))
    links *= np.where(classes[:, None] == classes, 1.0, cross) * np.outer(sizes, sizes) * has_links
    trials = []
    for hiding in hide_classes(codes, seed):
        owners = own_communities(hiding.visible, homes, hiding.n_visible, len(classes))
        trials.append(CountingTrial(hiding, homes, owners, find_merges(links + links.T, sizes, owners)))
    mixture = mixture_of(np.full(n_known, ROWS // n_labelled), np.full(n_known, ROWS), len(homes))
    return count_new_classes(trials, mixture, min_size=2)


@pytest.mark.parametrize("n_pieces", [1, 2, 3, 4])
@pytest.mark.parametrize(("n_known", "n_new"), [(4, 4), (6, 3), (6, 1), (5, 10)])
def test_classes_are_counted_however_many_pieces_each_is_in(n_pieces, n_known, n_new):
    found = count([n_pieces] * (n_known + n_new), n_known)
    assert found.n_new == pytest.approx(n_new)
    # Hidden classes that all come apart alike are no proof that every class does; the share errs by 6 %.
    by_spread = 0.25 * n_new * np.sqrt(1 / n_known + 1 / n_new)
    assert found.error == pytest.approx(np.hypot(by_spread, 0.06 / 0.94 * (n_known + n_new)), rel=1e-3)


@pytest.mark.parametrize("has_links", [False, True])
@pytest.mark.parametrize("n_pieces", [1, 2, 3])
def test_where_every_class_is_known_no_new_one_is_counted(n_pieces, has_links):
    assert count([n_pieces] * 6, 6, has_links=has_links).n_new == pytest.approx(0.0)


@pytest.mark.parametrize("cross", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("n_pieces", [2, 4, 6])
def test_the_count_hardly_depends_on_how_far_pieces_were_merged(n_pieces, cross):
    found = count([n_pieces] * 20, 12, has_links=True, cross=cross)
    assert found.n_new == pytest.approx(8.0, rel=0.15)


@pytest.mark.parametrize("n_labelled", [2, 4])
def test_the_count_does_not_depend_on_how_many_rows_are_labelled(n_labelled):
    assert count([2] * 9, 6, n_labelled=n_labelled).n_new == pytest.approx(3.0)


def uneven(seed, n_known=12, n_new=8):
    n_pieces = np.random.default_rng(seed).integers(1, 4, size=n_known + n_new)
    return count(n_pieces, n_known, seed=seed), n_known, n_new


def test_where_classes_come_apart_unevenly_the_error_says_so():
    found, _, n_new = uneven(0)
    assert found.error > 0.5
    assert found.n_new == pytest.approx(n_new, rel=0.5)


def test_the_interval_holds_the_truth_about_nine_times_in_ten():
    held, widths = [], []
    for seed in range(40):
        found, n_known, n_new = uneven(seed)
        low, high = found.interval(n_known)
        held.append(low <= n_known + n_new <= high)
        widths.append(high - low)
    assert np.mean(held) >= 0.85
    assert np.mean(widths) < 1.5 * n_new  # not by saying nothing


def test_groups_below_the_smallest_size_are_no_class():
    # Two stray pairs of rows stand beside six known classes and two new ones.
    classes = np.arange(10)
    sizes = np.array([ROWS] * 8 + [2, 2])
    homes = np.repeat(classes, sizes)
    codes = np.where((homes < 6) & (np.arange(len(homes)) % 2 == 0), homes, -1)
    hiding = hide_classes(codes, 0)[0]
    owners = own_communities(hiding.visible, homes, hiding.n_visible, 10)
    trial = CountingTrial(hiding, homes, owners, find_merges(np.zeros((10, 10)), sizes, owners))
    assert _count_in_trial(_walk(trial, 3), hiding, np.full(6, 0.5))[0] == pytest.approx(2.0)
    assert _count_in_trial(_walk(trial, 2), hiding, np.full(6, 0.5))[0] == pytest.approx(4.0)


def test_rows_without_a_community_are_left_out():
    homes = np.repeat(np.arange(9), ROWS)
    codes = np.where((homes < 6) & (np.arange(len(homes)) % 2 == 0), homes, -1)
    homes[np.arange(len(homes)) % 8 < 2] = -1  # labelled and unlabelled rows alike
    trials = []
    for hiding in hide_classes(codes, 0):
        at_home = homes >= 0
        owners = own_communities(hiding.visible[at_home], homes[at_home], hiding.n_visible, 9)
        sizes = np.bincount(homes[at_home])
        trials.append(CountingTrial(hiding, homes, owners, find_merges(np.zeros((9, 9)), sizes, owners)))
    found = count_new_classes(
        trials, mixture_of(np.full(6, ROWS // 2), np.full(6, ROWS), len(homes)), min_size=2
    )
    assert found.n_new == pytest.approx(3.0)


# --- the count ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_new", "error", "interval"),
    [(3.0, 0.0, (8, 8)), (3.0, 1.0, (6, 10)), (2.0, 5.0, (5, 16)), (0.0, 0.0, (5, 5)), (2.4, 0.1, (7, 8))],
)
def test_the_interval_is_1645_errors_wide_on_both_sides_and_holds_the_known_classes(n_new, error, interval):
    assert ClassCount(n_new, error).interval(5) == interval


def test_by_size_new_classes_fill_what_known_ones_leave():
    found = count_by_size(mixture_of([10], [20], 100))  # a class of 20 rows among 100
    assert found.n_new == pytest.approx(4.0)
    # One class says little about the sizes of others; the share errs by 6 %.
    assert found.error == pytest.approx(np.hypot(4.0 * 0.5 * np.sqrt(1 + 1 / 4), 0.06 / 0.94 * 5), rel=1e-3)


def test_by_size_the_mean_known_class_is_the_measure():
    found = count_by_size(mixture_of([10, 29], [20, 30], 120))
    assert found.n_new == pytest.approx((120 - 50) / 25)


def test_by_size_classes_that_differ_make_the_count_less_sure():
    errors = [
        count_by_size(mixture_of([10] * 4, sizes, 200)).error
        for sizes in ([20, 20, 20, 20], [15, 18, 22, 25], [11, 14, 20, 35])
    ]
    assert errors == sorted(errors)
    assert errors[2] > 1.5 * errors[0]


def test_by_size_few_labelled_neighbours_make_the_count_less_sure():
    many, few = (count_by_size(mixture_of([10], [20], 100)._replace(n_seen=n)).error for n in (10**9, 100))
    by_share = np.hypot(0.06, 0.1)
    added = (4.0 * 0.1) ** 2 + (5 * by_share / (1 - by_share)) ** 2 - (5 * 0.06 / 0.94) ** 2
    assert few**2 - many**2 == pytest.approx(added, rel=1e-3)


def test_by_size_a_count_that_rests_on_no_labelled_neighbour_has_no_say():
    by_size = count_by_size(LabelMixture(np.zeros(5), 0.0, np.ones(5, dtype=int), 0, 600))
    assert combine_counts(ClassCount(5.0, 2.0), by_size).n_new == pytest.approx(5.0, abs=0.2)


def test_by_size_classes_that_were_labelled_whole_say_little_about_others():
    errors = [count_by_size(mixture_of([n] * 8, [20] * 8, 400)).error for n in (10, 14, 20)]
    assert errors[0] == pytest.approx(errors[1])
    assert errors[2] > 5 * errors[1]


def test_by_size_known_classes_that_fill_every_row_leave_no_new_one():
    assert count_by_size(mixture_of([10], [20], 15)).n_new == pytest.approx(0.0)


# --- two counts --------------------------------------------------------------------------------------------


def test_counts_that_agree_make_each_other_surer():
    found = combine_counts(ClassCount(6.0, 3.0), ClassCount(6.0, 4.0))
    assert found.n_new == pytest.approx(6.0)
    assert found.error == pytest.approx(12 / 5)  # 1 / sqrt(1 / 9 + 1 / 16)


def test_the_surer_count_decides():
    found = combine_counts(ClassCount(10.0, 0.1), ClassCount(20.0, 10.0))
    assert found.n_new == pytest.approx(10.0, abs=0.01)


def test_counts_that_disagree_make_each_other_less_sure():
    found = combine_counts(ClassCount(4.0, 1.0), ClassCount(8.0, 1.0))
    assert found.n_new == pytest.approx(6.0)
    assert found.error == pytest.approx(np.hypot(np.sqrt(0.5), 2.0))


def test_two_certain_counts_stay_finite():
    assert combine_counts(ClassCount(2.0, 0.0), ClassCount(2.0, 0.0)).n_new == pytest.approx(2.0)
