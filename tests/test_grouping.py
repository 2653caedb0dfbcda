"""Which communities are one class, which class is known, which is new."""

import numpy as np
import pytest

from pnp_gcd import grouping as module
from pnp_gcd.clustering import Clustering, GraphSettings, cluster_neighbours, mean_directions
from pnp_gcd.geometry import unit_rows
from pnp_gcd.grouping import (
    Communities,
    find_communities,
    group_communities,
    make_finer,
    n_searched,
    name_groups,
    smallest_class,
    vote_for_communities,
)
from pnp_gcd.merging import (
    ClassSizes,
    MergePath,
    Ownership,
    count_links,
    find_merges,
    own_communities,
)
from pnp_gcd.neighbours import Neighbours, find_neighbours


def grouped_rows(sizes, width=10, spread=0.1, seed=0):
    homes = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(homes), width))
    return unit_rows(np.eye(width)[homes] + spread * noise), homes


NOBODY = Neighbours(np.empty((0, 1), dtype=np.int64), np.empty((0, 1), dtype=np.float32))


def communities(sizes, owner, merges):
    """Return communities with a path of merges given as (kept, dropped, strength)."""
    homes = np.repeat(np.arange(len(sizes)), sizes)
    kept, dropped, strength = zip(*merges, strict=True) if merges else ((), (), ())
    path = MergePath(
        len(sizes), np.array(kept, dtype=int), np.array(dropped, dtype=int), np.array(strength, dtype=float)
    )
    owner = np.array(owner)
    ownership = Ownership(owner, owner < 0)
    return Communities(homes, NOBODY, np.ones(len(homes), dtype=bool), ownership, path)


def class_of_each(found, homes):
    """Return the class of each community; every one must lie in one class."""
    classes = [np.unique(found.rows[homes == home]) for home in range(homes.max() + 1)]
    assert all(len(each) == 1 for each in classes)
    return [int(each[0]) for each in classes]


# --- names -------------------------------------------------------------------------------------------------


def test_names_give_owners_their_code_and_new_groups_numbers_by_size():
    homes = np.repeat([0, 1, 2, 3, 4], [10, 5, 9, 2, 3])
    sizes = np.bincount(homes)
    owner = np.array([1, -1, -1, -1, -1])
    group = np.array([0, 1, 2, 3, 1])  # communities 1 and 4 are one group of 8 rows
    found = name_groups(group, homes, sizes, owner, n_known=2, min_size=3)
    assert found.n_classes == 4
    assert class_of_each(found, homes) == [1, 3, 2, -1, 3]


def test_no_more_new_groups_than_asked_for_are_named_the_largest_first():
    homes = np.repeat([0, 1, 2, 3], [4, 9, 6, 5])
    owner = np.array([-1, -1, -1, 0])
    found = name_groups(np.arange(4), homes, np.bincount(homes), owner, n_known=1, min_size=2, max_new=2)
    assert found.n_classes == 3
    assert class_of_each(found, homes) == [-1, 1, 2, 0]


def test_a_row_without_a_community_has_no_class():
    homes = np.array([0, 0, -1, 1, 1, 1, -1])
    found = name_groups(np.arange(2), homes, np.array([2, 3]), np.array([0, -1]), n_known=1, min_size=1)
    assert found.rows.tolist() == [0, 0, -1, 1, 1, 1, -1]


# --- merging to a number or to a cut -----------------------------------------------------------------------

# Communities 0 and 1 belong to the known class 0; 2 … 6 to nobody. They join by falling strength.
SIZES = [10, 6, 9, 8, 7, 5, 4]
OWNER = [0, 0, -1, -1, -1, -1, -1]
MERGES = [(0, 1, np.inf), (2, 3, 0.9), (4, 5, 0.6), (4, 6, 0.5), (2, 4, 0.1)]


@pytest.mark.parametrize(
    ("n_classes", "expected"),
    [
        (6, [0, 0, 1, 2, 3, 4, 5]),
        (5, [0, 0, 1, 1, 2, 3, 4]),
        (4, [0, 0, 1, 1, 2, 2, 3]),
        (3, [0, 0, 1, 1, 2, 2, 2]),
        (2, [0, 0, 1, 1, 1, 1, 1]),
    ],
)
def test_communities_merge_to_the_number_of_classes_asked_for(n_classes, expected):
    world = communities(SIZES, OWNER, MERGES)
    found = group_communities(world, n_known=1, min_size=2, n_classes=n_classes)
    assert found.n_classes == n_classes
    assert class_of_each(found, world.homes) == expected


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (np.inf, [0, 0, 1, 2, 3, 4, 5]),
        (0.9, [0, 0, 1, 1, 2, 3, 4]),
        (0.55, [0, 0, 1, 1, 2, 2, 3]),
        (0.2, [0, 0, 1, 1, 2, 2, 2]),
        (0.0, [0, 0, 1, 1, 1, 1, 1]),
    ],
)
def test_communities_merge_while_they_are_linked_as_strongly_as_the_cut(cut, expected):
    world = communities(SIZES, OWNER, MERGES)
    found = group_communities(world, n_known=1, min_size=2, cut=cut)
    assert class_of_each(found, world.homes) == expected
    assert found.n_classes == max(expected) + 1


def test_a_number_out_of_reach_leaves_the_most_that_merging_allows():
    world = communities(SIZES, OWNER, MERGES)
    found = group_communities(world, n_known=1, min_size=2, n_classes=20)
    assert found.n_classes == 6
    np.testing.assert_array_equal(found.rows, group_communities(world, n_known=1, min_size=2).rows)


def test_merges_that_the_labels_ask_for_are_never_undone():
    world = communities([5, 5, 5], [0, 0, -1], [(0, 1, np.inf)])
    found = group_communities(world, n_known=1, min_size=2, n_classes=3)
    assert class_of_each(found, world.homes) == [0, 0, 1]


def test_pieces_too_small_to_be_a_class_become_one_together():
    world = communities([20, 3, 3], [0, -1, -1], [(1, 2, 0.5)])
    assert group_communities(world, n_known=1, min_size=5).n_classes == 1
    found = group_communities(world, n_known=1, min_size=5, n_classes=2)
    assert class_of_each(found, world.homes) == [0, 1, 1]


def test_a_new_piece_that_joins_a_known_class_is_no_longer_new():
    world = communities([20, 6, 6], [0, -1, -1], [(0, 1, 0.5)])
    found = group_communities(world, n_known=1, min_size=2, n_classes=2)
    assert class_of_each(found, world.homes) == [0, 0, 1]


def test_a_known_piece_that_a_larger_one_takes_over_stays_known():
    world = communities([5, 20, 6], [0, -1, -1], [(1, 0, 0.5)])
    found = group_communities(world, n_known=1, min_size=2, n_classes=2)
    assert class_of_each(found, world.homes) == [0, 0, 1]


def test_without_links_to_merge_the_smallest_groups_give_way_to_the_number():
    world = communities([30, 20, 25, 15], [-1] * 4, [])
    found = group_communities(world, n_known=0, min_size=2, n_classes=2)
    assert found.n_classes == 2
    assert class_of_each(found, world.homes) == [0, -1, 1, -1]


@pytest.mark.parametrize("seed", range(5))
def test_the_number_of_classes_is_the_nearest_that_any_number_of_merges_gives(seed):
    rng = np.random.default_rng(seed)
    sizes, owner = rng.integers(1, 9, size=10), rng.integers(-1, 2, size=10)
    links = rng.random((10, 10)) * (rng.random((10, 10)) < 0.4) * 10
    path = find_merges(links + links.T, sizes, Ownership(owner, np.zeros(10, dtype=bool)))
    homes = np.repeat(np.arange(10), sizes)
    world = Communities(homes, NOBODY, homes >= 0, Ownership(owner, owner < 0), path)
    n_forced = int(np.isinf(path.strength).sum())
    possible = {
        name_groups(path.groups_after(n), homes, sizes, owner, n_known=2, min_size=4).n_classes
        for n in range(n_forced, len(path.kept) + 1)
    }
    for n_classes in range(2, 10):
        gap = min(abs(p - n_classes) for p in possible)
        found = group_communities(world, n_known=2, min_size=4, n_classes=n_classes).n_classes
        assert found in {min(p, n_classes) for p in possible if abs(p - n_classes) == gap}


def test_small_groups_are_no_class_unless_nothing_else_is():
    world = communities([30, 3], [-1, -1], [])
    assert group_communities(world, n_known=0, min_size=5).n_classes == 1
    assert group_communities(world, n_known=0, min_size=50).n_classes == 2


def test_a_known_class_without_a_community_still_counts():
    world = communities([30, 30], [0, -1], [])
    assert group_communities(world, n_known=3, min_size=2).n_classes == 4


# --- communities of rows -----------------------------------------------------------------------------------

GRAPH = GraphSettings(8, resolution=2.0)


@pytest.fixture(scope="module")
def labelled_groups():
    """Four groups of rows; half of the first two is labelled."""
    features, groups = grouped_rows([30, 24, 20, 16])
    codes = np.where((groups < 2) & (np.arange(len(groups)) % 2 == 0), groups, -1)
    return features, groups, codes


def test_communities_are_clustered_owned_and_linked(labelled_groups):
    features, groups, codes = labelled_groups
    found = find_communities(features, codes, GRAPH, n_known=2, seed=0)
    near = find_neighbours(features, 40)
    clustering = cluster_neighbours(features, near, GRAPH)
    owners = own_communities(codes, clustering.labels, 2, 4)
    path = find_merges(count_links(near, clustering.labels, 4), np.bincount(clustering.labels), owners)
    np.testing.assert_array_equal(found.homes, groups)  # largest first, as made
    np.testing.assert_array_equal(found.homes, clustering.labels)
    np.testing.assert_array_equal(found.neighbours.indices, near.indices)
    assert found.ownership.owner.tolist() == [0, 1, -1, -1]
    np.testing.assert_array_equal(found.path.strength, path.strength)
    assert found.sizes.tolist() == [30, 24, 20, 16]
    assert found.clustered.all()


def test_neighbours_that_are_known_are_not_searched_again(labelled_groups, monkeypatch):
    features, _, codes = labelled_groups
    near = find_neighbours(features, 20)
    plain = find_communities(features, codes, GRAPH, n_known=2, seed=0)
    monkeypatch.setattr(module, "find_neighbours", None)
    given = find_communities(features, codes, GRAPH, n_known=2, seed=0, neighbours=near)
    np.testing.assert_array_equal(given.homes, plain.homes)


def test_rows_that_are_not_clustered_vote_and_do_not_make_communities(labelled_groups):
    features, groups, codes = labelled_groups
    clustered = codes < 0
    found = find_communities(features, codes, GRAPH, n_known=2, seed=0, clustered=clustered)
    alone = cluster_neighbours(features[clustered], find_neighbours(features[clustered], 20), GRAPH)
    np.testing.assert_array_equal(found.homes[clustered], alone.labels)
    voted = found.homes[~clustered]
    assert (voted >= 0).mean() > 0.7
    # A vote goes to the community of the row's own group.
    for home, group in zip(voted[voted >= 0], groups[~clustered][voted >= 0], strict=True):
        assert (groups[clustered][alone.labels == home] == group).all()
    assert len(found.neighbours.indices) == clustered.sum()
    np.testing.assert_array_equal(found.sizes, np.bincount(found.homes[found.homes >= 0]))


def test_rows_far_from_every_community_vote_for_none():
    members = unit_rows(np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.1, 1.0, 0.0]]))
    labels = np.array([0, 0, 1, 1])
    clustering = Clustering(labels, mean_directions(members, labels), np.zeros(4, dtype=bool))
    asking = unit_rows(np.array([[1.0, 0.05, 0.0], [0.05, 1.0, 0.0], [0.3, 0.0, 1.0]]))
    assert vote_for_communities(asking, clustering, members).tolist() == [0, 1, -1]


@pytest.mark.parametrize(("n_neighbors", "size"), [(1, 2), (8, 2), (12, 3), (64, 16)])
def test_the_smallest_class_is_a_quarter_of_the_neighbours(n_neighbors, size):
    assert smallest_class(n_neighbors) == size


@pytest.mark.parametrize(
    ("n_neighbors", "n_rows", "searched"), [(5, 100, 40), (60, 100, 60), (5, 8, 7), (40, 30, 29)]
)
def test_neighbours_are_searched_for_graph_and_links_as_far_as_rows_go(n_neighbors, n_rows, searched):
    assert n_searched(n_neighbors, n_rows) == searched


# --- finer communities -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "resolutions"), [(2, [2.0]), (4, [2.0, 1.4]), (50, [2.0, 1.4, 1.0])])
def test_the_resolution_is_lowered_until_there_are_three_communities_a_class(n_classes, resolutions):
    tried = []

    def find(graph):
        tried.append(graph.resolution)
        path = MergePath(round(18 / graph.resolution), *(np.zeros(0) for _ in range(3)))
        return Communities(np.zeros(1), None, np.ones(1, dtype=bool), None, path)

    graph, found = make_finer(find, GraphSettings(8, resolution=2.0), n_classes)
    np.testing.assert_allclose(tried, resolutions)
    assert graph.resolution == tried[-1]
    assert found.path.n_communities == round(18 / tried[-1])


# --- classes that lie apart --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "n_found"), [((3, 6), 4), ((4, 4), 4), ((5, 6), 5), ((2, 3), 5), (None, 5)]
)
def test_classes_that_no_edge_joins_are_counted_as_they_lie_within_the_interval(interval, n_found):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 60)
    features = unit_rows(8 * np.eye(6)[truth] + rng.normal(size=(240, 6)))
    codes = np.where((truth < 2) & (np.arange(240) % 2 == 0), truth, -1)
    found = find_communities(features, codes, GraphSettings(5), n_known=2, seed=0)
    grouping = group_communities(found, n_known=2, min_size=2, n_classes=5, interval=interval)
    assert grouping.n_classes == n_found


# --- sizes of classes, if they are known -------------------------------------------------------------------


def whole_and_halves():
    """Three new classes of 60 rows: two merged into one group, the third in two halves; a known one apart."""
    homes = np.repeat([0, 1, 2, 3, 4], [60, 60, 30, 30, 60])
    rng = np.random.default_rng(0)
    near = np.array([rng.choice(np.flatnonzero(homes == home), 40) for home in homes])
    near[:60, :4], near[60:120, :4] = rng.integers(60, 120, (60, 4)), rng.integers(0, 60, (60, 4))
    near[120:150, :3], near[150:180, :3] = rng.integers(150, 180, (30, 3)), rng.integers(120, 150, (30, 3))
    owner = np.array([-1, -1, -1, -1, 0])
    path = MergePath(5, np.array([0]), np.array([1]), np.array([0.01]))
    neighbours = Neighbours(near.astype(np.int32), np.ones(near.shape, dtype=np.float32))
    return Communities(homes, neighbours, np.ones(240, dtype=bool), Ownership(owner, owner < 0), path)


USUAL = ClassSizes(np.log(60), 0.1, 0.0, np.array([60.0]))


def test_groups_are_balanced_if_sizes_are_known_and_a_number_is_asked_for():
    world = whole_and_halves()
    asked = {"n_known": 1, "min_size": 5, "n_classes": 4}
    merged = class_of_each(group_communities(world, **asked), world.homes)
    assert merged[0] == merged[1]
    assert merged[2] != merged[3]
    balanced = group_communities(world, **asked, usual=USUAL)
    found = class_of_each(balanced, world.homes)
    assert found[2] == found[3]
    assert len({found[0], found[1], found[2], found[4]}) == 4
    assert balanced.n_classes == 4
    by_cut = group_communities(world, n_known=1, min_size=5, cut=0.005, usual=USUAL)
    assert class_of_each(by_cut, world.homes) == merged


def test_classes_that_lie_apart_are_not_balanced(monkeypatch):
    monkeypatch.setattr(module, "_fall_apart", lambda communities: True)
    world = whole_and_halves()
    found = group_communities(world, n_known=1, min_size=5, n_classes=4, interval=(3, 5), usual=USUAL)
    merged = class_of_each(found, world.homes)
    assert merged[0] == merged[1]
    assert merged[2] != merged[3]


def test_communities_are_parted_by_the_sizes_of_known_classes(monkeypatch):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [40, 30, 60])
    centres = np.array([[1.0, 0, 0, 0, 0, 0], [1.0, 0.5, 0, 0, 0, 0], [0, 0, 1.0, 0, 0, 0]])
    features = unit_rows(centres[truth] + 0.05 * rng.normal(size=(130, 6)))
    codes = np.where(np.arange(130) < 20, 0, -1)
    together = (truth == 2).astype(np.int64)  # classes that are alike, in one community
    clustering = Clustering(together, mean_directions(features, together), np.zeros(130, dtype=bool))
    monkeypatch.setattr(module, "cluster_neighbours", lambda *args, **options: clustering)
    plain = find_communities(features, codes, GRAPH, n_known=1, seed=0)
    np.testing.assert_array_equal(plain.homes, together)
    usual = ClassSizes(np.log(40), 0.1, 0.0, np.array([40.0]))
    parted = find_communities(features, codes, GRAPH, n_known=1, seed=0, usual=usual)
    np.testing.assert_array_equal(parted.homes, np.array([1, 2, 0])[truth])
    assert parted.path.n_communities == 3
    assert parted.ownership.owner.tolist() == [-1, 0, -1]


# --- pieces ------------------------------------------------------------------------------------------------


def test_pieces_count_once_they_have_grown_to_a_class():
    # Six pieces of 10 rows are no class yet; three pairs are, and two of these may merge further.
    pieces = communities([10] * 6, [-1] * 6, [(0, 1, 5.0), (2, 3, 4.0), (4, 5, 3.0), (0, 2, 1.0)])
    found = group_communities(pieces, n_known=0, min_size=15, n_classes=2)
    assert found.n_classes == 2
    assert class_of_each(found, pieces.homes) == [0, 0, 0, 0, 1, 1]
