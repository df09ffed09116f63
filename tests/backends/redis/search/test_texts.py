"""BM25 over packed postings."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.index import TextIndex
from locus_memory.backends.inmemory.index import rank as rank_in_memory
from locus_memory.backends.redis.items.items import terms
from locus_memory.backends.redis.search.texts import Postings, rank
from locus_memory.store.text import tokens

texts = st.lists(st.sampled_from("abcd"), min_size=1, max_size=6)


def index_of(documents, words, dead=()):
    """Return the postings of documents, by their numbers."""
    alive = {number: text for number, text in documents.items() if number not in dead}
    records = [
        b"".join(
            struct.pack("<IHI", number, text.count(word), len(text))
            for number, text in documents.items()
            if word in text
        )
        for word in words
    ]
    return Postings(len(alive), sum(map(len, alive.values())), 0, [], list(dead), records)


@pytest.mark.slow
@given(
    indexes=st.lists(st.dictionaries(st.integers(1, 2**32 - 1), texts, max_size=6), max_size=3),
    words=st.sets(st.sampled_from("abcdz"), min_size=1),
    data=st.data(),
)
def test_it_ranks_as_the_reference_does(indexes, words, data):
    words = sorted(words)
    packed, reference = [], []
    for documents in indexes:
        dead = data.draw(st.sets(st.sampled_from(sorted(documents) or [0])))
        packed.append(index_of(documents, words, dead))
        text_index = TextIndex()
        for number, text in documents.items():
            if number not in dead:
                text_index.add(str(number), Counter(text))
        reference.append(text_index)
    scores = rank_in_memory(reference, words)
    wanted = {(i, int(key)): score for i, each in enumerate(scores) for key, score in each.items()}
    found = list(rank(packed))
    assert {(place, number): score for place, number, score in found} == pytest.approx(wanted)
    assert [score for *_, score in found] == sorted((s for *_, s in found), reverse=True)


def test_of_equals_the_last_comes_first():
    documents = {number: ["a"] for number in (3, 1, 2)}
    assert [number for _, number, _ in rank([index_of(documents, ["a"])])] == [3, 2, 1]


@pytest.mark.parametrize(
    ("text", "packed"),
    [
        ("", b""),
        ("…!", b""),
        ("Foxes and a fox", b"4 fox=2 and=1 a=1"),
        ("a=1 b_c", b"4 a=1 1=1 b=1 c=1"),
        ("Déjà", b"1 deja=1"),
    ],
)
def test_terms_of_a_text(text, packed):
    assert terms(tokens(text)) == packed
