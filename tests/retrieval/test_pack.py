from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.pack import pack


def test_a_shorter_one_still_gets_in():
    packed = pack(["aa", "bbbbbbb", "c"], 6, counter=len)
    assert packed.items == ("aa", "c")
    assert (packed.tokens, packed.left_out) == (5, 1)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=12)), st.integers(0, 60))
def test_the_budget_is_kept_and_the_order_too(texts, budget):
    packed = pack(list(enumerate(texts)), budget, text_of=lambda pair: pair[1], counter=len)
    assert packed.tokens == sum(len(text) + 1 for _, text in packed.items) <= budget
    places = [place for place, _ in packed.items]
    assert places == sorted(places)
    assert packed.left_out + len(places) == len(texts)


@pytest.mark.parametrize("budget", [-1, 1.5, True])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(InvalidArgumentError):
        pack(["a"], budget)
