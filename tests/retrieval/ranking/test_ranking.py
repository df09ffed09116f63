from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.explain import Explanation
from locus_memory.retrieval.ranking.fields import Fields, ReadOnce, Words
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.ranking import blend, rank
from locus_memory.retrieval.ranking.score import neighbour_gains, word_scores
from locus_memory.store.candidates import Candidate
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
BARE = SearchOptions(word_weight=0, neighbour_weight=0, speaker_boost=1, date_boost=1)


def item(key, score=1.0, value="", **metadata):
    return StoreItem(("n",), key, value, metadata, NOW, NOW, score=score)


def ranked(query, by_text, by_vector=(), options=BARE, **more):
    places = [
        {place: Candidate(each, each.score) for place, each in enumerate(found, 1)}
        for found in (by_text, by_vector)
    ]
    return rank(read_query(query), *places, options=options, fields=Fields(), **more)


def keys(ranking):
    return [each.item.key for each in ranking]


def test_what_only_one_search_finds_is_kept():
    found = ranked("tea", [item("a", 3), item("b", 1)], [item("c", 0.9), item("b", 0.2)])
    assert sorted(keys(found)) == ["a", "b", "c"]


def test_both_scores_are_added():
    by_text = [item("a", 10, "tea"), item("b", 9.9), item("c", 0)]
    by_vector = [item("c", 0.9), item("b", 0.5), item("a", 0.1)]
    weighted = {each.item.key: each.score for each in ranked("tea", by_text, by_vector)}
    assert weighted == pytest.approx({"a": 1.0, "b": 1.49, "c": 1.0})


@pytest.mark.parametrize(
    ("query", "better"),
    [
        ("what did Ana say", {"speaker": "Ana"}),
        ("what did the assistant say", {"role": "assistant"}),
        ("what was said on 3 May 2023", {"date": "2023-05-03T10:00:00+00:00"}),
        ("what was said in May 2023", {"date": "2023-05-30"}),
        ("what was said on 3 May 2023", {"timestamp": 1_683_108_000}),
    ],
)
def test_names_and_dates_boost_and_never_filter(query, better):
    options = SearchOptions(word_weight=0, neighbour_weight=0)
    first, second = ranked(query, [item("a", 1), item("b", 1, **better)], (), options)
    assert (first.item.key, second.item.key) == ("b", "a")
    assert second.score > 0


def test_the_words_of_an_item_count_and_not_only_its_neighbours():
    options = SearchOptions(neighbour_weight=0)
    found = ranked("green tea", [item("a", 1, "coffee"), item("b", 1, "tea, green")], (), options)
    assert keys(found) == ["b", "a"]


def test_an_item_gains_from_a_good_one_beside_it():
    near = [item("a", 4, position=4), item("b", 1, position=9), item("c", 1, position=5)]
    options = SearchOptions(word_weight=0)
    assert keys(ranked("tea", near, (), options)) == ["a", "c", "b"]
    apart = [item("a", 4, position=4, session="x"), *near[1:]]
    assert keys(ranked("tea", apart, (), options)) == ["a", "b", "c"]


def test_gains_are_those_of_the_better_neighbour():
    placed = [item("x", position=number) for number in (1, 2, 3)]
    passages = list(map(Fields().read, [*placed, item("y")]))
    assert neighbour_gains([1.0, 2.0, 3.0, 9.0], passages) == [2.0, 3.0, 2.0, 0.0]


def test_a_passage_is_read_once_and_goes_with_its_item():
    kept = ReadOnce(Fields().read)
    first, second = item("a", value="red tea"), item("a", value="a boat")
    assert kept.read(first) is kept.read(first)
    assert (kept.read(first).text, kept.read(second).text) == ("red tea", "a boat")
    del first
    assert len(kept._known) == 1
    assert kept.read(second).text == "a boat"


def test_an_explanation_adds_up():
    both = item("a", 5, "tea", speaker="Ana", date="2023-05-03", position=1)
    found = ranked(
        "what tea did Ana buy on 3 May 2023",
        [both, item("b", 2)],
        [item("c", 0.8, "tea", position=2), both],
        SearchOptions(),
        explain=True,
    )
    for each in found:
        assert each.parts.score == pytest.approx(each.score)
    parts = next(each.parts for each in found if each.item.key == "a")
    assert (parts.text_rank, parts.vector_rank) == (1, 2)
    assert (parts.speaker, parts.date) == (1.5, 2.0)
    assert parts.to_dict()["text_score"] == 5
    assert parts.describe().startswith("text #1 +0.88, vector #2 +1.00, ")
    assert Explanation().describe() == ""


def test_a_reranker_is_blended_and_what_it_did_not_see_stays_behind():
    before = ranked("tea", [item("a", 4), item("b", 3), item("c", 2), item("d", 1)])
    after = blend(before, [0.0, 5.0, 1.0], 1.0)
    assert keys(after) == ["b", "a", "c", "d"]
    assert [each.score for each in after] == sorted((e.score for e in after), reverse=True)
    assert keys(blend(before, [0.0, 5.0, 1.0], 0.0)) == keys(before)
    assert blend([], [], 1.0) == []


FOUND = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1e6), max_size=8)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(FOUND, FOUND)
def test_the_union_is_there_once_best_first(text, vector):
    found = [
        [item(key, score) for key, score in sorted(scores.items(), key=lambda each: -each[1])]
        for scores in (text, vector)
    ]
    ranking = ranked("tea", *found, SearchOptions())
    assert sorted(keys(ranking)) == sorted(text | vector)
    scores = [each.score for each in ranking]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(st.sampled_from(["tea", "boat", "rain"]))))
def test_word_scores_lie_between_zero_and_one(documents):
    scores = word_scores(("tea", "boat"), list(map(Words.of, documents)))
    assert len(scores) == len(documents)
    assert all(0 <= score <= 1 for score in scores)
    assert all(
        (score > 0) == bool({"tea", "boat"} & set(words))
        for score, words in zip(scores, documents, strict=True)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 0},
        {"depth": 1.5},
        {"rerank_depth": -1},
        {"text_weight": math.nan},
        {"vector_weight": math.inf},
        {"date_boost": True},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        SearchOptions(**options)


@pytest.mark.parametrize(
    ("value", "metadata", "text", "speakers"),
    [
        ("plain", {}, "plain", ()),
        ({"a": "x", "b": ["y"]}, {}, "x\ny", ()),
        ({"text": "x", "note": "y"}, {"speaker": "Ana"}, "x", ("Ana",)),
        ({"role": "user", "content": "x"}, {}, "x", ("user",)),
        (None, {"speaker": 4, "date": "soon", "position": "1", "role": ""}, "", ()),
        (7, {"timestamp": 1e30, "position": True}, "", ()),
    ],
)
def test_what_an_item_tells_is_read(value, metadata, text, speakers):
    passage = Fields().read(item("a", 1, value, **metadata))
    assert (passage.text, passage.speakers) == (text, speakers)
    assert passage.day is None
    assert passage.place is None
    assert passage.spoken == (f"{speakers[0]}: {text}" if speakers else text)
