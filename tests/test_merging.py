"""Which communities are pieces of one class."""

import itertools

import numpy as np
import pytest

from pnp_gcd.merging import ClassSizes, MergePath, Ownership, count_links, find_merges, own_communities
from pnp_gcd.neighbours import Neighbours


def make_rows(*communities):
    """Return codes and homes of communities given as {code: number of rows}."""
    codes = [code for c in communities for code, n in c.items() for _ in range(n)]
    homes = [home for home, c in enumerate(communities) for n in c.values() for _ in range(n)]
    return np.array(codes, dtype=np.int64), np.array(homes, dtype=np.int64)


def ownership(owner, is_new=None):
    owner = np.array(owner, dtype=np.int64)
    is_new = owner < 0 if is_new is None else np.array(is_new, dtype=bool)
    return Ownership(owner, is_new)


def links_of(n, **pairs):
    links = np.zeros((n, n))
    for pair, value in pairs.items():
        a, b = int(pair[1]), int(pair[2])
        links[a, b] = links[b, a] = value
    return links


# --- owners ------------------------------------------------------------------------------------------------


def test_each_known_class_owns_the_communities_that_its_labels_fill():
    codes, homes = make_rows({0: 20, -1: 20}, {1: 18, -1: 22}, {-1: 40}, {0: 9, -1: 11})
    found = own_communities(codes, homes, 2, 4)
    assert found.owner.tolist() == [0, 1, -1, 0]
    assert found.is_new.tolist() == [False, False, True, False]


def test_the_usual_share_comes_from_the_hungarian_matching():
    # Class 1 is found whole only in community 1, although community 0 holds more of its rows' labels than
    # any other class's in communities 2 …: the matched pairs, not the largest cells, set the usual share.
    codes, homes = make_rows({0: 30, 1: 20, -1: 50}, {1: 10, -1: 10}, {0: 1, -1: 79})
    found = own_communities(codes, homes, 2, 3)
    assert found.owner.tolist() == [0, 1, -1]
    assert found.is_new.tolist() == [False, False, True]


def test_a_few_stray_labels_make_no_owner():
    codes, homes = make_rows({0: 50, -1: 50}, {0: 2, -1: 98})
    assert own_communities(codes, homes, 1, 2).owner.tolist() == [0, -1]


def test_a_community_too_small_to_tell_is_neither_owned_nor_surely_new():
    codes, homes = make_rows({0: 10, -1: 90}, {-1: 5}, {-1: 300})
    found = own_communities(codes, homes, 1, 3)
    assert found.owner.tolist() == [0, -1, -1]
    assert found.is_new.tolist() == [False, False, True]


def test_without_labels_every_community_is_new():
    codes, homes = make_rows({-1: 5}, {-1: 7})
    found = own_communities(codes, homes, 0, 2)
    assert found.owner.tolist() == [-1, -1]
    assert found.is_new.all()


# --- links -------------------------------------------------------------------------------------------------


def test_links_count_neighbour_edges_in_both_directions():
    rng = np.random.default_rng(0)
    homes = rng.integers(4, size=30)
    indices = np.stack([rng.permutation(np.delete(np.arange(30), row))[:6] for row in range(30)])
    slow = np.zeros((4, 4))
    for row, other in itertools.product(range(30), range(6)):
        slow[homes[row], homes[indices[row, other]]] += 1
        slow[homes[indices[row, other]], homes[row]] += 1
    links = count_links(Neighbours(indices, np.ones((30, 6), np.float32)), homes, 4)
    np.testing.assert_array_equal(links, slow)


def test_only_the_twenty_nearest_neighbours_are_links():
    indices = np.tile(np.arange(1, 31), (31, 1))
    links = count_links(Neighbours(indices, np.ones((31, 30), np.float32)), np.zeros(31, np.int64), 1)
    assert links[0, 0] == 2 * 31 * 20
    far = count_links(
        Neighbours(indices, np.ones((31, 30), np.float32)), np.zeros(31, np.int64), 1, n_neighbors=25
    )
    assert far.tolist() == [[2 * 31 * 25]]


# --- merges ------------------------------------------------------------------------------------------------


def slow_merges(links, sizes, owner, is_new):
    """Return strengths of average-link merges by trying every pair of groups of communities."""
    groups = [frozenset([i]) for i in range(len(sizes))]
    strengths = []
    while len(groups) > 1:
        best = (0.0, None)
        for a, b in itertools.combinations(groups, 2):
            owners = {owner[i] for i in a | b if owner[i] >= 0}
            owned = [any(owner[i] >= 0 for i in g) for g in (a, b)]
            new = [any(is_new[i] for i in g) for g in (a, b)]
            if len(owners) > 1 or (owned[0] and new[1]) or (owned[1] and new[0]):
                continue
            strength = sum(links[i, j] for i in a for j in b)
            strength /= sum(sizes[i] for i in a) * sum(sizes[j] for j in b)
            strength = np.inf if all(owned) else strength
            if strength > best[0]:
                best = (strength, (a, b))
        if best[1] is None:
            break
        groups = [g for g in groups if g not in best[1]] + [best[1][0] | best[1][1]]
        strengths.append(best[0])
    return strengths, groups


@pytest.mark.parametrize("seed", range(8))
def test_merges_are_those_of_a_slow_average_linkage(seed):
    rng = np.random.default_rng(seed)
    n = 9
    links = rng.random((n, n)) * 50
    links = links + links.T
    sizes = rng.integers(3, 40, size=n)
    owner = rng.integers(-1, 3, size=n)
    is_new = (owner < 0) & (rng.random(n) < 0.5)
    path = find_merges(links, sizes, ownership(owner, is_new))
    strengths, groups = slow_merges(links, sizes, owner, is_new)
    np.testing.assert_allclose(path.strength, strengths)
    found = path.groups_after(len(path.kept))
    assert {frozenset(np.flatnonzero(found == g).tolist()) for g in np.unique(found)} == set(groups)


def test_communities_of_one_known_class_merge_first_even_without_a_link():
    path = find_merges(links_of(4, p01=100, p23=1), np.full(4, 10), ownership([-1, -1, 0, 0]))
    assert np.isinf(path.strength[0])
    assert {int(path.kept[0]), int(path.dropped[0])} == {2, 3}
    assert np.isinf(find_merges(links_of(2), np.full(2, 10), ownership([0, 0])).strength).tolist() == [True]


def test_different_known_classes_never_merge_not_even_through_a_third_community():
    path = find_merges(
        links_of(3, p01=1000, p02=50, p12=40), np.full(3, 10), ownership([0, 1, -1], [False] * 3)
    )
    assert path.groups_after(len(path.kept)).tolist() == [0, 1, 0]


def test_a_surely_new_community_never_joins_a_known_one_not_even_through_a_third():
    # 2 may be either; once it has joined the new 1, it may no longer join the known 0.
    path = find_merges(
        links_of(3, p01=1000, p02=40, p12=50), np.full(3, 10), ownership([0, -1, -1], [False, True, False])
    )
    assert path.groups_after(len(path.kept)).tolist() == [0, 1, 1]


def test_the_larger_community_takes_over():
    path = find_merges(links_of(2, p01=5), np.array([3, 9]), ownership([-1, -1]))
    assert (path.kept.tolist(), path.dropped.tolist()) == ([1], [0])
    assert path.strength.tolist() == pytest.approx([5 / 27])


def test_merging_ends_at_the_number_asked_for():
    links = np.ones((5, 5))
    assert len(find_merges(links, np.full(5, 2), ownership([-1] * 5), n_left=3).kept) == 2


def test_communities_without_a_link_stay_apart():
    assert len(find_merges(np.zeros((3, 3)), np.full(3, 4), ownership([-1] * 3)).kept) == 0


def test_links_and_sizes_are_left_as_they_were():
    links, sizes = links_of(3, p01=5, p12=2), np.array([3, 4, 5])
    before = links.copy(), sizes.copy()
    find_merges(links, sizes, ownership([-1, -1, -1]))
    np.testing.assert_array_equal(links, before[0])
    np.testing.assert_array_equal(sizes, before[1])


def test_a_path_is_cut_at_the_first_merge_weaker_than_the_cut():
    path = MergePath(4, np.array([0, 2, 0]), np.array([1, 3, 2]), np.array([np.inf, 0.2, 0.3]))
    assert path.groups_above(np.inf).tolist() == [0, 0, 2, 3]
    assert path.groups_above(0.25).tolist() == [0, 0, 2, 3]
    assert path.groups_above(0.2).tolist() == [0, 0, 0, 0]
    assert path.merges_above(0.0) == 3


# --- usual sizes -------------------------------------------------------------------------------------------


def usual(size, spread=0.0, shift=0.0, known=(10.0,)):
    return ClassSizes(np.log(size), spread, shift, np.array(known))


def test_groups_up_to_the_usual_size_are_allowed_and_larger_ones_less_and_less():
    allowed = usual(100).allow(np.array([1.0, 50.0, 100.0, 150.0, 200.0, 400.0]))
    np.testing.assert_array_equal(allowed[:3], 1.0)
    assert (np.diff(allowed[2:]) < 0).all()
    assert allowed[4] == pytest.approx(np.exp(-0.5 * (np.log(2) / 0.3) ** 2))


@pytest.mark.parametrize("other", [{"spread": 1.0}, {"shift": 1.0}])
def test_where_sizes_differ_or_say_little_large_groups_are_hardly_held_back(other):
    sizes = np.array([150.0, 300.0])
    assert (usual(100, **other).allow(sizes) > usual(100).allow(sizes)).all()
    assert usual(100, **other).allow(sizes)[0] > 0.95


def test_a_group_is_a_leftover_only_where_classes_are_alike_in_size():
    assert 30 < usual(100).smallest < 50
    assert usual(100, spread=1.0).smallest < 1


def test_two_groups_of_usual_size_merge_after_pieces_of_one_class():
    # 0 and 1 are whole classes with more edges per pair of rows than the two halves 2 and 3 have.
    sizes = np.array([100, 100, 50, 50])
    links = links_of(4, p01=3 * 100 * 100, p23=2 * 50 * 50, p12=1.0)
    first = find_merges(links, sizes, ownership([-1] * 4))
    assert {int(first.kept[0]), int(first.dropped[0])} == {0, 1}
    by_size = find_merges(links, sizes, ownership([-1] * 4), usual=usual(100))
    assert {int(by_size.kept[0]), int(by_size.dropped[0])} == {2, 3}


def test_the_size_of_a_sparsely_labelled_class_keeps_its_pieces_from_being_surely_new():
    # Of 200 rows of class 1 ten are labelled, four of them among the 50 rows it is matched with.
    codes, homes = make_rows({0: 190, -1: 10}, {1: 4, -1: 46}, {-1: 45})
    assert own_communities(codes, homes, 2, 3).is_new.tolist() == [False, False, True]
    sizes = usual(200, known=(200.0, 100.0))
    assert own_communities(codes, homes, 2, 3, usual=sizes).is_new.tolist() == [False, False, False]
