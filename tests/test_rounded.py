"""Neighbours by rounded rows first: what is said to be proven is exact."""

import numpy as np
import pytest
import torch

from pnp_gcd import cells, rounded
from pnp_gcd import neighbours as module
from pnp_gcd.geometry import unit_rows
from pnp_gcd.neighbours import _search_exactly, find_neighbours

pytestmark = pytest.mark.skipif(not hasattr(torch, "_int_mm"), reason="this torch has no product of bytes")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 70))
    return unit_rows(centres[rng.integers(20, size=1003)] + rng.normal(size=(1003, 70)))


@pytest.mark.parametrize("block", [1, 5000, 1 << 24])
def test_what_is_proven_is_what_exact_search_finds(rows, monkeypatch, block):
    monkeypatch.setattr(rounded, "_BLOCK", block)
    exact = _search_exactly(rows, 9)
    tensor = torch.from_numpy(rows)
    indices, similarities, is_proven = rounded.search_rounded(tensor, rounded.round_rows(tensor), 9)
    assert is_proven.mean() > 0.5
    np.testing.assert_array_equal(indices[is_proven], exact.indices[is_proven])
    np.testing.assert_allclose(similarities[is_proven], exact.similarities[is_proven], atol=1e-6)
    assert not (indices == np.arange(len(rows))[:, None]).any()


def test_no_cosine_is_moved_further_by_rounding_than_is_said(rows):
    tensor = torch.from_numpy(rows)
    found = rounded.round_rows(tensor)
    whole = found.bytes[: len(rows)].double() / found.scale
    moved = (whole @ whole.T - tensor.double() @ tensor.double().T).abs()
    assert bool((moved <= found.errors[:, None]).all())
    assert float(moved.max()) > 1e-4


def test_rows_that_rounding_would_spoil_are_left_to_exact_search():
    spiked = np.random.default_rng(0).normal(size=(200, 4000))
    spiked[0] = 0.0
    spiked[0, 0] = 1.0
    assert rounded.round_rows(torch.from_numpy(unit_rows(spiked))) is None


def test_wide_rows_take_this_way_and_doubtful_rows_are_searched_exactly(rows, monkeypatch):
    exact = find_neighbours(rows, 9)
    monkeypatch.setattr(module, "_MANY_WIDE_ROWS", 100)
    monkeypatch.setattr(module, "_MANY_COLUMNS", 70)
    monkeypatch.setattr(rounded, "is_quick", lambda: True)
    search, called = rounded.search_rounded, []

    def doubt_every_third(*given):
        indices, similarities, is_proven = search(*given)
        called.append(len(indices))
        indices[::3], is_proven[::3] = 0, False
        return indices, similarities, is_proven

    monkeypatch.setattr(rounded, "search_rounded", doubt_every_third)
    found = find_neighbours(rows, 9)
    assert called == [len(rows)]
    np.testing.assert_array_equal(found.indices, exact.indices)
    np.testing.assert_allclose(found.similarities, exact.similarities, atol=1e-6)


def test_all_other_rows_may_be_asked_for(rows):
    tensor = torch.from_numpy(rows[:40])
    indices, _, is_proven = rounded.search_rounded(tensor, rounded.round_rows(tensor), 20)
    assert is_proven.all()
    np.testing.assert_array_equal(indices, _search_exactly(rows[:40], 20).indices)


def test_bytes_alone_rank_columns_nearly_as_products_do_each_row_by_its_own_scale(rows, monkeypatch):
    monkeypatch.setattr(rounded, "is_quick", lambda: True)
    monkeypatch.setattr(rounded, "_MANY_COLUMNS", 70)
    spiked = np.concatenate([rows, unit_rows([[1000.0] + 69 * [0.0]])])  # leaves the other rows' bytes alone
    tensor, columns = torch.from_numpy(spiked), torch.from_numpy(rows[:300])
    whole = rounded.round_columns(columns)
    ranked = rounded.rank_columns(tensor, whole)
    cosines = tensor @ columns.T
    best = cosines.gather(1, ranked.argmax(1)[:, None])[:, 0]
    assert float((cosines.amax(1) - best).max()) < 0.01
    assert float((ranked.argmax(1) == cosines.argmax(1)).float().mean()) > 0.98
    room = torch.empty_like(ranked)
    monkeypatch.setattr(rounded, "_BLOCK_NEAR", 700)
    assert rounded.rank_columns(tensor, whole, out=room) is room
    assert bool((room == ranked).all())


@pytest.mark.parametrize(("is_quick", "width"), [(False, 70), (True, 71)])
def test_columns_are_rounded_only_where_that_pays(rows, monkeypatch, is_quick, width):
    monkeypatch.setattr(rounded, "is_quick", lambda: is_quick)
    monkeypatch.setattr(rounded, "_MANY_COLUMNS", width)
    assert rounded.round_columns(torch.from_numpy(rows)) is None


def test_cells_of_wide_rows_are_chosen_by_bytes_and_find_as_many_neighbours_as_they_say(rows, monkeypatch):
    monkeypatch.setattr(rounded, "is_quick", lambda: True)
    monkeypatch.setattr(rounded, "_MANY_COLUMNS", 70)
    called = []
    rank = cells.rank_columns
    monkeypatch.setattr(
        cells, "rank_columns", lambda *given, **named: called.append(1) or rank(*given, **named)
    )
    found = find_neighbours(rows, 9, engine="cells")
    assert called
    recall = module.measure_recall(found.indices, _search_exactly(rows, 9).indices)
    assert recall >= 0.95
    assert found.recall == pytest.approx(recall, abs=0.03)


def test_chosen_cosines_are_those_of_the_rows(rows):
    tensor, asked = torch.from_numpy(rows), torch.tensor([3, 900])
    others = torch.tensor([[1, 2, 5], [7, 3, 3]])
    found = rounded.compare_some(tensor, asked, others).numpy()
    np.testing.assert_allclose(
        found, np.einsum("id,ikd->ik", rows[[3, 900]], rows[others.numpy()]), atol=1e-6
    )
