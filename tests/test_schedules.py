"""Schedules against hand values: ends, middle, monotony, and refusal of progress outside the run."""

import math
from itertools import pairwise

import pytest

from pnp_gcd.schedules import cosine_learning_rate, teacher_momentum, teacher_temperature

STEPS = [step / 20 for step in range(21)]


def test_learning_rate_starts_at_start_and_ends_at_its_final_fraction():
    assert cosine_learning_rate(0.0, start=0.1) == pytest.approx(0.1)
    assert cosine_learning_rate(1.0, start=0.1) == pytest.approx(1e-4)
    assert cosine_learning_rate(1.0, start=0.1, final_fraction=0.5) == pytest.approx(0.05)


def test_learning_rate_is_halfway_at_half_time_and_follows_the_cosine_at_a_third():
    assert cosine_learning_rate(0.5, start=2.0, final_fraction=0.0) == pytest.approx(1.0)
    # cos(π/3) = 1/2, so three quarters of the way remain.
    assert cosine_learning_rate(1 / 3, start=2.0, final_fraction=0.0) == pytest.approx(1.5)


def test_learning_rate_never_rises():
    rates = [cosine_learning_rate(t, start=0.1) for t in STEPS]
    assert all(later < earlier for earlier, later in pairwise(rates))


def test_learning_rate_of_final_fraction_one_is_constant():
    assert [cosine_learning_rate(t, start=0.1, final_fraction=1.0) for t in STEPS] == pytest.approx(
        [0.1] * 21
    )


def test_momentum_of_the_paper_goes_from_069_to_099():
    assert teacher_momentum(0.0, low=0.7, high=0.99) == pytest.approx(0.69)
    assert teacher_momentum(0.5, low=0.7, high=0.99) == pytest.approx(0.84)
    assert teacher_momentum(1.0, low=0.7, high=0.99) == pytest.approx(0.99)


@pytest.mark.parametrize("progress", STEPS)
def test_momentum_equals_the_formula_with_its_bracket_put_right(progress):
    expected = 0.999 - (1 - 0.7) * (math.cos(math.pi * progress) + 1) / 2
    assert teacher_momentum(progress, low=0.7, high=0.999) == pytest.approx(expected, abs=1e-12)


def test_momentum_never_falls():
    values = [teacher_momentum(t, low=0.7, high=0.99) for t in STEPS]
    assert all(later > earlier for earlier, later in pairwise(values))


def test_momentum_starts_at_low_when_high_is_one():
    assert teacher_momentum(0.0, low=0.7, high=1.0) == pytest.approx(0.7)


def test_momentum_is_clipped_at_zero_where_the_formula_is_negative():
    # The formula gives 0.5 − 0.9 = −0.4 at the start and 0.5 − 0.45 at half time.
    assert teacher_momentum(0.0, low=0.1, high=0.5) == 0.0
    assert teacher_momentum(0.5, low=0.1, high=0.5) == pytest.approx(0.05)


@pytest.mark.parametrize(("low", "high"), [(0.9, 0.8), (-0.1, 0.9), (0.7, 1.1), (math.nan, 0.9)])
def test_momentum_refuses_limits_out_of_order_or_out_of_range(low, high):
    with pytest.raises(ValueError, match="low="):
        teacher_momentum(0.5, low=low, high=high)


def test_temperature_of_the_paper_reaches_its_end_after_30_of_200_epochs():
    def at(epoch):
        return teacher_temperature(epoch, 200, start=0.07, end=0.04)

    assert at(0) == pytest.approx(0.07)
    assert at(10) == pytest.approx(0.04 + 0.03 * 0.75)
    assert at(15) == pytest.approx(0.055)
    assert at(29) > 0.04
    assert [at(epoch) for epoch in (30, 31, 100, 199)] == [0.04] * 4


def test_temperature_warm_up_follows_the_length_of_the_run():
    assert teacher_temperature(3, 20, start=0.07, end=0.04) == 0.04
    assert teacher_temperature(3, 40, start=0.07, end=0.04) == pytest.approx(0.055)


def test_temperature_without_warm_up_is_the_end_value_from_the_first_epoch():
    assert teacher_temperature(0, 10, start=0.07, end=0.04, warmup_fraction=0.0) == 0.04


def test_temperature_may_warm_up_over_the_whole_run_and_upwards():
    assert teacher_temperature(5, 10, start=0.04, end=0.07, warmup_fraction=1.0) == pytest.approx(0.055)
    assert teacher_temperature(10, 10, start=0.04, end=0.07, warmup_fraction=1.0) == 0.07


@pytest.mark.parametrize("progress", [-0.01, 1.01, math.nan])
def test_progress_outside_the_run_is_refused(progress):
    with pytest.raises(ValueError, match="progress="):
        cosine_learning_rate(progress, start=0.1)
    with pytest.raises(ValueError, match="progress="):
        teacher_momentum(progress, low=0.7, high=0.99)


def test_temperature_refuses_a_negative_epoch_and_a_warm_up_longer_than_the_run():
    with pytest.raises(ValueError, match="epoch=-1"):
        teacher_temperature(-1, 10, start=0.07, end=0.04)
    with pytest.raises(ValueError, match=r"warmup_fraction=1\.5"):
        teacher_temperature(0, 10, start=0.07, end=0.04, warmup_fraction=1.5)
