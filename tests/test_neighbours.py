"""The nearest rows of each row."""

import numpy as np
import pytest
import torch

from pnp_gcd import cells
from pnp_gcd import neighbours as module
from pnp_gcd._threads import each_by_one_thread
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import (
    Neighbours,
    _drop_self,
    _search_exactly,
    _search_inverted_file,
    find_neighbours,
    measure_recall,
    share_neighbours,
)


@pytest.fixture(scope="module")
def rows():
    return unit_rows(np.random.default_rng(0).normal(size=(150, 7)))


@pytest.fixture(scope="module")
def clustered_rows():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(30, 24))
    return unit_rows(centres[rng.integers(30, size=3000)] + 0.4 * rng.normal(size=(3000, 24)))


@pytest.mark.parametrize("n_neighbors", [1, 5, 149])
def test_neighbours_are_those_of_a_full_sort_in_double_precision(rows, n_neighbors):
    cosines = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.fill_diagonal(cosines, -np.inf)
    order = np.argsort(-cosines, axis=1, kind="stable")[:, :n_neighbors]
    found = find_neighbours(rows, n_neighbors)
    np.testing.assert_allclose(found.similarities, np.take_along_axis(cosines, order, 1), atol=1e-6)
    np.testing.assert_array_equal(found.indices, order)


def test_a_row_is_never_its_own_neighbour_even_among_duplicates():
    rows = unit_rows(np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 5, axis=0))
    for search in (_search_exactly, find_neighbours):
        found = search(rows, 6)
        assert not (found.indices == np.arange(15)[:, None]).any()
        assert (found.indices[:, :4] // 5 == np.arange(15)[:, None] // 5).all()


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_the_size_of_blocks_does_not_matter(rows, monkeypatch, block):
    whole = _search_exactly(rows, 9)
    monkeypatch.setattr(module, "_BLOCK_SHARED", block * len(rows))
    blocked = _search_exactly(rows, 9)
    np.testing.assert_array_equal(blocked.indices, whole.indices)
    np.testing.assert_allclose(blocked.similarities, whole.similarities, atol=1e-6)


def test_neighbours_follow_a_permutation_of_the_rows(rows):
    order = np.random.default_rng(1).permutation(len(rows))
    found, moved = find_neighbours(rows, 8), find_neighbours(rows[order], 8)
    np.testing.assert_array_equal(order[moved.indices], found.indices[order])


def test_nearest_is_a_search_for_fewer(rows):
    wide, narrow = find_neighbours(rows, 20), find_neighbours(rows, 6)
    np.testing.assert_array_equal(wide.nearest(6).indices, narrow.indices)
    np.testing.assert_allclose(wide.nearest(6).similarities, narrow.similarities, atol=1e-6)


def test_the_inverted_file_finds_nearly_all_exact_neighbours(clustered_rows):
    exact = _search_exactly(clustered_rows, 15)
    found = _search_inverted_file(clustered_rows, 15)
    shared = [
        len(set(a) & set(b)) for a, b in zip(exact.indices.tolist(), found.indices.tolist(), strict=True)
    ]
    assert np.mean(shared) / 15 >= 0.95
    assert not (found.indices == np.arange(3000)[:, None]).any()
    assert (found.indices >= 0).all()
    assert (np.diff(found.similarities, axis=1) <= 1e-6).all()


def test_the_inverted_file_gives_every_neighbour_asked_for_even_in_a_small_cell():
    # A row far from all others has fewer rows in its cells than neighbours asked for.
    rng = np.random.default_rng(0)
    rows = unit_rows(np.concatenate([np.eye(8)[:1] * 10 + 0.1 * rng.normal(size=(2000, 8)), -np.eye(8)[:1]]))
    found = _search_inverted_file(rows, 600)
    assert (found.indices >= 0).all()
    assert np.isfinite(found.similarities).all()
    assert found.similarities.min() >= -1.001


def test_cells_find_as_many_of_the_neighbours_as_they_say(clustered_rows):
    exact = _search_exactly(clustered_rows, 15)
    found = find_neighbours(clustered_rows, 15, engine="cells")
    assert measure_recall(found.indices, exact.indices) >= 0.95
    assert found.recall == pytest.approx(measure_recall(found.indices, exact.indices), abs=0.02)
    assert not (found.indices == np.arange(3000)[:, None]).any()
    assert (np.diff(found.similarities, axis=1) <= 0).all()
    cosines = np.einsum("id,ikd->ik", clustered_rows, clustered_rows[found.indices])
    np.testing.assert_allclose(found.similarities, cosines, atol=1e-5)
    assert all(len(set(near)) == 15 for near in found.indices.tolist())


def test_looking_into_every_cell_is_exact_search(rows):
    tensor = torch.from_numpy(rows)
    found = cells.build_cells(tensor)
    indices, similarities = cells.search_cells(tensor, found, 9, len(found.centres))
    exact = _search_exactly(rows, 9)
    np.testing.assert_array_equal(indices, exact.indices)
    np.testing.assert_allclose(similarities, exact.similarities, atol=1e-6)


@pytest.mark.parametrize("block", [1, 60, 1 << 25])
def test_the_size_of_blocks_does_not_matter_to_cells(rows, monkeypatch, block):
    tensor = torch.from_numpy(rows)
    found = cells.build_cells(tensor)
    whole = cells.search_cells(tensor, found, 4, 3)
    monkeypatch.setattr(cells, "_BLOCK_CANDIDATES", block)
    monkeypatch.setattr(cells, "_BLOCK", block)
    monkeypatch.setattr(cells, "_BLOCK_RANKED", block)
    np.testing.assert_array_equal(cells.sort_rows(tensor, found.centres).ranked, found.ranked)
    blocked = cells.search_cells(tensor, found, 4, 3)
    np.testing.assert_array_equal(blocked[0], whole[0])
    np.testing.assert_allclose(blocked[1], whole[1], atol=1e-6)


def test_the_part_that_a_plan_promises_is_the_part_that_is_found(clustered_rows):
    tensor, exact = torch.from_numpy(clustered_rows), _search_exactly(clustered_rows, 10)
    found = cells.build_cells(tensor)
    true = torch.from_numpy(exact.indices.astype(np.int64))
    n_probes, promised = cells.plan_probes(found, tensor, torch.arange(3000), true, recall=0.9)
    assert promised >= 0.9
    indices, _ = cells.search_cells(tensor, found, 10, n_probes)
    assert measure_recall(indices, exact.indices) == pytest.approx(promised, abs=1e-3)


def test_rows_whose_cells_hold_too_few_others_are_searched_exactly():
    rng = np.random.default_rng(0)
    rows = unit_rows(np.concatenate([np.eye(8)[:1] * 10 + 0.1 * rng.normal(size=(2000, 8)), -np.eye(8)[:1]]))
    found = find_neighbours(rows, 600, engine="cells")
    assert (found.indices >= 0).all()
    assert np.isfinite(found.similarities).all()


def test_many_rows_go_to_cells_only_where_these_save_work(clustered_rows, monkeypatch):
    monkeypatch.setattr(module, "_MAX_EXACT_ROWS", 100)
    assert find_neighbours(clustered_rows, 15).recall < 1.0
    shapeless = unit_rows(np.random.default_rng(0).normal(size=(1000, 40)))
    assert find_neighbours(shapeless, 15).recall == 1.0


@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7])
def test_every_task_is_done_once_and_an_error_in_one_is_raised(n_tasks):
    done = []
    each_by_one_thread(done.append, n_tasks)
    assert sorted(done) == list(range(n_tasks))
    n_threads = torch.get_num_threads()
    if n_tasks:
        with pytest.raises(ZeroDivisionError):
            each_by_one_thread(lambda number: 1 / 0, n_tasks)
    assert torch.get_num_threads() == n_threads


def test_dropping_self_drops_the_farthest_where_self_was_not_found():
    indices = np.array([[0, 1, 2], [0, 2, 1], [0, 1, 0]])
    similarities = np.array([[1.0, 0.9, 0.8], [0.9, 0.8, 0.7], [0.6, 0.5, 0.4]], dtype=np.float32)
    found = _drop_self(indices, similarities)
    assert isinstance(found, Neighbours)
    np.testing.assert_array_equal(found.indices, [[1, 2], [0, 2], [0, 1]])
    np.testing.assert_allclose(found.similarities, [[0.9, 0.8], [0.9, 0.8], [0.6, 0.5]])


@pytest.mark.parametrize("n_neighbors", [150, 151])
def test_as_many_neighbours_as_rows_are_refused(rows, n_neighbors):
    with pytest.raises(
        ValueError, match=f"n_neighbors={n_neighbors} needs more than {n_neighbors} rows, got 150"
    ):
        find_neighbours(rows, n_neighbors)


# --- shared neighbours -------------------------------------------------------------------------------------


def slow_shares(indices, n_neighbors, n_listed):
    """Return the Jaccard overlap of two rows' nearest rows, each with its own, by Python's sets."""
    lists = [{row, *near[:n_listed]} for row, near in enumerate(indices.tolist())]
    return [
        [len(lists[row] & lists[other]) / len(lists[row] | lists[other]) for other in near[:n_neighbors]]
        for row, near in enumerate(indices.tolist())
    ]


@pytest.mark.parametrize(("n_found", "n_neighbors"), [(6, 6), (6, 2), (20, 5), (30, 10), (30, 30)])
def test_shares_are_the_overlap_of_sets_of_at_most_twenty_nearest_rows(rows, n_found, n_neighbors):
    found = find_neighbours(rows, n_found)
    shares = share_neighbours(found, n_neighbors)
    assert shares.dtype == np.float32
    np.testing.assert_allclose(shares, slow_shares(found.indices, n_neighbors, 20), rtol=1e-6)


def test_shares_of_two_cliques_and_the_bridge_between_them_by_hand():
    # Rows 0 1 2 list each other, as do 3 4 5, but row 2 lists row 3 in the place of row 1.
    found = Neighbours(
        np.array([[1, 2], [0, 2], [0, 3], [4, 5], [3, 5], [3, 4]]), np.ones((6, 2), dtype=np.float32)
    )
    shares = share_neighbours(found, 2)
    np.testing.assert_allclose(
        shares, [[1, 2 / 4], [1, 2 / 4], [2 / 4, 1 / 5], [1, 1], [1, 1], [1, 1]], rtol=1e-6
    )


@pytest.mark.parametrize("block", [1, 3, 64])
def test_the_size_of_blocks_does_not_matter_to_shares(rows, monkeypatch, block):
    found = find_neighbours(rows, 9)
    whole = share_neighbours(found, 4)
    monkeypatch.setattr(module, "_BLOCK_COMPARISONS", block * 4 * 10**2)
    np.testing.assert_array_equal(share_neighbours(found, 4), whole)


def test_more_edges_than_were_found_are_those_found(rows):
    found = find_neighbours(rows, 5)
    np.testing.assert_array_equal(share_neighbours(found, 50), share_neighbours(found, 5))


@pytest.mark.parametrize(("part", "cut"), [(0.0, 0.1), (0.5, 0.45), (1.0, 0.9)])
def test_a_part_of_the_edges_stays_below_the_cut(part, cut):
    near = Neighbours(np.zeros((2, 2), dtype=np.int64), np.array([[0.9, 0.3], [0.6, 0.1]], dtype=np.float32))
    assert near.cut_at(part) == pytest.approx(cut)


def test_a_cut_is_never_below_zero():
    near = Neighbours(np.zeros((1, 2), dtype=np.int64), np.array([[-0.1, -0.5]], dtype=np.float32))
    assert near.cut_at(0.5) == 0.0


def test_rows_that_are_asked_for_have_the_neighbours_they_have_among_all(rows):
    asked = np.array([140, 3, 77])
    everyone, some = find_neighbours(rows, 5), find_neighbours(rows, 5, asked)
    np.testing.assert_array_equal(some.indices, everyone.indices[asked])
    np.testing.assert_allclose(some.similarities, everyone.similarities[asked], rtol=1e-6)


def test_cells_are_not_taken_where_their_blocks_do_not_fit(clustered_rows, monkeypatch):
    monkeypatch.setattr(module, "_MAX_EXACT_ROWS", 100)
    monkeypatch.setattr(module, "free_memory", lambda: 2.0**28)
    assert find_neighbours(clustered_rows, 15).recall == 1.0


def test_more_neighbours_than_memory_holds_are_refused_by_name(rows, monkeypatch):
    monkeypatch.setattr(module, "free_memory", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r"9 neighbours of 150 rows .* Lower n_neighbors or max_samples"):
        find_neighbours(rows, 9)


def test_memory_is_told_or_not_known(monkeypatch):
    assert module.free_memory() > 1 << 20
    monkeypatch.setattr("builtins.open", lambda *given: (_ for _ in ()).throw(OSError()))
    assert module.free_memory() == np.inf


def test_faiss_goes_to_every_gpu_that_it_sees(clustered_rows, monkeypatch):
    import faiss

    moved = []
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2, raising=False)
    monkeypatch.setattr(
        faiss, "index_cpu_to_all_gpus", lambda index: moved.append(index) or index, raising=False
    )
    found = find_neighbours(clustered_rows, 5, engine="faiss")
    assert len(moved) == 1
    assert moved[0].nprobe >= 8
    assert measure_recall(found.indices, _search_exactly(clustered_rows, 5).indices) > 0.9


def test_rows_go_to_a_gpu_only_where_they_fit(monkeypatch):
    rows = unit_rows(np.random.default_rng(0).normal(size=(50, 4)))
    monkeypatch.setattr(module, "_MANY_ROWS", 10)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1000, 1000))
    assert find_neighbours(rows, 3).recall == 1.0  # would need a GPU if the rows went there
