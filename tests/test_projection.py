"""Rows on a plane: every row has a place, alike beside alike, the same every time."""

import numpy as np
import pytest

from pnp_gcd import projection
from pnp_gcd.neighbours import find_nearest
from pnp_gcd.projection import project_rows


def make_groups(n_groups=4, n_each=30, *, width=10, noise=0.1, seed=0):
    """Return directions around n_groups orthogonal axes, and the group of each."""
    group = np.repeat(np.arange(n_groups), n_each)
    rows = np.eye(width)[group] + noise * np.random.default_rng(seed).normal(size=(len(group), width))
    return rows.astype(np.float32), group


def part_of_neighbours_in_group(places, group, n_nearest=5):
    apart = np.square(places[:, None] - places[None]).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    return np.mean(group[apart.argsort(axis=1)[:, :n_nearest]] == group[:, None])


# --- where rows go -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_landmarks", [3000, 40])
def test_rows_of_one_group_lie_together_landmarks_or_not(n_landmarks):
    rows, group = make_groups()
    assert part_of_neighbours_in_group(project_rows(rows, n_landmarks=n_landmarks), group) > 0.97


@pytest.mark.parametrize("n_rows", [2, 3, 5, 7, 8, 9, 10, 40])
def test_any_number_of_rows_gets_different_places_in_the_square(n_rows):
    places = project_rows(np.random.default_rng(0).normal(size=(n_rows, 6)))
    assert places.shape == (n_rows, 2)
    assert places.dtype == np.float32
    assert len(np.unique(places, axis=0)) == n_rows
    np.testing.assert_allclose(places.min(axis=0), -places.max(axis=0), atol=1e-6)
    assert abs(places).max() == 1


def test_one_row_is_in_the_middle_and_no_row_is_nowhere():
    assert project_rows([[3.0, 4.0]]).tolist() == [[0, 0]]
    assert project_rows(np.empty((0, 5))).shape == (0, 2)


def test_two_rows_are_the_two_ends_of_the_map():
    assert sorted(project_rows([[1.0, 0.0], [0.0, 1.0]]).tolist()) == [[-1, 0], [1, 0]]


def test_three_rows_of_which_two_are_alike_show_it():
    first, second, third = project_rows([[1.0, 0.0, 0.0], [0.99, 0.1, 0.0], [0.0, 0.0, 1.0]])
    assert np.linalg.norm(first - second) < np.linalg.norm(first - third) / 5


def test_rows_along_an_arc_keep_their_order():
    angle = np.linspace(0, 1, 100)
    places = project_rows(np.column_stack([np.cos(angle), np.sin(angle)]))
    assert abs(np.corrcoef(places[:, 0], angle)[0, 1]) > 0.98


def test_only_the_direction_of_a_row_counts():
    rows, _ = make_groups()
    lengths = 2.0 ** np.random.default_rng(1).integers(-3, 4, size=(len(rows), 1))  # exact in binary
    np.testing.assert_array_equal(project_rows(rows * lengths.astype(np.float32)), project_rows(rows))


# --- landmarks ---------------------------------------------------------------------------------------------


def test_a_row_that_equals_a_landmark_is_beside_it_and_not_on_it():
    rows, _ = make_groups(n_each=10)
    places = project_rows(np.concatenate([rows, rows]))
    shift = np.linalg.norm(places[: len(rows)] - places[len(rows) :], axis=1)
    assert (shift > 0).all()
    assert shift.max() <= 2 * projection._WIDEST_SPREAD + 1e-6


def test_copies_of_few_rows_are_as_many_heaps():
    rows = np.repeat(np.eye(3), 50, axis=0)
    places = project_rows(rows)
    assert len(np.unique(places, axis=0)) == 150
    heaps = places.reshape(3, 50, 2)
    assert heaps.std(axis=1).max() < 0.05 < 0.5 < heaps.mean(axis=1).std(axis=0).max()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_constant_rows_are_spread_over_the_map(value):
    places = project_rows(np.full((200, 4), value))
    assert len(np.unique(places, axis=0)) == 200
    assert np.ptp(places, axis=0).min() > 1.8


def test_the_mean_of_places_is_that_of_a_slow_sum():
    rng = np.random.default_rng(0)
    places, similarities = rng.normal(size=(3, 4, 2)), np.sort(rng.uniform(0, 0.9, size=(3, 4)))[:, ::-1]
    reach, expected = 1.3, []
    for where, cosines in zip(places, similarities, strict=True):
        weights = [((1 - cosines[0]) / (1 - cosine)) ** 2 for cosine in cosines]

        def near(first, second, where=where):
            return np.exp(-np.sum((where[first] - where[second]) ** 2) / (2 * reach**2))

        support = [sum(weights[j] * near(i, j) for j in range(4)) for i in range(4)]
        best = int(np.argmax(support))
        final = [weights[j] * near(best, j) for j in range(4)]
        expected.append(sum(final[j] * where[j] for j in range(4)) / sum(final))
    np.testing.assert_allclose(projection._weighted_mean(places, similarities, reach), expected)


def test_a_row_like_landmarks_in_two_parts_goes_to_the_heavier_part_not_between():
    places = np.array([[[0.0, 0.0], [0.0, 1.0], [100.0, 0.0]]])
    placed = projection._weighted_mean(places, np.array([[0.5, 0.5, 0.5]]), reach=5.0)
    np.testing.assert_allclose(placed, [[0, 0.5]], atol=0.01)


def test_blocks_do_not_matter(monkeypatch):
    rows, _ = make_groups()
    whole = project_rows(rows, n_landmarks=20)
    monkeypatch.setattr(projection, "_BLOCK_ROWS", 7)
    np.testing.assert_allclose(project_rows(rows, n_landmarks=20), whole, atol=1e-5)


def test_no_more_landmarks_than_asked_for_go_into_t_sne(monkeypatch):
    seen = []
    run = projection._run_tsne
    monkeypatch.setattr(
        projection, "_run_tsne", lambda rows, *rest: (seen.append(len(rows)), run(rows, *rest))[1]
    )
    project_rows(make_groups()[0], n_landmarks=25)
    assert seen == [25]


# --- the same every time -----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_map_and_another_draws_other_landmarks():
    rows, _ = make_groups()
    first, again, other = (project_rows(rows, n_landmarks=50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(
        first, project_rows(rows, n_landmarks=50, random_state=np.random.RandomState(3))
    )


def test_the_global_random_state_is_left_as_found():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    project_rows(make_groups()[0], random_state=None, n_landmarks=10)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_features_are_not_changed():
    rows, _ = make_groups()
    rows[3] = np.nan
    before = rows.copy()
    project_rows(rows)
    np.testing.assert_array_equal(rows, before)


# --- rows that are missing, and what is refused ------------------------------------------------------------


def test_rows_that_are_not_finite_have_no_place_and_move_no_other():
    rows, _ = make_groups()
    holed = np.insert(rows, [0, 17], np.nan, axis=0)
    places = project_rows(holed)
    is_missing = np.isnan(holed).any(axis=1)
    assert np.isnan(places[is_missing]).all()
    np.testing.assert_array_equal(places[~is_missing], project_rows(rows))
    assert np.isnan(project_rows(np.full((3, 2), np.nan))).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
def test_numbers_of_any_kind_are_taken(dtype):
    rows = np.repeat(100 * np.eye(3), 5, axis=0).astype(dtype)
    np.testing.assert_array_equal(project_rows(rows), project_rows(rows.astype(np.float32)))


@pytest.mark.parametrize("shape", [(4,), (4, 2, 2), (4, 0)])
def test_other_than_two_axes_are_refused(shape):
    with pytest.raises(ValueError, match=r"features has shape .* must have two axes.*transform"):
        project_rows(np.zeros(shape))


def test_words_are_refused():
    with pytest.raises(TypeError, match=r"features has dtype <U1"):
        project_rows([["a", "b"]])


@pytest.mark.parametrize("value", [0, -1, 2.5, True])
def test_numbers_of_landmarks_that_are_none_are_refused(value):
    with pytest.raises(ValueError, match=rf"n_landmarks={value} must be an integer of 1 or more"):
        project_rows(np.eye(3), n_landmarks=value)


# --- the search for landmarks ------------------------------------------------------------------------------


def test_the_nearest_are_those_of_all_cosines(monkeypatch):
    monkeypatch.setattr("pnp_gcd.neighbours._BLOCK_SHARED", 30)  # three queries a block
    rng = np.random.default_rng(0)
    queries, rows = (rng.normal(size=(n, 5)).astype(np.float32) for n in (7, 10))
    indices, similarities, _ = find_nearest(queries, rows, 4)
    cosines = queries @ rows.T
    np.testing.assert_array_equal(indices, (-cosines).argsort(axis=1)[:, :4])
    np.testing.assert_allclose(similarities, np.take_along_axis(cosines, indices, axis=1), rtol=1e-5)
