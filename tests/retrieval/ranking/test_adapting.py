"""The rules by which the ranking adapts to the query and its candidates."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.asker import is_question, meant, person_of
from locus_memory.retrieval.ranking.fields import Fields, Words
from locus_memory.retrieval.ranking.fusion import correlation, search_weights
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.ranking import rank
from locus_memory.retrieval.ranking.score import date_factor, neighbour_share, word_scores
from locus_memory.store.candidates import Candidate
from locus_memory.store.item import StoreItem

NOW = datetime(2024, 1, 1, tzinfo=UTC)
DEFAULT = SearchOptions()


def item(key, text="", **metadata):
    return StoreItem(("n",), key, {"text": text}, metadata, NOW, NOW)


def ranked(query, by_text, by_vector=(), options=DEFAULT):
    places = [
        {place: Candidate(*each) for place, each in enumerate(found, 1)}
        for found in (by_text, by_vector)
    ]
    return rank(read_query(query), *places, options=options, fields=Fields())


def keys(ranking):
    return [each.item.key for each in ranking]


@pytest.mark.parametrize(
    ("question", "person"),
    [
        ("What did I say about tea?", "asker"),
        ("Which film did you recommend to me?", "asked"),
        ("Do you remember where I live?", "asker"),
        ("Can you tell me which film you recommended?", "asked"),
        ("Tell me about my trip", "asker"),
        ("What was your advice on sleep?", "asked"),
        ("Was hast du mir empfohlen?", "asked"),
        ("Weißt du, wo ich wohne?", "asker"),
        ("Quel film as-tu recommandé ?", "asked"),
        ("¿Cuál es mi color?", "asker"),
        ("你给我推荐过哪些画家\uff1f", "asked"),
        ("你还记得我看了什么展览吗\uff1f", "asker"),
        ("私の猫の名前は\uff1f", "asker"),
        ("मैंने क्या कहा था?", "asker"),
        ("I once asked you about tea. What did you say?", "asked"),
        ("I told you about my plans. Where did I plan to go?", "asker"),
        ("You taught me a dish. What is the recipe?", "asked"),
        ("You recommended books to me, do you remember which ones?", "asked"),
        ("When I told you about tea, what did you say?", "asked"),
        ("What did you say, when I told you about tea?", "asked"),
        ("When did I tell you about tea?", "asker"),
        ("Als ich krank war, was hast du geraten?", "asked"),
        ("我向你咨询过绘画的方法\uff0c你给了我哪些建议\uff1f", "asked"),
        ("我曾告诉过你我的旅行计划\uff0c我计划去哪个地方\uff1f", "asker"),
        ("What did I tell Dr. Lee about you?", "asker"),
        ("What did I write to J. Lee about you?", "asker"),
        ("What did I buy for e.g. the trip you planned?", "asker"),
        ("Did I really spend 10,000 euros as you said?", "asker"),
        ("Did I pay 3.50 for the tea you like?", "asker"),
        ("What did I do at 10:30 with you?", "asker"),
        ("So do I. What did you say?", "asked"),
        ("Thank you! What is my dog's name?", "asker"),
        ("I need help. What is your name?", "asked"),
        ("Danke dir, du bist toll! Wie heißt mein Hund?", "asker"),
        ("What is my dentist's name, if you know?", "asker"),
        ("When you showed me a film, what was my answer?", "asker"),
        ("Which film did you recommend, given my taste?", "asked"),
        ("Was habe ich am 5. Mai gesagt?", "asker"),
        ("What is on television tonight?", None),
        ("Where does Ada live?", None),
        ("", None),
    ],
)
def test_the_first_person_of_the_last_clause_decides(question, person):
    assert person_of(question) == person


USER, ASSISTANT = ("Ada", "user"), ("Helper", "assistant")


def test_a_person_is_known_beside_an_assistant_only():
    assert meant("asker", {USER, ASSISTANT}) == {USER}
    assert meant("asked", {USER, ASSISTANT}) == {ASSISTANT}
    assert meant("asker", {("Ada",), ("Assistant",)}) == {("Ada",)}
    assert meant("asker", {("Ada",), ("Ben",)}) == set()
    assert meant("asked", {("Ada",), ("Ben",)}) == set()
    assert meant("asker", {USER, ("Ben", "user"), ASSISTANT}) == set()
    assert meant("asked", {USER, ("Ben", "user"), ASSISTANT}) == {ASSISTANT}
    assert meant("asker", {(), ASSISTANT}) == set()
    assert meant(None, {USER, ASSISTANT}) == set()


@pytest.mark.parametrize(
    ("query", "best"), [("which film did I like", "u"), ("which film did you like", "a")]
)
def test_the_one_who_is_meant_ranks_first(query, best):
    user, other = item("u", "A film.", role="user"), item("a", "A film.", role="assistant")
    for found in ([user, other], [other, user]):
        assert keys(ranked(query, [(each, 1.0) for each in found]))[0] == best


names = st.sampled_from(["Ada", "Ben", "Zoë", "李明", "Omar"])
turns = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["I like tea.", "Tea?", "A boat, tea and rain."])),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(turns, names, names, st.sampled_from(["what tea do I like?", "what did you say on tea?"]))
def test_the_names_of_speakers_change_no_answer(said, one, other, query):
    """The order does not depend on the name of the user, if the query does not name it."""

    def order(name):
        found = [
            (item(f"{place}", text, speaker=name if is_user else "Assistant", position=place), 1.0)
            for place, (is_user, text) in enumerate(said)
        ]
        return keys(ranked(query, found))

    assert order(one) == order(other)


def test_a_question_ends_in_a_question_mark_of_any_script():
    assert is_question("你喜欢茶吗\uff1f")
    assert is_question('He said "why?"')
    assert not is_question("Why.")


def test_a_day_beside_the_named_one_counts_less_the_further_it_is():
    query = read_query("what was on 4 May 2023")
    factors = [date_factor(query, date(2023, 5, day), DEFAULT) for day in range(4, 10)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == DEFAULT.date_boost
    assert factors[3] > 1
    assert factors[4] == factors[5] == 1


def said(key, text, day):
    return item(key, text, date=f"2023-05-{day:02}")


def test_an_item_of_the_day_has_the_date_of_a_question_and_one_of_another_day_has_not():
    found = [
        (said("other", "Maybe we may talk in May.", 20), 1.0),
        (said("that", "I lost my keys.", 2), 0.9),
        (said("beside", "I lost my keys.", 3), 0.8),
    ]
    ranking = ranked("What did we talk about on May 2nd?", found)
    relevance = {each.item.key: each.relevance for each in ranking}
    assert keys(ranking)[0] == "that"
    assert relevance["that"] > relevance["beside"] > 0
    (alone, *_) = ranked("on 2 May 2023", found)
    assert (alone.item.key, alone.relevance) == ("that", 1.0)


@pytest.mark.parametrize("question", ["on May 2nd", "on 2 May 2023", "on May 2", "2 may"])
@pytest.mark.parametrize("text", ["The party is on 2 May.", "The party is on May 2nd."])
def test_a_text_that_names_the_date_has_it(question, text):
    found = [(item("other", "The party may be long."), 1.0), (item("that", text), 0.5)]
    ranking = ranked(f"Where is the party {question}?", found, options=SearchOptions(date_boost=1))
    relevance = {each.item.key: each.relevance for each in ranking}
    assert relevance["that"] == 1.0
    assert relevance["other"] < 0.6


def test_a_question_without_a_date_does_not_read_the_days():
    texts = [("a", "I lost my keys.", 2), ("b", "I found the keys.", 3)]
    dated = [(said(*each), 1.0) for each in texts]
    bare = [(item(key, text), 1.0) for key, text, _ in texts]
    assert [each.score for each in ranked("Where are my keys?", dated)] == [
        each.score for each in ranked("Where are my keys?", bare)
    ]


def words(text):
    return Words.of(text.split())


def test_a_long_text_counts_by_its_best_passage():
    filler = " ".join(["rain"] * 100)
    together = words(f"{filler} green tea {filler}")
    apart = words(f"green {filler} {filler} tea")
    assert together.length == apart.length
    query = ("green", "tea")
    whole = word_scores(query, [together, apart])
    passages = word_scores(query, [together, apart], passage=30)
    assert whole[0] == whole[1]
    assert passages[0] > passages[1]


@pytest.mark.slow
@given(
    st.lists(st.lists(st.sampled_from(["tea", "boat", "rain", "sun"])), max_size=6),
    st.integers(0, 5),
)
def test_scores_of_passages_lie_between_zero_and_one(documents, passage):
    scores = word_scores(("tea", "boat"), list(map(Words.of, documents)), passage=passage)
    matches = [bool({"tea", "boat"} & set(each)) for each in documents]
    assert all(0 <= score <= 1 for score in scores)
    assert [score > 0 for score in scores] == matches
    assert not any(matches) or max(scores) == 1


def test_neighbours_weigh_less_among_long_texts():
    short, long = ["letter " * 10] * 3, ["black " * 400] * 3
    assert neighbour_share(short, DEFAULT) == 1
    assert neighbour_share(long, DEFAULT) == pytest.approx(0.1)
    assert neighbour_share(long, SearchOptions(neighbour_words=0)) == 1
    assert neighbour_share([], DEFAULT) == 1


def test_a_search_that_answers_badly_weighs_less():
    by_text, by_vector = {0: 5.0, 1: 1.0}, {0: 0.9, 1: 0.5, 2: 0.1}
    good, bad = [1.0, 0.5, 0.0], [0.2, 0.0, 0.1]
    assert search_weights(good, by_text, by_vector)[0] > search_weights(bad, by_text, by_vector)[0]
    inverse = {0: 0.1, 1: 0.5, 2: 0.9}
    assert search_weights(good, by_text, by_vector)[1] > search_weights(good, by_text, inverse)[1]
    assert search_weights(good, {}, by_vector) == (1, 1)
    assert search_weights(good, by_text, {}) == (1, 1)
    assert search_weights([], by_text, by_vector) == (1, 1)


def test_no_search_weighs_more_because_the_other_agrees():
    scores = {0: 0.9, 1: 0.5, 2: 0.1}
    assert search_weights([1.0, 0.5, 0.0], scores, scores) == (1, 1)


numbers = st.floats(-1e6, 1e6)


@pytest.mark.slow
@given(st.lists(st.tuples(numbers, numbers), max_size=20))
def test_a_correlation_lies_between_minus_one_and_one(pairs):
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    assert -1.000001 <= correlation(first, second) <= 1.000001
    assert correlation(first, second) == pytest.approx(correlation(second, first))


@pytest.mark.slow
@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_order_depends_on_the_candidates_alone(text, vector):
    made = [item(f"{n}", f"tea {n} rain", speaker="Ada", position=n) for n in range(6)]
    found = [(made[n], 6.0 - place) for place, n in enumerate(text)]
    near = [(made[n], 1 - place / 10) for place, n in enumerate(vector)]
    once = ranked("did I drink tea 3?", found, near)
    assert keys(once) == keys(ranked("did I drink tea 3?", found, near))
    assert sorted(keys(once)) == [f"{n}" for n in range(6)]
