from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.ranking.query import read_query


def test_a_question_is_taken_apart():
    query = read_query("When did Caroline's brother go camping in July 2023?")
    assert query.words == ("carolin", "brother", "go", "camp")
    assert query.mentions("Caroline")
    assert query.mentions("caroline smith")
    assert not query.mentions("Melanie")
    assert len(query.dates) == 1


@pytest.mark.parametrize(
    ("question", "speaker", "named"),
    [
        ("what did caroline buy", "Caroline", True),
        ("What did the assistant recommend?", "assistant", True),
        ("What did I say?", "user", False),
        ("will it rain", "Will", False),
        ("Will it rain?", "Will", False),
        ("What did Will buy?", "Will", True),
        ("Where does Zoë live?", "Zoe", True),
        ("Anything", "", False),
        ("", "Will", False),
    ],
)
def test_speakers_and_roles_are_recognised(question, speaker, named):
    assert read_query(question).mentions(speaker) is named


def test_half_a_character_is_refused():
    with pytest.raises(InvalidArgumentError):
        read_query("\ud800")


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_any_text_is_a_query(text):
    query = read_query(text.encode("utf-8", "replace").decode())
    assert len(set(query.words)) == len(query.words)


def test_of_a_long_text_both_ends_are_read():
    text = f"Was Ana in Oslo? {'and so on ' * 100_000} What did she do in May 2023?"
    query = read_query(text)
    assert len(query.text) < 2100
    assert {"oslo", "ana"} <= query.names
    assert [period.first.month for period in query.dates] == [5]
    assert query.terms == f"{query.text} May 2023"


@pytest.mark.parametrize(
    ("question", "searched", "told"),
    [
        ("What did I buy on May 2nd?", "2 May", {"mai", "2"}),
        ("What did I buy on 2 May 2023?", "2 May 2023", {"mai", "2nd"}),
        ("What did I buy in May 2023?", "May 2023", {"mai", "2023"}),
        ("Was habe ich am 2. Mai gekauft?", "2 May", {"mai", "2"}),
        ("我在2023年5月2日买了什么？", "2 May 2023", {"5", "月", "2", "日"}),  # noqa: RUF001 - Chinese
    ],
)
def test_a_date_is_searched_as_items_have_it_and_is_no_word_of_the_question(
    question, searched, told
):
    query = read_query(question)
    assert query.terms == f"{question} {searched}"
    (entries,) = query.told
    assert told <= {stem for entry in entries for stem in entry}
    words = {*query.words, *(stem for entry in query.meanings for stem in entry)}
    assert words
    assert words.isdisjoint({*told, "2", "2nd"})


def test_a_word_that_is_also_a_month_is_a_word_without_a_day():
    query = read_query("May I march with Ada?")
    assert {"mai", "march"} <= set(query.words)
    assert (query.dates, query.told, query.terms) == ((), (), query.text)


def test_of_many_words_the_longest_are_kept_in_their_order():
    words = ["harbour", "tea", "ferry", "mountain", "hat"]
    query = read_query(" and ".join(words), most_words=3)
    assert query.terms == "harbour ferry mountain"
    assert query.words == ("harbour", "ferri", "mountain")
    assert read_query("tea, hat!", most_words=2).terms == "tea, hat!"
