from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import ConfigurationError
from locus_memory.memory import MemoryOptions
from locus_memory.memory.blend import Blend, age_in_days
from locus_memory.memory.models import Memory

NOW = datetime(2026, 1, 1, tzinfo=UTC)
shares = st.floats(0, 1)
ages = st.floats(0, 10_000)

# Relevance, age in days, trust, half-life, and the two scores, each computed by hand as a fraction.
TABLE = [
    (1, 0, 1, 30, 1, 1),
    (1, 0, 0.5, 30, 1, 0.85),
    (1, 30, 0.5, 30, 0.85, 0.75),
    (1, 90, 0.5, 30, 0.775, 0.7),
    (0, 0, 0.5, 30, 0.3, 0.35),
    (0, 30, 0, 30, 0.15, 0.1),
    (0, 90, 1, 30, 0.075, 0.35),
    (0.5, 0, 0.5, 30, 0.65, 0.6),
    (0.5, 30, 0.5, 30, 0.5, 0.5),
    (0.5, 90, 0.5, 30, 0.425, 0.45),
    (0.5, 15, 0.5, 30, 0.55, 8 / 15),
    (0.8, 60, 0.52, 30, 0.66, 0.556 + 0.2 / 3),
    (0.8, 60, 1, 30, 0.66, 0.7 + 0.2 / 3),
    (0.8, 60, 0.3, 30, 0.66, 0.49 + 0.2 / 3),
    (0.6, 270, 0.5, 30, 0.45, 0.47),
    (0.6, 7, 0.9, 7, 0.57, 0.67),
    (0.6, 21, 0.9, 7, 0.495, 0.62),
    (0.25, 365, 0.1, 365, 0.325, 0.255),
    (0.75, 1095, 0.5, 365, 0.6, 0.575),
    (0.9, -3, 0.5, 30, 0.93, 0.8),
]


@pytest.mark.parametrize("case", TABLE)
def test_the_formulas(case):
    relevance, age, trust, half_life, *expected = case
    scores = [
        Blend(name=name, half_life_days=half_life).score(relevance, age, trust)
        for name in ("recency", "trust")
    ]
    assert scores == pytest.approx(expected, abs=1e-9, rel=0)


def test_other_weights():
    assert Blend(name="recency", weights=(1, 0)).score(0.4, 0) == pytest.approx(0.4)
    assert Blend(name="trust", weights=(0, 1, 0)).score(0.4, 0, 0.9) == pytest.approx(0.9)


@given(shares, ages, shares, st.sampled_from(["recency", "trust"]))
def test_a_score_is_from_0_to_1(relevance, age, trust, name):
    assert 0 <= Blend(name=name).score(relevance, age, trust) <= 1 + 1e-12


pairs = st.tuples(shares, shares).map(sorted)


@pytest.mark.slow
@given(pairs, st.tuples(ages, ages).map(sorted), pairs)
def test_what_is_better_in_all_parts_never_scores_lower(relevances, aged, trusts):
    (worse, better), (new, old), (low, high) = relevances, aged, trusts
    for name in ("recency", "trust"):
        blend = Blend(name=name)
        assert blend.score(worse, old, low) <= blend.score(better, new, high) + 1e-12


def memory(key, age=0, **metadata):
    valid_from = (NOW - timedelta(days=age)).isoformat()
    return Memory("user", key, "-", {"valid_from": valid_from, **metadata})


def test_the_order_is_by_score_and_then_by_place():
    found = [
        (memory("old", 300), 0.8),
        (memory("new"), 0.7),
        (memory("twin"), 0.7),
    ]
    assert Blend(name="recency").order(found, NOW) == [1, 2, 0]
    trusted = {"old": 1.0, "new": 0.0, "twin": 0.5}
    blend = Blend(name="trust")
    assert blend.order(found, NOW, lambda each: trusted[each.key]) == [0, 2, 1]
    assert blend.order([], NOW) == []


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("2025-12-31T00:00:00+00:00", 1),
        ("2025-12-31T00:00:00", 1),
        ("2025-12-31T02:00:00+02:00", 1),
        ("2026-01-03", -2),
        ("last week", math.inf),
        (None, math.inf),
        (5, math.inf),
    ],
)
def test_the_age_is_that_of_valid_from(told, expected):
    assert age_in_days(Memory("user", "k", "-", {"valid_from": told}), NOW) == expected
    assert age_in_days(Memory("user", "k", "-"), NOW) == math.inf


@pytest.mark.parametrize(
    "options",
    [
        {"name": "random"},
        {"name": None},
        {"name": "recency", "weights": (1,)},
        {"name": "recency", "weights": (0.5, 0.3, 0.2)},
        {"name": "trust", "weights": (0.7, 0.3)},
        {"name": "recency", "weights": (-1, 2)},
        {"name": "recency", "weights": (math.nan, 2)},
        {"name": "recency", "weights": ("a", 2)},
        {"name": "recency", "weights": [0.7, 0.3]},
        {"half_life_days": 0},
        {"half_life_days": math.inf},
        {"half_life_days": "30"},
        {"min_relevance": 1.1},
        {"min_relevance": True},
        {"min_relevance": math.nan},
    ],
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(ConfigurationError):
        MemoryOptions(blend=Blend(**{"name": "recency", **options}))


def test_options_that_work():
    assert MemoryOptions().blending() is None
    blend = Blend(name="trust", weights=(1, 1, 1), half_life_days=7)
    assert MemoryOptions(blend=blend).blending() is blend
    assert MemoryOptions(blend="trust").blending() == Blend(name="trust")
    with pytest.raises(ConfigurationError, match="blend is one of"):
        MemoryOptions(blend="age")
