"""Of two statements on the same subject, the newer one ranks first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.newer import asks_for_now, newer_first
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.ranking import rank
from locus_memory.store.candidates import Candidate
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
OLD, NEW = "I live in Vienna by the river.", "I moved, I live in Graz."


def item(text, day=None, **metadata):
    if day is not None:
        metadata["date"] = day
    return StoreItem(("n",), text, {"text": text}, metadata, NOW, NOW)


def ranked(query, *items, options=None):
    found = {place: Candidate(each, 10.0 - place) for place, each in enumerate(items, 1)}
    options = options or SearchOptions()
    return rank(read_query(query), found, {}, options=options, fields=Fields(), explain=True)


def keys(ranking):
    return [each.item.key for each in ranking]


def test_the_newer_value_takes_the_place_of_the_older():
    old, new = item(OLD, "2022-05-01"), item(NEW, "2023-05-01")
    found = ranked("Where do I live?", old, new)
    assert keys(found) == [NEW, OLD]
    assert found[0].score == found[1].score
    for each in found:
        assert each.parts.score == pytest.approx(each.score)
    assert keys(ranked("Where do I live?", old, new, options=SearchOptions(newer=False))) == [
        OLD,
        NEW,
    ]


@pytest.mark.parametrize(
    ("query", "old", "new"),
    [
        ("Where did I live before?", {}, {}),
        ("Where do I live in 2022-05-01?", {}, {}),
        ("live", {}, {}),
        ("Where do I live?", {"speaker": "Ada"}, {"speaker": "Ben"}),
        ("Where do I live?", {"day": None}, {}),
        ("Where do I live?", {"day": "2023-05-01"}, {}),
    ],
)
def test_other_questions_and_items_keep_their_order(query, old, new):
    first = item(OLD, **{"day": "2022-05-01", **old})
    second = item(NEW, **{"day": "2023-05-01", **new})
    assert keys(ranked(query, first, second)) == [OLD, NEW]


def test_another_subject_does_not_rise():
    other = item("I live music of all kinds, and Oslo has a lot of it", "2023-05-01")
    found = ranked("Where does my sister Ida live?", item("Ida lives in Rome", "2022-01-01"), other)
    assert keys(found)[0] == "Ida lives in Rome"


def test_the_name_of_a_speaker_is_no_subject():
    older = item("Ada: the sloop is old", "2022-01-01", speaker="Ada")
    newer = item("Ada: the planks are in", "2023-01-01", speaker="Ada")
    query = "What is Ada allergic to?"
    assert keys(ranked(query, older, newer)) == keys(
        ranked(query, older, newer, options=SearchOptions(newer=False))
    )


@pytest.mark.parametrize(
    ("query", "is_now"),
    [
        ("Where do I live?", True),
        ("What is my favourite tea?", True),
        ("Wo wohne ich?", True),
        ("我住在哪里\uff1f", True),
        ("What was my address?", False),
        ("Which car did I drive?", False),
        ("Wo habe ich früher gewohnt?", False),
        ("Où habitait ma sœur avant ?", False),
        ("¿Dónde vivía antes?", False),
        ("我以前住在哪里\uff1f", False),
        ("a note", False),
        ("Was ist meine Adresse?", True),
        ("Was esse ich gern?", True),
        ("Was waren meine Ziele?", False),
        ("Was my address in Vienna?", False),
    ],
)
def test_the_tense_of_a_question(query, is_now):
    assert asks_for_now(read_query(query)) is is_now


statements = st.lists(
    st.tuples(
        st.sampled_from([OLD, NEW, "I live.", "A boat.", "Do I live?", ""]),
        st.none() | st.sampled_from(["2022-01-01", "2022-02-01", "2023-01-01"]),
    ),
    max_size=30,
)


@pytest.mark.slow
@given(statements)
def test_the_order_is_a_permutation_that_settles(said):
    read = Fields().read
    passages = [read(item(text, day)) for text, day in said]
    query = read_query("Where do I live?")
    order = [place for place, _ in newer_first(query, passages)]
    assert sorted(order) == list(range(len(passages)))
    assert newer_first(read_query("boat"), passages) == [(n, None) for n in range(len(passages))]
