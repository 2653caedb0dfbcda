"""The Hungarian method: by overlap of rows, and by similarity of unit rows."""

from itertools import permutations

import numpy as np
import pytest

from pnp_gcd.matching import count_overlap, match_by_overlap, match_by_similarity


def _unit_rows(rng, n_rows, n_features):
    rows = rng.normal(size=(n_rows, n_features))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _all_pairings(n_from, n_to):
    """Yield every injective partial map of ``n_from`` items to ``n_to`` items, -1 for no partner."""
    targets = list(range(n_to)) + [-1] * n_from
    yield from set(permutations(targets, n_from))


def test_overlap_counts_each_pair_of_codes():
    table = count_overlap([0, 0, 1, 2, 2, 2], [1, 1, 1, 0, 0, 1], n_true=3, n_found=2)
    np.testing.assert_array_equal(table, [[0, 0, 2], [2, 1, 1]])
    assert table.dtype == np.int64


def test_overlap_leaves_out_rows_with_a_negative_code_on_either_side():
    table = count_overlap([0, -1, 1, 1], [0, 0, -1, 1], n_true=2, n_found=2)
    np.testing.assert_array_equal(table, [[1, 0], [0, 1]])


def test_overlap_keeps_places_for_clusters_and_classes_without_rows():
    np.testing.assert_array_equal(count_overlap([1], [0], n_true=3, n_found=2), [[0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize(("n_true", "n_found"), [(0, 0), (0, 3), (3, 0)])
def test_overlap_of_nothing_has_the_asked_shape(n_true, n_found):
    assert count_overlap([], [], n_true, n_found).shape == (n_found, n_true)
    np.testing.assert_array_equal(match_by_overlap([], [], n_true, n_found), [-1] * n_found)


def test_overlap_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    true, found = rng.integers(-1, 5, 300), rng.integers(-1, 7, 300)
    slow = np.zeros((7, 5), dtype=int)
    for class_, cluster in zip(true, found, strict=True):
        if class_ >= 0 and cluster >= 0:
            slow[cluster, class_] += 1
    np.testing.assert_array_equal(count_overlap(true, found, 5, 7), slow)


def test_matching_sacrifices_a_greedy_pair_for_a_larger_total():
    # Cluster 0 shares 3 rows with class 0 and 2 with class 1; cluster 1 shares 2 rows with class 0 only.
    true, found = [0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1]
    np.testing.assert_array_equal(match_by_overlap(true, found, 2, 2), [1, 0])


def test_a_cluster_that_would_share_no_row_with_its_class_stays_unmatched():
    # Class 1 is free for cluster 1, but they share no row.
    np.testing.assert_array_equal(match_by_overlap([0, 0, 0], [0, 0, 1], 2, 2), [0, -1])


def test_surplus_clusters_stay_unmatched():
    np.testing.assert_array_equal(match_by_overlap([0, 0, 0], [2, 2, 0], 1, 3), [-1, -1, 0])


@pytest.mark.parametrize(("n_true", "n_found"), [(3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize("seed", range(4))
def test_no_pairing_agrees_on_more_rows(n_true, n_found, seed):
    rng = np.random.default_rng(seed)
    true, found = rng.integers(-1, n_true, 25), rng.integers(-1, n_found, 25)

    def n_agreeing(match):
        return sum(t >= 0 and f >= 0 and match[f] == t for t, f in zip(true, found, strict=True))

    match = match_by_overlap(true, found, n_true, n_found)
    partners = match[match >= 0]
    assert len(set(partners)) == len(partners)
    assert n_agreeing(match) == max(n_agreeing(pairing) for pairing in _all_pairings(n_found, n_true))


def test_matching_by_overlap_ignores_the_order_of_rows():
    rng = np.random.default_rng(3)
    true, found = rng.integers(0, 3, 12), rng.integers(0, 4, 12)
    order = rng.permutation(12)
    np.testing.assert_array_equal(
        match_by_overlap(true, found, 3, 4), match_by_overlap(true[order], found[order], 3, 4)
    )


@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([0, 2], [0, 0], "true_codes reaches 2 but n_true=2"),
        ([0, 1], [0, 5], "found_codes reaches 5 but n_found=2"),
        ([0, 1, 1], [0, 1], "found_codes has 2 rows and true_codes has 3"),
        ([[0, 1]], [0, 1], r"true_codes has shape \(1, 2\)"),
        ([0, 1], [0.5, 1.0], "found_codes has shape .* dtype float64"),
    ],
)
def test_bad_codes_are_refused_by_name(true, found, message):
    with pytest.raises(ValueError, match=message):
        match_by_overlap(true, found, 2, 2)


def test_shuffled_unit_rows_find_themselves():
    rng = np.random.default_rng(0)
    old = _unit_rows(rng, 6, 4)
    order = rng.permutation(6)
    np.testing.assert_array_equal(match_by_similarity(old, old[order], min_similarity=0.999), order)


def test_matching_by_similarity_maximises_the_total_not_the_first_pair():
    # Angles in degrees: new 20 is nearest to old 30, yet must leave it to new 100.
    old, new = (np.column_stack([np.cos(a), np.sin(a)]) for a in (np.radians([0, 30]), np.radians([20, 100])))
    np.testing.assert_array_equal(match_by_similarity(old, new), [0, 1])


def test_a_pair_refused_by_the_gate_takes_no_old_row_from_an_accepted_one():
    cosine = np.array([[0.9, 0.5], [0.8, 0.3]])  # rows: new; columns: old
    old = np.eye(3)[:2]
    new = np.column_stack([cosine, np.zeros(2)])  # length does not matter to the rule under test
    np.testing.assert_array_equal(match_by_similarity(old, new), [1, 0])
    np.testing.assert_array_equal(match_by_similarity(old, new, min_similarity=0.6), [0, -1])


def test_a_cosine_that_equals_the_gate_passes():
    old, new = [[1.0, 0.0]], [[0.5, np.sqrt(0.75)]]
    assert match_by_similarity(old, new, min_similarity=0.5)[0] == 0
    assert match_by_similarity(old, new, min_similarity=0.5000001)[0] == -1


def test_opposite_rows_pass_the_open_gate_in_spite_of_rounding():
    row = np.full((1, 3), 1 / np.sqrt(3)) * (1 + 1e-12)
    assert (row @ -row.T).item() < -1.0
    assert match_by_similarity(row, -row)[0] == 0


@pytest.mark.parametrize("min_similarity", [-1.0, -0.2, 0.3])
@pytest.mark.parametrize(("n_old", "n_new"), [(3, 3), (2, 4), (4, 3)])
def test_no_accepted_pairing_is_worth_more(n_old, n_new, min_similarity):
    rng = np.random.default_rng(10 * n_old + n_new)
    old, new = _unit_rows(rng, n_old, 3), _unit_rows(rng, n_new, 3)
    cosine = new @ old.T

    def worth(pairing):
        pairs = [(i, j) for i, j in enumerate(pairing) if j >= 0]
        if any(cosine[i, j] < min_similarity for i, j in pairs):
            return -np.inf
        return sum(1 + cosine[i, j] for i, j in pairs)

    best = max(_all_pairings(n_new, n_old), key=worth)
    np.testing.assert_array_equal(match_by_similarity(old, new, min_similarity=min_similarity), best)


def test_without_old_rows_every_new_row_stays_unmatched():
    np.testing.assert_array_equal(match_by_similarity(np.empty((0, 3)), np.eye(3)[:2]), [-1, -1])


def test_without_new_rows_there_is_nothing_to_match():
    match = match_by_similarity(np.eye(3), np.empty((0, 3)))
    assert match.shape == (0,)
    assert match.dtype == np.int64


@pytest.mark.parametrize("gate", [1.5, -1.1, float("nan")])
def test_a_gate_that_is_no_cosine_is_refused(gate):
    with pytest.raises(ValueError, match=f"min_similarity={gate}"):
        match_by_similarity(np.eye(2), np.eye(2), min_similarity=gate)


def test_rows_of_different_width_are_refused_with_both_shapes():
    with pytest.raises(ValueError, match=r"old has shape \(2, 2\) and new has shape \(3, 3\)"):
        match_by_similarity(np.eye(2), np.eye(3))


def test_rows_with_nan_are_refused():
    with pytest.raises(ValueError, match="NaN or infinity"):
        match_by_similarity(np.eye(2), [[np.nan, 0.0]])
