"""Known classes hidden, and how well they were found again."""

import numpy as np
import pytest

from pnp_gcd.hiding import FoundAgain, Hiding, expect_rows, hide_classes, hold_back_halves, score_found

# --- hiding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_known", [2, 3, 4, 7, 15, 20])
def test_every_class_is_hidden_equally_often_and_never_shown_then(n_known):
    codes = np.random.default_rng(0).integers(-1, n_known, size=400)
    hidden = []
    for hiding in hide_classes(codes, 0):
        classes = hiding.order[hiding.n_visible :].tolist()
        hidden += classes
        assert (hiding.n_visible, hiding.n_hidden) == (n_known - len(classes), len(classes))
        assert (hiding.visible[np.isin(codes, classes)] == -1).all()
        assert (hiding.held[np.isin(codes, classes)] >= hiding.n_visible).all()
    counts = np.bincount(hidden, minlength=n_known)
    assert len(set(counts.tolist())) == 1
    assert counts[0] >= 1


def test_few_classes_are_hidden_in_other_halves_again():
    few, many = (hide_classes(np.arange(n).repeat(2), 0) for n in (5, 15))
    assert len(few) == 6
    assert len(many) == 2
    assert len({tuple(hiding.order[hiding.n_visible :]) for hiding in few}) > 2


@pytest.mark.parametrize("n_known", [2, 5, 8])
def test_the_order_leads_back_from_new_codes_to_the_old_ones(n_known):
    codes = np.random.default_rng(1).integers(-1, n_known, size=100)
    for hiding in hide_classes(codes, 4):
        assert sorted(hiding.order.tolist()) == list(range(n_known))
        for part in (hiding.visible, hiding.held, hiding.everyone):
            assert (part[codes < 0] == -1).all()
            np.testing.assert_array_equal(hiding.order[part[part >= 0]], codes[part >= 0])
        assert ((hiding.everyone >= 0) == (codes >= 0)).all()


def test_half_of_the_rows_of_each_shown_class_are_shown_and_all_others_held():
    codes = np.repeat(np.arange(5), [20, 21, 6, 1, 40])
    for hiding in hide_classes(codes, 3):
        shown, held = hiding.visible >= 0, hiding.held >= 0
        np.testing.assert_array_equal(shown, ~held)
        for code in hiding.order[: hiding.n_visible]:
            n_rows = int((codes == code).sum())
            assert (shown & (codes == code)).sum() == (n_rows + 1) // 2


def test_every_labelled_row_is_held_back_once_and_no_class_is_hidden():
    codes = np.repeat([0, 1, 2, -1], [9, 10, 1, 7])
    first, second = hold_back_halves(codes, 0)
    assert (first.n_visible, first.n_hidden) == (3, 0)
    np.testing.assert_array_equal(first.held, second.visible)
    np.testing.assert_array_equal(first.visible, second.held)
    np.testing.assert_array_equal(np.maximum(first.visible, first.held), codes)
    assert [int((first.visible == code).sum()) for code in range(3)] == [5, 5, 1]


def test_the_rows_shown_are_drawn_at_random_and_by_the_seed():
    codes = np.repeat([0, 1], 40)
    first, again, other = (hide_classes(codes, seed)[0].visible for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first >= 0, other >= 0)
    shown = np.flatnonzero(first >= 0) % 40
    assert len(set((shown % 2).tolist())) == 2  # not just every second row in the order given


@pytest.mark.parametrize("codes", [np.full(9, -1), np.zeros(9, dtype=int), np.empty(0, dtype=int)])
def test_fewer_than_two_classes_cannot_be_hidden(codes):
    assert hide_classes(codes, 0) == []


# --- the score, by hand ------------------------------------------------------------------------------------

# Class 0 is visible: of its 4 labelled rows 2 are shown, 2 held. Class 1 is hidden: 4 labelled rows, all
# held. Ten rows have no label. Half of each class is labelled, so that class 0 has 8 rows (6 not shown) and
# class 1 has 8: a held row stands for 3 rows of class 0 or 2 of class 1.
EVERYONE = np.array([0, 0, 0, 0, 1, 1, 1, 1, *[-1] * 10])
VISIBLE = np.array([0, 0, *[-1] * 16])
HELD = np.where(VISIBLE >= 0, -1, EVERYONE)
HIDING = Hiding(VISIBLE, EVERYONE, HELD, 1, 1, np.arange(2))
HALF = np.array([0.5, 0.5])


def found_of(first, second, unlabelled):
    """Return groups: of the rows of class 0 (two shown, two held), of class 1, of the unlabelled."""
    return np.array([*first, *second, *unlabelled])


PERFECT = found_of([0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1, -1, -1])
MIXED = found_of([0, 0, 0, 0], [1, 1, 1, 0], [0] * 7 + [1] * 3)


def test_a_held_row_stands_for_the_rows_of_its_class_that_have_no_label():
    np.testing.assert_allclose(expect_rows(HIDING, MIXED, 2, HALF), [[6, 0], [2, 6]])


def test_a_class_labelled_in_full_has_no_more_rows_than_those_held():
    np.testing.assert_allclose(expect_rows(HIDING, MIXED, 2, np.ones(2)), [[2, 0], [1, 3]])


def test_groups_nobody_held_is_in_and_rows_in_no_group_are_expected_nowhere():
    found = found_of([0, 0, 2, -1], [1, 1, -1, -1], [3] * 10)
    np.testing.assert_allclose(expect_rows(HIDING, found, 4, HALF), [[0, 0, 3, 0], [0, 4, 0, 0]])


def test_what_is_found_as_it_was_scores_one():
    assert score_found(HIDING, PERFECT, 2, HALF) == FoundAgain(1.0, 1.0, 1.0, 1.0)


def test_a_class_that_swallowed_another_s_rows_loses_precision():
    # Class 0 has 10 rows that were not shown where 6 are expected; class 1 kept 3 rows of 4.
    found = score_found(HIDING, MIXED, 2, HALF)
    np.testing.assert_allclose(found, [0.6, 0.75, 1.0, 0.75])
    assert found.score == pytest.approx(0.675)


def test_rows_that_were_shown_do_not_count():
    moved = MIXED.copy()
    moved[:2] = 1
    assert score_found(HIDING, moved, 2, HALF) == score_found(HIDING, MIXED, 2, HALF)


def test_a_hidden_class_that_went_to_a_visible_one_is_not_found():
    found = found_of([0, 0, 0, 0], [0, 0, 0, 0], [0] * 10)
    score = score_found(HIDING, found, 1, HALF)
    assert (score.novel, score.novel_accuracy, score.known_accuracy) == (0.0, 0.0, 1.0)
    assert score.known == pytest.approx(6 / 16)


def test_new_groups_are_matched_with_hidden_classes_whatever_their_number():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 6, size=300)
    hiding = hide_classes(codes, 0)[0]
    found = rng.integers(-1, 8, size=300)
    permuted = np.r_[np.arange(3), 3 + rng.permutation(5), -1][found]
    share = np.full(6, 0.4)
    np.testing.assert_allclose(
        score_found(hiding, permuted, 8, share), score_found(hiding, found, 8, share), rtol=1e-12
    )


def test_one_new_group_can_be_only_one_of_the_hidden_classes():
    # Two hidden classes of 3 and 2 held rows lie in one new group.
    everyone = np.array([0, 0, 1, 1, 1, 2, 2])
    visible = np.array([0, -1, -1, -1, -1, -1, -1])
    hiding = Hiding(visible, everyone, np.where(visible >= 0, -1, everyone), 1, 2, np.arange(3))
    found = score_found(hiding, np.array([0, 0, 1, 1, 1, 1, 1]), 2, np.ones(3))
    assert found.novel_accuracy == pytest.approx(3 / 5)
    assert found.novel == pytest.approx(3 / 5 * 3 / 5)


def test_rows_without_a_class_are_not_found_but_spoil_no_other():
    found = found_of([0, 0, 0, -1], [1, 1, -1, -1], [-1] * 10)
    np.testing.assert_allclose(score_found(HIDING, found, 2, HALF), [0.5, 0.5, 0.5, 0.5])
