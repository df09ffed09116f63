from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.ranking.mmr import maximal_marginal_relevance, word_overlap

SCORED = st.lists(st.tuples(st.integers(), st.floats(0, 1)), unique_by=lambda entry: entry[0])


def test_what_repeats_the_first_comes_later():
    scored = [("tea", 1.0), ("tea please", 0.9), ("rain", 0.8)]

    def alike(first, second):
        return word_overlap(frozenset(first.split()), frozenset(second.split()))

    assert maximal_marginal_relevance(scored, alike, limit=3, balance=0.5) == [
        "tea",
        "rain",
        "tea please",
    ]


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(SCORED, st.integers(0, 20))
def test_only_scores_count_at_balance_one(scored, limit):
    found = maximal_marginal_relevance(scored, lambda _, __: 1.0, limit=limit, balance=1)
    assert found == [name for name, _ in sorted(scored, key=lambda entry: -entry[1])][:limit]


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(SCORED, st.floats(0, 1))
def test_nothing_is_lost_or_repeated(scored, balance):
    found = maximal_marginal_relevance(
        scored, lambda a, b: float(a % 2 == b % 2), limit=len(scored), balance=balance
    )
    assert sorted(found) == sorted(name for name, _ in scored)


@pytest.mark.parametrize("balance", [-0.1, 1.1])
def test_a_balance_outside_is_refused(balance):
    with pytest.raises(InvalidArgumentError):
        maximal_marginal_relevance([], lambda _, __: 0.0, limit=1, balance=balance)


def test_no_words_overlap_nothing():
    assert word_overlap(frozenset(), frozenset()) == 0.0
