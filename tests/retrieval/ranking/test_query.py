from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.store.text import query_words, stem


def test_a_question_is_taken_apart():
    query = read_query("When did Caroline's brother go camping in July 2023?")
    assert query.words == ("carolin", "brother", "go", "camp", "juli", "2023")
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
    ("question", "searched", "dated"),
    [
        ("What did I buy on May 2nd?", "2 May", {"bui", "2", "mai"}),
        ("What did I buy on 2 May 2023?", "2 May 2023", {"bui", "2", "mai", "2023"}),
        ("What did I buy in May 2023?", "May 2023", {"bui", "mai", "2023"}),
        ("2. Mai Tee", "2 May", {"2", "mai", "tee"}),
        ("2023年5月2日 tea", "2 May 2023", {"2", "mai", "2023", "tea"}),
    ],
)
def test_a_date_is_searched_as_items_have_it_too(question, searched, dated):
    query = read_query(question)
    assert query.terms == f"{question} {searched}"
    assert {stem for entry in query.dated for stem in entry} == dated


def test_a_word_that_is_also_a_month_is_a_word_without_a_day():
    query = read_query("May I march with Ada?")
    assert {"mai", "march"} <= set(query.words)
    assert (query.dates, query.dated, query.terms) == ((), (), query.text)


LONG = [
    " ".join(f"word{n}" for n in range(150)),
    "我今天早上和朋友一起去了城里的一家小书店看了很久最后买到一本讲海洋动物的旧书",
    "今朝は友達と一緒に町の小さな本屋へ行き海の動物についての古い本を買いました",
    "오늘 아침에 친구와 함께 시내의 작은 서점에 가서 오래된 바다 동물 책을 샀습니다 " * 3,
    "เมื่อเช้านี้ฉันไปร้านหนังสือเล็กๆกับเพื่อนและซื้อหนังสือเก่าเกี่ยวกับสัตว์ทะเล",
]


@pytest.mark.parametrize("text", LONG)
def test_every_word_of_a_message_is_searched(text):
    query = read_query(text)
    assert query.terms == text
    assert query.words == tuple(dict.fromkeys(map(stem, query_words(text))))
