"""Views, batches, and features that leave torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pnp_gcd import encoding
from pnp_gcd.encoders import ResidualAdapter
from pnp_gcd.encoding import encode_rows, map_in_blocks
from pnp_gcd.views import BalancedBatches, FeatureViews


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def unit_tensor(*shape):
    return functional.normalize(torch.randn(shape, generator=generator(7)), dim=-1)


def make_views(rows, *, noise=0.5, dropout=0.1, seed=0):
    return FeatureViews(rows, noise=noise, dropout=dropout, generator=generator(seed))


# --- views -------------------------------------------------------------------------------------------------


def test_two_views_of_a_row_are_unit_rows_that_differ():
    rows = unit_tensor(50, 16)
    indices = torch.arange(40, 50)
    first, second = make_views(rows).take(indices)
    for view in (first, second):
        torch.testing.assert_close(view.norm(dim=1), torch.ones(10))
        assert ((view * rows[indices]).sum(dim=1) > 0.3).all()
    assert not torch.isclose(first, second).all(dim=1).any()


def test_without_noise_and_dropout_a_view_is_the_row():
    rows = unit_tensor(9, 5)
    first, second = make_views(rows, noise=0.0, dropout=0.0).take(torch.arange(9))
    torch.testing.assert_close(first, rows)
    torch.testing.assert_close(second, rows)


def test_noise_has_the_length_it_is_given_whatever_the_width():
    for width in (4, 400):
        rows = torch.zeros(2000, width)
        rows[:, 0] = 1.0
        views = make_views(rows, noise=0.5, dropout=0.0)
        seen = views._disturb(rows)
        # unit(e + n) has the tangent of its angle ≈ |n off e|: compare through the cosine's mean square.
        tangent = (1 / seen[:, 0].square() - 1).sqrt().median()
        assert tangent == pytest.approx(0.5 * np.sqrt((width - 1) / width), rel=0.2)


def test_dropout_sets_its_share_of_columns_to_zero():
    views = make_views(unit_tensor(200, 100), noise=0.0, dropout=0.25).take(torch.arange(200))
    assert float((views.first == 0).float().mean()) == pytest.approx(0.25, abs=0.02)


def test_views_repeat_with_their_generator():
    rows, indices = unit_tensor(20, 4), torch.arange(20)
    again = [make_views(rows, seed=s).take(indices).first for s in (3, 3, 4)]
    assert torch.equal(again[0], again[1])
    assert not torch.equal(again[0], again[2])


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_precomputed_views_are_picked_two_different_ones_of_each_row(n_views):
    rows = unit_tensor(40, n_views, 6)
    indices = torch.arange(40).repeat(5)
    first, second = make_views(rows).take(indices)
    which = []
    for view in (first, second):
        is_view = (rows[indices] == view[:, None]).all(dim=2)
        assert is_view.any(dim=1).all()
        which.append(is_view.float().argmax(dim=1))
    assert (which[0] != which[1]).all()
    assert all(set(w.tolist()) == set(range(n_views)) for w in which)


# --- batches -----------------------------------------------------------------------------------------------


def make_batches(n_labelled, n_unlabelled, batch_size, seed=0):
    codes = np.r_[np.zeros(n_labelled, dtype=np.int64), np.full(n_unlabelled, -1)]
    return codes, BalancedBatches(codes, batch_size, np.random.default_rng(seed))


def test_half_of_each_batch_is_labelled():
    codes, batches = make_batches(10, 90, 20)
    seen = [codes[batch.numpy()] for batch in batches]
    assert len(seen) == len(batches) == 5
    assert all((part >= 0).sum() == 10 and len(part) == 20 for part in seen)


def test_an_epoch_goes_through_each_side_before_it_repeats():
    _, batches = make_batches(10, 90, 20)
    rows = torch.cat(list(batches)).numpy()
    labelled, rest = rows[rows < 10], rows[rows >= 10]
    assert np.bincount(labelled, minlength=10).tolist() == [5] * 10
    assert len(set(rest.tolist())) == len(rest) == 50


@pytest.mark.parametrize(("n_labelled", "n_unlabelled"), [(30, 0), (0, 30)])
def test_one_side_alone_fills_the_batches(n_labelled, n_unlabelled):
    _, batches = make_batches(n_labelled, n_unlabelled, 10)
    rows = torch.cat(list(batches)).tolist()
    assert sorted(rows) == list(range(30))


@pytest.mark.parametrize(("n_labelled", "n_unlabelled"), [(1, 1), (1, 40), (40, 1), (2, 0)])
def test_a_side_of_one_row_and_a_batch_larger_than_all_rows_work(n_labelled, n_unlabelled):
    codes, batches = make_batches(n_labelled, n_unlabelled, 1000)
    for batch in batches:
        assert len(batch) >= 2
        part = codes[batch.numpy()]
        assert (part >= 0).any() == (n_labelled > 0)
        assert (part < 0).any() == (n_unlabelled > 0)


def test_each_epoch_has_its_own_order_and_the_seed_repeats_it():
    batches, again = make_batches(10, 30, 8)[1], make_batches(10, 30, 8)[1]
    epochs = [torch.cat(list(batches)).tolist() for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert epochs == [torch.cat(list(again)).tolist() for _ in range(2)]


# --- features leaving torch --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    adapter = ResidualAdapter(24, 40)
    torch.nn.init.normal_(adapter.contract.weight)
    return adapter


@pytest.fixture(scope="module")
def rows():
    return unit_tensor(1100, 24).numpy()  # two full blocks and a part


def test_a_row_s_feature_depends_neither_on_its_place_nor_on_its_company(encoder, rows):
    features = encode_rows(encoder, rows)
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(encode_rows(encoder, rows[order]), features[order])
    for part in ([5], [1099, 3], range(500, 530)):
        np.testing.assert_array_equal(encode_rows(encoder, rows[list(part)]), features[list(part)])


def test_encoding_in_blocks_is_encoding(encoder, rows):
    with torch.no_grad():
        expected = encoder(torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(encode_rows(encoder, rows), expected, atol=1e-6)


def test_encoding_leaves_the_network_in_its_mode_and_builds_no_graph(encoder, rows):
    for mode in (True, False):
        encoder.train(mode)
        encode_rows(encoder, rows[:3])
        assert encoder.training is mode


def test_rows_with_views_are_encoded_by_their_mean_direction(encoder, rows):
    views = np.stack([rows[:10], rows[10:20]], axis=1)
    mean = views.mean(axis=1)
    mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    np.testing.assert_array_equal(encode_rows(encoder, views), encode_rows(encoder, mean))


def test_map_in_blocks_calls_with_one_shape_only_and_returns_each_row_once(monkeypatch):
    monkeypatch.setattr(encoding, "_BLOCK_ROWS", 4)
    shapes = []

    def double(block):
        shapes.append(block.shape)
        return 2 * block

    rows = np.arange(22, dtype=np.float32).reshape(11, 2)
    np.testing.assert_array_equal(map_in_blocks(double, rows), 2 * rows)
    assert shapes == [(4, 2)] * 3
