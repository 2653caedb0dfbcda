"""Classes found in features as they are."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from pnp_gcd import probing
from pnp_gcd.clustering import GraphSettings
from pnp_gcd.exceptions import EmptyGraphError
from pnp_gcd.geometry import unit_rows
from pnp_gcd.merging import ClassSizes
from pnp_gcd.probing import ProbeSettings, probe_classes

SETTINGS = ProbeSettings(GraphSettings(10))


def change(**changes):
    return dataclasses.replace(SETTINGS, **changes)


@pytest.fixture(scope="module")
def features(world):
    return unit_rows(world.X - world.X.mean(axis=0))


@pytest.fixture(scope="module")
def codes(world):
    return np.where(world.has_label, world.y, -1)


def test_classes_are_found_known_ones_under_their_code(world, features, codes):
    found = probe_classes(features, codes, change(n_classes=4), seed=0)
    assert found.grouping.n_classes == 4
    assert adjusted_rand_score(world.y, found.grouping.rows) == 1.0
    np.testing.assert_array_equal(found.grouping.rows[codes >= 0], codes[codes >= 0])
    assert len(np.unique(found.homes)) == found.n_communities


def test_a_merge_cut_decides_where_no_number_is_given(features, codes):
    fine = GraphSettings(10, resolution=0.5)
    counts = [
        probe_classes(features, codes, change(graph=fine, merge_cut=cut), seed=0).grouping.n_classes
        for cut in (np.inf, 0.3, 0.1, 0.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
    given = probe_classes(features, codes, change(graph=fine, merge_cut=np.inf, n_classes=4), seed=0)
    assert given.grouping.n_classes == 4


def test_rows_are_refined_after_communities_were_merged(features, codes, monkeypatch):
    def refine(features, neighbours, codes, rows, n_classes, *, temperature, known_sizes):
        assert len(features) == len(codes) == len(rows) == len(neighbours.indices)
        assert temperature == 0.3
        assert known_sizes is None
        return np.full(len(rows), 7)

    monkeypatch.setattr(probing, "refine_rows", refine)
    found = probe_classes(features, codes, change(temperature=0.3), seed=0)
    assert (found.grouping.rows == 7).all()


def test_clustering_on_unlabelled_rows_searches_only_them(world, features, codes, monkeypatch):
    searched = []
    find = probing.find_neighbours
    monkeypatch.setattr(
        probing, "find_neighbours", lambda rows, k: searched.append(len(rows)) or find(rows, k)
    )
    found = probe_classes(features, codes, change(cluster_on="unlabelled", n_classes=4), seed=0)
    assert searched == [int((~world.has_label).sum())]
    assert found.homes[codes < 0].min() >= 0
    assert adjusted_rand_score(world.y[codes < 0], found.grouping.rows[codes < 0]) == 1.0


@pytest.mark.parametrize("n_unlabelled", [1, 2, 3])
def test_very_few_unlabelled_rows_are_clustered_by_as_many_neighbours_as_there_are(
    features, world, n_unlabelled
):
    codes = np.where(np.arange(len(world.y)) < n_unlabelled, -1, world.y)
    found = probe_classes(features, codes, change(cluster_on="unlabelled"), seed=0)
    assert found.grouping.rows.shape == (len(features),)
    assert found.grouping.n_classes >= 4


def test_fewer_rows_than_neighbours_are_all_neighbours(features):
    found = probe_classes(features[:6], np.full(6, -1), change(graph=GraphSettings(50)), seed=0)
    assert found.grouping.rows.min() >= 0


def test_a_threshold_of_our_own_that_leaves_no_edge_is_dropped_and_one_asked_for_is_an_error(features, codes):
    strict = GraphSettings(10, similarity_threshold=1.0)
    plain = probe_classes(features, codes, SETTINGS, seed=0)
    found = probe_classes(features, codes, change(graph=strict), seed=0)
    np.testing.assert_array_equal(found.grouping.rows, plain.grouping.rows)
    with pytest.raises(EmptyGraphError):
        probe_classes(features, codes, change(graph=strict, may_drop_threshold=False), seed=0)


def test_communities_are_made_finer_only_where_that_is_allowed_and_needed(features, codes):
    plain, finer, enough = (
        probe_classes(features, codes, change(n_classes=n_classes, may_make_finer=allowed), seed=0)
        for n_classes, allowed in ((12, False), (12, True), (2, True))
    )
    assert finer.n_communities > plain.n_communities
    assert enough.n_communities == plain.n_communities


def test_without_labels_every_class_is_new(world, features):
    found = probe_classes(features, np.full(len(features), -1), change(n_classes=4), seed=0)
    assert adjusted_rand_score(world.y, found.grouping.rows) == 1.0
    sizes = np.bincount(found.grouping.rows)
    assert (np.diff(sizes) <= 0).all()


def test_the_same_seed_finds_the_same(features, codes):
    first, second = (probe_classes(features, codes, SETTINGS, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.grouping.rows, second.grouping.rows)
    np.testing.assert_array_equal(first.homes, second.homes)


def test_a_threshold_of_our_own_cuts_the_same_part_of_the_edges_in_any_features(features, codes, monkeypatch):
    seen = []
    find = probing.find_communities

    def watched(features, codes, graph, **options):
        edges = options["neighbours"].nearest(graph.n_neighbors).similarities
        seen.append(float((edges < graph.similarity_threshold).mean()))
        return find(features, codes, graph, **options)

    monkeypatch.setattr(probing, "find_communities", watched)
    tighter = unit_rows(features + 2 * features.mean(axis=0) + 1.0)
    for rows in (features, tighter):
        probe_classes(rows, codes, change(cut_part=0.2), seed=0)
    np.testing.assert_allclose(seen, 0.2, atol=0.01)


@pytest.mark.parametrize(("is_balanced", "handed_on"), [(False, None), (True, "usual")])
def test_sizes_are_handed_on_for_balancing_only_if_asked_for(
    features, codes, monkeypatch, is_balanced, handed_on
):
    seen = []
    group = probing.group_communities

    def watched(communities, *, usual=None, **options):
        seen.append(usual)
        return group(communities, usual=usual, **options)

    monkeypatch.setattr(probing, "group_communities", watched)
    usual = ClassSizes(np.log(50), 0.2, 0.0, np.full(int(codes.max()) + 1, 50.0))
    probe_classes(features, codes, change(n_classes=4, usual=usual, is_balanced=is_balanced), seed=0)
    assert seen == [usual if handed_on else None]
