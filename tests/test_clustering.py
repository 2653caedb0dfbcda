"""Neighbour graphs and their communities."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from pnp_gcd.clustering import (
    GraphSettings,
    NeighbourGraph,
    build_graph,
    cluster_features,
    cluster_neighbours,
    mean_directions,
    number_by_size,
)
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import Neighbours, find_neighbours, share_neighbours


def tight_groups(sizes, width=12, spread=0.02, seed=0):
    """Return unit rows in groups around different axes, and the group of each."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).normal(size=(len(groups), width))
    return unit_rows(np.eye(width)[groups] + spread * noise), groups


def neighbours_of(indices, similarities):
    return Neighbours(np.array(indices, dtype=np.int64), np.array(similarities, dtype=np.float32))


def cosines(n_neighbors, threshold=0.0):
    return GraphSettings(n_neighbors, threshold, edge_weights="cosine")


# --- the graph ---------------------------------------------------------------------------------------------


def test_edges_are_the_neighbours_strictly_above_the_threshold():
    found = neighbours_of([[1, 2], [0, 2], [0, 1]], [[0.9, 0.5], [0.9, 0.75], [0.5, 0.3]])
    graph = build_graph(found, cosines(2, 0.5))
    assert isinstance(graph, NeighbourGraph)
    assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == [(0, 1), (1, 0), (1, 2)]
    np.testing.assert_allclose(graph.weights, [0.9, 0.9, 0.75])
    assert graph.n_rows == 3


@pytest.mark.parametrize("threshold", [0.0, -1.0, -0.5])
def test_a_weight_is_never_zero_or_negative(threshold):
    found = neighbours_of([[1, 2], [0, 2], [0, 1]], [[0.9, 0.0], [0.9, -0.2], [0.0, -0.2]])
    graph = build_graph(found, cosines(2, threshold))
    assert graph.weights.tolist() == pytest.approx([0.9, 0.9])


@pytest.mark.parametrize("edge_weights", ["shared", "cosine"])
def test_the_graph_follows_a_permutation_of_the_rows_exactly(edge_weights):
    rows = unit_rows(np.random.default_rng(0).normal(size=(80, 6)))
    order = np.random.default_rng(1).permutation(80)
    edges = []
    for features, name in ((rows, np.arange(80)), (rows[order], order)):
        graph = build_graph(find_neighbours(features, 20), GraphSettings(6, 0.4, edge_weights=edge_weights))
        edges.append(
            {
                (int(name[s]), int(name[t])): round(float(w), 5)
                for s, t, w in zip(graph.sources, graph.targets, graph.weights, strict=True)
            }
        )
    assert edges[0] == edges[1]


@pytest.mark.parametrize("edge_weights", ["shared", "cosine"])
def test_only_the_nearest_neighbours_asked_for_are_edges(edge_weights):
    found = find_neighbours(unit_rows(np.random.default_rng(0).normal(size=(40, 3)) + 2), 12)
    graph = build_graph(found, GraphSettings(4, edge_weights=edge_weights))
    np.testing.assert_array_equal(graph.sources, np.repeat(np.arange(40), 4))
    np.testing.assert_array_equal(graph.targets, found.indices[:, :4].ravel())


def test_a_shared_weight_is_the_cosine_times_the_overlap_of_the_two_lists():
    # With their own rows the lists are {0, 1, 2}, {1, 0, 2}, {2, 1, 3} and {3, 2, 1}.
    found = neighbours_of([[1, 2], [0, 2], [1, 3], [2, 1]], [[0.8, 0.4], [0.8, 0.6], [0.6, 0.5], [0.5, 0.3]])
    graph = build_graph(found, GraphSettings(2, 0.45))
    assert list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) == [
        (0, 1),
        (1, 0),
        (1, 2),
        (2, 1),
        (2, 3),
        (3, 2),
    ]
    assert graph.weights.tolist() == pytest.approx([0.8, 0.8, 0.6 * 2 / 4, 0.6 * 2 / 4, 0.5, 0.5])


def test_the_threshold_compares_the_cosine_also_with_shared_weights():
    rows = unit_rows(np.random.default_rng(0).normal(size=(60, 4)))
    found = find_neighbours(rows, 8)
    shared, plain = (build_graph(found, GraphSettings(8, 0.6, edge_weights=w)) for w in ("shared", "cosine"))
    np.testing.assert_array_equal(shared.sources, plain.sources)
    np.testing.assert_array_equal(shared.targets, plain.targets)
    keep = found.similarities > 0.6
    np.testing.assert_allclose(shared.weights, plain.weights * share_neighbours(found, 8)[keep])


def test_shared_weights_keep_two_cliques_apart_that_close_bridges_join():
    # The nearest row of every row is its mirror image in the other clique.
    others = [np.delete(np.arange(6), row).tolist() for row in range(6)]
    indices = [[6 + row, *others[row]] for row in range(6)]
    indices += [[row, *(6 + other for other in others[row])] for row in range(6)]
    found = neighbours_of(indices, [[1.0, 0.4, 0.4, 0.4, 0.4, 0.4]] * 12)
    rows = tight_groups([6, 6])[0]
    shared, plain = (
        cluster_neighbours(rows, found, GraphSettings(6, edge_weights=weights)).labels
        for weights in ("shared", "cosine")
    )
    assert shared.tolist() == [0] * 6 + [1] * 6
    assert plain.tolist() == [0] * 12


# --- communities -------------------------------------------------------------------------------------------


def test_separated_groups_are_the_communities_largest_first():
    rows, groups = tight_groups([12, 30, 20])
    found = cluster_features(rows, n_neighbors=6, similarity_threshold=0.5, resolution=2.0)
    assert found.n_communities == 3
    np.testing.assert_array_equal(found.labels, np.array([2, 0, 1])[groups])
    np.testing.assert_allclose(found.centroids, mean_directions(rows, found.labels), atol=1e-6)
    assert not found.is_isolated.any()


def test_row_zero_alone_joins_the_nearest_centroid_and_shifts_nobody():
    rows, groups = tight_groups([12, 30, 20])
    stranger = unit_rows([0.55 * np.eye(12)[0] + 0.5 * np.eye(12)[1] + np.eye(12)[8]])
    found = cluster_features(
        np.concatenate([stranger, rows]), n_neighbors=6, similarity_threshold=0.8, resolution=2.0
    )
    assert found.is_isolated.tolist() == [True] + [False] * 62
    assert found.labels[0] == 2  # the smallest group, around the first axis
    np.testing.assert_array_equal(found.labels[1:], np.array([2, 0, 1])[groups])


@pytest.mark.parametrize("place", [0, 17, 62])
def test_an_isolated_row_anywhere_joins_the_nearest_centroid_and_does_not_move_it(place):
    rows, groups = tight_groups([12, 30, 20])
    stranger = unit_rows([np.eye(12)[1] + np.eye(12)[2] * 1.1 + np.eye(12)[9]])
    with_it = np.insert(rows, place, stranger, axis=0)
    plain = cluster_features(rows, n_neighbors=6, similarity_threshold=0.8, resolution=2.0)
    found = cluster_features(with_it, n_neighbors=6, similarity_threshold=0.8, resolution=2.0)
    assert np.flatnonzero(found.is_isolated).tolist() == [place]
    assert found.labels[place] == 1
    np.testing.assert_array_equal(np.delete(found.labels, place), plain.labels)
    np.testing.assert_allclose(found.centroids, plain.centroids, atol=1e-6)
    assert len(groups) == 62


@pytest.mark.parametrize("first", [0, 1, 2])
def test_row_zero_gets_the_label_of_its_own_group_also_in_the_largest(first):
    rows, groups = tight_groups([12, 30, 20])
    order = np.argsort(groups != first, kind="stable")
    found = cluster_features(rows[order], n_neighbors=6, similarity_threshold=0.5, resolution=2.0)
    assert found.labels[0] == [2, 0, 1][first]
    np.testing.assert_array_equal(found.labels, np.array([2, 0, 1])[groups[order]])


def test_communities_follow_a_permutation_of_the_rows_as_a_partition():
    rows, _ = tight_groups([25, 25, 25, 25], spread=0.05)
    order = np.random.default_rng(0).permutation(100)
    found = cluster_features(rows, n_neighbors=10, similarity_threshold=0.5)
    moved = cluster_features(rows[order], n_neighbors=10, similarity_threshold=0.5)
    assert adjusted_rand_score(found.labels[order], moved.labels) == 1.0


def test_a_row_only_pointed_at_is_not_isolated():
    # Row 3 has no edge of its own above the threshold, but row 0 points at it.
    found = neighbours_of([[1, 3], [0, 2], [1, 0], [2, 0]], [[0.9, 0.8], [0.9, 0.8], [0.8, 0.7], [0.1, 0.1]])
    rows = tight_groups([4])[0]
    assert not cluster_neighbours(rows, found, cosines(2, 0.5)).is_isolated.any()


def test_a_larger_resolution_gives_fewer_communities():
    rows = unit_rows(np.random.default_rng(0).normal(size=(400, 3)))
    counts = [cluster_features(rows, n_neighbors=8, resolution=r).n_communities for r in (0.5, 1.0, 3.0)]
    assert counts[0] > counts[1] > counts[2]


def test_the_same_seed_gives_the_same_communities():
    rows = unit_rows(np.random.default_rng(0).normal(size=(300, 4)))
    first, second = (cluster_features(rows, n_neighbors=8, seed=5).labels for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", [0, 2**31 - 2, 2**32 - 1])
def test_any_32_bit_seed_is_accepted(seed):
    rows, groups = tight_groups([10, 15])
    found = cluster_features(rows, n_neighbors=5, similarity_threshold=0.5, resolution=2.0, seed=seed)
    assert adjusted_rand_score(groups, found.labels) == 1.0


def test_no_pair_above_the_threshold_is_an_empty_graph_error_that_says_how_near_rows_are():
    rows = unit_rows([[1, 0.1, 0], [0, 1, 0.2], [0.1, 0, 1]])
    closest = find_neighbours(rows, 1).similarities.max()
    with pytest.raises(EmptyGraphError, match=rf"similarity_threshold=0\.9 .*cosine {closest:.3f}.*Lower"):
        cluster_features(rows, n_neighbors=2, similarity_threshold=0.9)


def test_rows_with_nothing_in_common_are_communities_of_their_own():
    found = cluster_features(np.eye(4, dtype=np.float32), n_neighbors=3)
    assert found.labels.tolist() == [0, 1, 2, 3]
    assert found.is_isolated.all()
    np.testing.assert_array_equal(found.centroids, np.eye(4))


def test_mean_directions_are_unit_means_of_groups():
    rows = unit_rows(np.random.default_rng(0).normal(size=(9, 3)))
    labels = np.array([0, 1, 0, 1, 0, 1, 3, 3, 3])
    means = mean_directions(rows, labels, 5)
    for group in (0, 1, 3):
        mean = rows[labels == group].mean(axis=0)
        np.testing.assert_allclose(means[group], mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 1.0, rtol=1e-6)


def test_communities_of_one_size_are_numbered_by_their_first_row():
    assert number_by_size(np.array([7, 3, 7, 3, 9, 9, 9])).tolist() == [1, 2, 1, 2, 0, 0, 0]


@pytest.mark.parametrize("order", ["cluster, import, cluster", "import, cluster, cluster"])
def test_faiss_may_be_imported_before_or_after_communities_were_found(order):
    cluster = (
        "from pnp_gcd.clustering import cluster_features; import numpy as np;"
        "rows = np.random.default_rng(0).normal(size=(60, 4)).astype('f4');"
        "cluster_features(rows / np.linalg.norm(rows, axis=1, keepdims=True), n_neighbors=5)"
    )
    steps = [cluster if step == "cluster" else "import faiss" for step in order.split(", ")]
    ran = subprocess.run([sys.executable, "-c", "\n".join(steps)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-500:]


def test_adding_up_some_groups_after_the_others_changes_no_bit(monkeypatch):
    from pnp_gcd import clustering as module

    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(500, 7)).astype(np.float32), rng.integers(23, size=500)
    labels[labels == 5] = 6  # a group without rows
    whole = module._group_sums(rows, labels, 25)
    for at_once in (1, 100, 700):
        monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", at_once)
        np.testing.assert_array_equal(module._group_sums(rows, labels, 25), whole)


@pytest.mark.parametrize("at_once", [1, 100, 1 << 21])
def test_rows_of_no_group_count_nowhere(monkeypatch, at_once):
    from pnp_gcd import clustering as module

    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(500, 7)).astype(np.float32), rng.integers(-1, 23, size=500)
    grouped = labels >= 0
    np.testing.assert_array_equal(
        mean_directions(rows, labels), mean_directions(rows[grouped], labels[grouped])
    )
