from __future__ import annotations

import time
from datetime import UTC, date

from hypothesis import given
from hypothesis import strategies as st

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import local_day
from locus_memory.memory.reading.lines import (
    QUOTE_TOKENS,
    fact_line,
    fitting,
    grouped,
    passage_of,
)
from locus_memory.store.text import query_words, stem

LONG = "I like rain. " * 60 + "My sister keeps bees in Porto. " + "It was a long day. " * 60


WORDS = ["harbour", "sail", "bees", "lisbon", "rain", "winter", "oak", "the"]


def stems(text):
    return {stem(word) for word in query_words(text)}


def test_of_a_long_message_the_passage_that_answers_is_quoted():
    passage = passage_of(LONG, expected_tokens, stems("Where are the bees of my sister?"))
    assert passage.startswith("...My sister keeps bees in Porto.")
    assert passage.endswith("...")
    assert expected_tokens(passage) <= QUOTE_TOKENS


def test_without_a_word_of_the_query_it_begins_at_the_beginning():
    assert passage_of(LONG, expected_tokens, {"zebra"}).startswith("I like rain.")
    assert passage_of(LONG, expected_tokens).startswith("I like rain.")


@given(st.text(max_size=2000), st.sets(st.text(min_size=1, max_size=6), max_size=5))
def test_a_passage_is_one_line_whatever_the_text(text, query):
    assert len(passage_of(text, expected_tokens, query).splitlines()) <= 1


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9), min_size=40, max_size=90),
    st.sets(st.sampled_from(WORDS), min_size=1),
)
def test_no_other_sentence_is_followed_by_more_words_of_a_query(sentences, wanted):
    told = [f"{number} {' '.join(words)}. " for number, words in enumerate(sentences, 100)]
    text, starts = "".join(told), [len("".join(told[:number])) for number in range(len(told))]
    passage = passage_of(text, expected_tokens, wanted)
    start = text.index(passage.strip("."))
    assert start in starts

    def words_from(place, room):
        return sum(word in text[place : place + room] for word in wanted)

    # How many characters of another passage have as many tokens is not known exactly.
    room = len(passage)
    assert words_from(start, room) >= max(words_from(each, room // 2) for each in starts)


def test_the_day_of_a_line_follows_the_zone_of_the_machine(monkeypatch):
    evening = "2026-03-01T22:30:00+00:00"
    try:
        for zone, day in (("UTC", 1), ("Asia/Tokyo", 2), ("UTC", 1)):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert local_day(evening, None) == date(2026, 3, day)
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.lists(st.text(max_size=200), max_size=10), st.integers(0, 200))
def test_what_fits_never_costs_more_than_the_budget(texts, budget):
    lines = [fact_line(Memory("user", "k", text)) for text in texts if text.strip()]
    chosen, tokens = fitting(lines, budget, expected_tokens, UTC)
    assert tokens <= budget
    assert (
        sum(expected_tokens(f"{text}\n") for text in grouped(chosen, UTC))
        <= max(tokens, 0) + len(lines) * 20
    )


@given(st.text(max_size=400), st.integers(1, 7))
def test_a_text_is_shown_whole_if_it_has_80_tokens(text, size):
    """Whatever counts them."""

    def count(line):
        return -(-len(line) // size)

    whole = neutralise(text)
    passage = passage_of(text, count)
    assert (passage == whole) if count(whole) <= QUOTE_TOKENS else count(passage) <= QUOTE_TOKENS
