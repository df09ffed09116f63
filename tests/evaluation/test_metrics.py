from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.evaluation.metrics import grouped_interval, ndcg_at, recall_at

FOUND = st.lists(st.integers(0, 20), unique=True)
RELEVANT = st.sets(st.integers(0, 20), min_size=1)


def test_the_figures_are_the_formulas():
    assert recall_at(["a", "b", "c"], {"a", "c", "d"}, 2) == pytest.approx(1 / 3)
    gain = 1 + 1 / math.log2(4)
    assert ndcg_at(["a", "b", "c"], {"a", "c"}, 3) == pytest.approx(gain / (1 + 1 / math.log2(3)))


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(FOUND, RELEVANT, st.integers(1, 30))
def test_the_figures_lie_between_zero_and_one_and_grow_with_depth(found, relevant, k):
    assert 0 <= recall_at(found, relevant, k) <= recall_at(found, relevant, k + 1) <= 1
    assert 0 <= ndcg_at(found, relevant, k) <= 1 + 1e-12


@given(RELEVANT)
def test_a_perfect_answer_is_perfect(relevant):
    found = sorted(relevant)
    assert recall_at(found, relevant, len(found)) == 1
    assert ndcg_at(found, relevant, len(found)) == pytest.approx(1)


@pytest.mark.parametrize("measure", [recall_at, ndcg_at])
def test_without_anything_relevant_there_is_nothing_to_measure(measure):
    with pytest.raises(InvalidArgumentError):
        measure(["a"], set(), 5)


def test_an_interval_is_around_the_mean_and_always_the_same():
    differences = [0.1, -0.2, 0.4, 0.0, 0.3]
    found = grouped_interval([differences])
    assert found.mean == pytest.approx(0.12)
    assert -0.2 <= found.low < found.mean < found.high <= 0.4
    assert grouped_interval([differences]) == found
    assert grouped_interval([[0.5] * 3]) == (0.5, 0.5, 0.5)
    with pytest.raises(InvalidArgumentError):
        grouped_interval([])
