"""The rules by which the ranking adapts to the query and its candidates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.asker import is_question, meant, person_of
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.ranking.query import read_query
from locus_memory.retrieval.ranking.ranking import rank
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
        ("When did I tell you about tea?", "asker"),
        ("Als ich krank war, was hast du geraten?", "asked"),
        ("我向你咨询过绘画的方法\uff0c你给了我哪些建议\uff1f", "asked"),
        ("我曾告诉过你我的旅行计划\uff0c我计划去哪个地方\uff1f", "asker"),
        ("Did I really spend 10,000 euros as you said?", "asker"),
        ("Did I pay 3.50 for the tea you like?", "asker"),
        ("What did I do at 10:30 with you?", "asker"),
        ("So do I. What did you say?", "asked"),
        ("Thank you! What is my dog's name?", "asker"),
        ("I need help. What is your name?", "asked"),
        ("Danke dir, du bist toll! Wie heißt mein Hund?", "asker"),
        ("Which film did you recommend, given my taste?", "asked"),
        ("Was habe ich am 5. Mai gesagt?", "asker"),
        ("Can you recommend a film?", None),
        ("Which film would you recommend for my evening?", "asker"),
        ("Which film do you think I would like?", "asker"),
        ("What films you'd recommend are new?", None),
        ("Kannst du mir einen Film empfehlen?", None),
        ("你能推荐一部电影吗\uff1f", None),
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
    assert meant(None, {USER, ASSISTANT}) == {USER}
    assert meant(None, {("Ada",), ("Ben",)}) == set()


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("which film did I like", "u"),
        ("which film did you like", "a"),
        ("can you recommend a film", "u"),
        ("a film for tonight", "u"),
        ("noc z filmem: film", "u"),
    ],
)
def test_the_one_who_is_meant_ranks_first(query, best):
    user, other = item("u", "A film.", role="user"), item("a", "A film.", role="assistant")
    for found in ([user, other], [other, user]):
        assert keys(ranked(query, [(each, 1.0) for each in found]))[0] == best


def test_who_is_named_is_meant():
    user = item("u", "A film.", role="user", speaker="Ada")
    other = item("a", "A film.", role="assistant", speaker="Helper")
    for query, best in (("what film did Helper like", "a"), ("did I tell Helper of a film", "a")):
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


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("on May 2nd", "The party is on 2 May."),
        ("on May 2nd", "The party is on May 2nd."),
        ("2 may", "The party is on 2 May."),
        ("am 2. Mai", "The party is on 2 May."),
        ("5月2日", "The party is on 2 May."),
    ],
)
def test_a_text_that_names_the_date_has_it(question, text):
    found = [(item("other", "The party may be long."), 1.0), (item("that", text), 0.5)]
    ranking = ranked(f"party {question}", found)
    relevance = {each.item.key: each.relevance for each in ranking}
    assert relevance["that"] == 1.0
    assert relevance["other"] < 0.7


def test_a_question_without_a_date_does_not_read_the_days():
    texts = [("a", "I lost my keys.", 2), ("b", "I found the keys.", 3)]
    dated = [(said(*each), 1.0) for each in texts]
    bare = [(item(key, text), 1.0) for key, text, _ in texts]
    assert [each.score for each in ranked("Where are my keys?", dated)] == [
        each.score for each in ranked("Where are my keys?", bare)
    ]


def test_a_long_neighbour_counts_for_nothing():
    def order(text):
        near = [(item("a", text, position=1), 4.0), (item("b", "x", position=8), 1.0)]
        return keys(ranked("tea", [*near, (item("c", "x", position=2), 1.0)]))

    assert order("tea") == ["a", "c", "b"]
    assert order("tea " + "rain " * 200) == ["a", "b", "c"]


texts = st.lists(st.sampled_from(["tea", "boat", "rain", "sun", "moon"]), min_size=1, max_size=5)


@pytest.mark.slow
@given(texts, texts, st.lists(st.sampled_from(["far", "off"]), max_size=6))
def test_words_count_by_how_much_of_the_query_is_known(asked, told, unknown):
    """What a query adds that nothing knows never lets words weigh more."""
    made = item("w", " ".join(told)), item("v", "snow")

    def share(query):
        found = ranked(" ".join(query), [(made[0], 1.0)], [(made[1], 0.9), (made[0], 0.1)])
        scores = {each.item.key: each.score for each in found}
        return scores["w"] / scores["v"]

    assert share([*asked, *unknown]) <= share(asked) + 1e-9


@pytest.mark.slow
@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_order_depends_on_the_candidates_alone(text, vector):
    made = [item(f"{n}", f"tea {n} rain", speaker="Ada", position=n) for n in range(6)]
    found = [(made[n], 6.0 - place) for place, n in enumerate(text)]
    near = [(made[n], 1 - place / 10) for place, n in enumerate(vector)]
    once = ranked("did I drink tea 3?", found, near)
    assert keys(once) == keys(ranked("did I drink tea 3?", found, near))
    assert sorted(keys(once)) == [f"{n}" for n in range(6)]
