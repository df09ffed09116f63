from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.ranking.fusion import reciprocal_rank_fusion

RANKINGS = st.lists(st.lists(st.integers(0, 8), max_size=8), max_size=4)


def test_the_scores_are_the_formula():
    fused = reciprocal_rank_fusion([["a", "b"], ["b"]], k=10, weights=[1, 2])
    assert fused == [("b", pytest.approx(1 / 12 + 2 / 11)), ("a", pytest.approx(1 / 11))]


def test_what_both_find_comes_before_what_one_finds():
    fused = reciprocal_rank_fusion([["a", "b"], ["c", "b"]])
    assert fused[0][0] == "b"


def test_nothing_makes_nothing():
    assert reciprocal_rank_fusion([]) == []
    assert reciprocal_rank_fusion([[], []]) == []


def test_of_equal_scores_the_one_met_first_comes_first():
    assert [item for item, _ in reciprocal_rank_fusion([["b"], ["a"]])] == ["b", "a"]


def test_a_repeated_item_counts_once_at_its_best_place():
    assert reciprocal_rank_fusion([["a", "b", "a"]]) == reciprocal_rank_fusion([["a", "b"]])


@pytest.mark.parametrize(
    "options", [{"k": -1}, {"weights": [1]}, {"weights": [1, 1, 1]}, {"weights": [1, -1]}]
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgumentError):
        reciprocal_rank_fusion([["a"], ["b"]], **options)


@settings(deadline=None, max_examples=100)
@given(RANKINGS)
def test_every_item_is_there_once_best_first(rankings):
    fused = reciprocal_rank_fusion(rankings)
    items = [item for item, _ in fused]
    assert sorted(items) == sorted({item for ranking in rankings for item in ranking})
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(), unique=True, max_size=10), st.floats(0, 100))
def test_one_ranking_stays_as_it_is(ranking, k):
    assert [item for item, _ in reciprocal_rank_fusion([ranking], k=k)] == ranking
