from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.ranking.fusion import min_max, weighted_fusion

SCORES = st.dictionaries(st.integers(0, 8), st.floats(allow_nan=False, allow_infinity=False))


def test_the_scores_are_the_formula():
    fused = weighted_fusion([{"a": 4, "b": 3, "c": 2}, {"c": 9, "d": 1}], weights=[1, 0.5])
    assert fused == [("a", 1.0), ("b", 0.5), ("c", 0.5), ("d", 0.0)]


def test_equal_scores_are_all_the_best():
    assert min_max({"a": 0.0, "b": 0.0}) == {"a": 1.0, "b": 1.0}
    assert min_max({}) == {}


def test_a_lowest_score_takes_the_place_of_the_worst_if_it_is_lower():
    assert min_max({"a": 4.0, "b": 1.0}, lowest=0.0) == {"a": 1.0, "b": 0.25}
    assert min_max({"a": 4.0, "b": -4.0}, lowest=0.0) == {"a": 1.0, "b": 0.0}
    assert min_max({"a": 4.0}, lowest=0.0) == {"a": 1.0}


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(SCORES)
def test_stretched_scores_keep_their_order_between_zero_and_one(scores):
    stretched = min_max(scores)
    assert all(0 <= value <= 1 for value in stretched.values())
    order = sorted(scores, key=scores.__getitem__)
    assert [stretched[each] for each in order] == sorted(stretched.values())


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(SCORES, max_size=4))
def test_every_item_is_there_once_best_first(scorings):
    fused = weighted_fusion(scorings)
    assert sorted(item for item, _ in fused) == sorted(set().union(*scorings))
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)


@pytest.mark.parametrize("weights", [[1], [1, -1], [1, 1, 1]])
def test_weights_that_make_no_sense_are_refused(weights):
    with pytest.raises(InvalidArgumentError):
        weighted_fusion([{"a": 1}, {"b": 1}], weights=weights)
