"""Scales cover their values and have round ticks, whatever the values are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.plots.scales import (
    linear_scale,
    log_scale,
    write_bytes,
    write_number,
)
from locus_memory.errors import InvalidArgumentError

NUMBERS = st.floats(-1e290, 1e290)
POSITIVE = st.floats(1e-280, 1e290)


def covers(scale, values):
    places = [scale.place(value) for value in values]
    return scale.low <= min(values) and max(values) <= scale.high and 0 <= min(places) <= 1


@pytest.mark.slow
@given(st.lists(NUMBERS, min_size=1))
def test_a_linear_scale_covers_its_values(values):
    scale = linear_scale(values)
    assert covers(scale, values)
    assert 2 <= len(scale.ticks) <= 9
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert (scale.place(scale.ticks[0]), scale.place(scale.ticks[-1])) == (0, 1)


@pytest.mark.slow
@given(st.lists(NUMBERS, min_size=1), st.lists(NUMBERS, min_size=1))
def test_a_linear_scale_covers_given_ticks_too(values, ticks):
    scale = linear_scale(values, ticks)
    assert covers(scale, [*values, *ticks])
    assert scale.ticks == tuple(sorted(set(ticks)))


@pytest.mark.slow
@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_no_tick_stands_between_two_counts(counts):
    assert all(tick == int(tick) for tick in linear_scale([*counts, 0, 1], is_whole=True).ticks)


@given(st.lists(POSITIVE, min_size=1))
def test_a_logarithmic_scale_covers_its_values(values):
    scale = log_scale(values)
    assert covers(scale, values)
    assert 1 <= len(scale.ticks) <= 12
    assert all(math.log10(tick) == pytest.approx(round(math.log10(tick))) for tick in scale.ticks)


def test_ticks_are_round():
    assert linear_scale([3, 97]).ticks == (0, 20, 40, 60, 80, 100)
    assert linear_scale([0, 1]).ticks == pytest.approx((0, 0.2, 0.4, 0.6, 0.8, 1))
    assert linear_scale([7, 7]).ticks[0] < 7 < linear_scale([7, 7]).ticks[-1]
    assert log_scale([2, 300]).ticks == (1, 10, 100, 1000)


@pytest.mark.parametrize("values", [[], [math.nan], [1, math.inf], [-1e300]])
def test_what_is_no_number(values):
    with pytest.raises(InvalidArgumentError):
        linear_scale(values)
    with pytest.raises(InvalidArgumentError):
        log_scale(values)


def test_a_logarithm_needs_more_than_nothing():
    with pytest.raises(InvalidArgumentError, match="above 0"):
        log_scale([0, 1])


@pytest.mark.parametrize(
    ("value", "shown", "size"),
    [
        (0, "0", "0 bytes"),
        (999, "999", "999 bytes"),
        (1500, "1,500", "1.5 kB"),
        (2_500_000, "2,500,000", "2.5 MB"),
        (0.25, "0.25", "0.25 bytes"),
        (-3, "-3", "-3 bytes"),
        (1e15, "1e+15", "1 PB"),
        (9e20, "9e+20", "900,000 PB"),
    ],
)
def test_numbers_and_sizes(value, shown, size):
    assert write_number(value) == shown
    assert write_bytes(value) == size
