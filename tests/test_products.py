"""Products on the CPU, and the best of many columns."""

import numpy as np
import pytest
import torch

from pnp_gcd.products import multiply, take_best


def numbers(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_a_product_is_torch_s_up_to_rounding():
    first, second = numbers(37, 20), numbers(41, 20)
    torch.testing.assert_close(multiply(first, second), first @ second.T, rtol=1e-5, atol=1e-5)
    # Slices and transposes are read as they lie.
    turned = multiply(first.T[3:9], second[:37].T)
    torch.testing.assert_close(turned, first.T[3:9] @ second[:37], rtol=1e-5, atol=1e-5)


def test_a_product_goes_where_it_is_told():
    first, second = numbers(5, 4), numbers(6, 4)
    room = torch.full((9, 6), torch.nan)
    found = multiply(first, second, out=room[:5])
    assert found.data_ptr() == room.data_ptr()
    torch.testing.assert_close(room[:5], first @ second.T)
    assert room[5:].isnan().all()


@pytest.mark.parametrize("n_columns", [3, 16, 100, 1000, 1003, 4096])
@pytest.mark.parametrize("n_best", [1, 3, 15])
def test_the_best_are_those_of_a_plain_sort(n_columns, n_best):
    values = numbers(50, n_columns)
    n_best = min(n_best, n_columns)
    best, columns = take_best(values, n_best)
    expected = np.sort(values.numpy(), axis=1)[:, ::-1][:, :n_best]
    np.testing.assert_array_equal(best.numpy(), expected)
    np.testing.assert_array_equal(values.gather(1, columns).numpy(), expected)
    assert all(len(set(row)) == n_best for row in columns.tolist())


def test_equal_values_are_all_found():
    values = torch.zeros(4, 2000)
    values[:, [5, 130, 1999]] = 1.0
    best, columns = take_best(values, 3)
    assert (best == 1.0).all()
    np.testing.assert_array_equal(np.sort(columns.numpy(), axis=1), [[5, 130, 1999]] * 4)


def test_columns_that_do_not_count_come_last():
    values = torch.full((2, 1000), -torch.inf)
    values[:, :7] = 0.5
    best, columns = take_best(values, 10)
    assert (best[:, :7] == 0.5).all()
    assert (best[:, 7:] == -torch.inf).all()
    assert set(columns[0, :7].tolist()) == set(range(7))
