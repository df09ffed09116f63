from __future__ import annotations

import pytest

from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeEmbedder

KINDS = list(MemoryType)


def fact(key, content, kind=MemoryType.USER):
    return Memory(kind, key, content)


async def fill(manager, clock, count=40):
    await manager.save([fact("drink", "Likes green tea in the morning")])
    for number in range(count):
        clock.advance(60)
        await manager.save([fact(f"k{number}", f"Fact number {number}", KINDS[number % 4])])


async def keys(manager, **options):
    return [memory.key for memory in await manager.retrieve(**options)]


async def test_what_is_missing_is_filled_up_with_the_newest(make, store, clock):
    manager = make()
    await fill(manager, clock)
    found = await keys(manager, limit=4, query="tea")
    newest = ["k39", "k38", "k37", "k36"]
    assert found == (["drink", *newest[:3]] if store.capabilities.search else newest)


async def test_meaning_is_searched_where_there_is_an_embedder(make, store, clock):
    embedder = FakeEmbedder()
    manager = make(embedder=embedder)
    await fill(manager, clock)
    found = await keys(manager, limit=3, query="green tea")
    able = store.capabilities.semantic_search or store.capabilities.search
    assert (found[0] == "drink") is able
    assert bool(embedder.calls) is store.capabilities.semantic_search


@pytest.mark.parametrize("broken", ["raises", "short"])
async def test_a_failing_embedder_is_reported_and_text_must_do(make, store, clock, events, broken):
    class Broken(FakeEmbedder):
        async def embed(self, texts, *, kind="document"):
            if broken == "raises":
                raise RuntimeError("no model")
            return [[1.0] for _ in texts]

    manager = make(embedder=Broken())
    await fill(manager, clock, 5)
    found = await keys(manager, query="tea")
    assert set(found) == {"drink", *(f"k{n}" for n in range(5))}
    if store.capabilities.semantic_search:
        assert "memory.embed_failed" in events.names
    if store.capabilities.search:
        assert found[0] == "drink"


async def test_a_search_that_fails_is_reported_and_the_newest_must_do(make, store, clock, events):
    class NoQuery(type(store)):
        async def search(self, namespace, query=None, limit=10, **options):
            if query is not None:
                raise BackendUnavailableError("no index")
            return await super().search(namespace, None, limit, **options)

    manager = make()
    await fill(manager, clock, 5)
    store.__class__ = NoQuery
    assert (await keys(manager, query="tea"))[0] == "k4"
    assert ("memory.search_failed" in events.names) is store.capabilities.search


async def test_names_of_types_and_metadata_are_not_searched(make):
    manager = make()
    await manager.save([Memory(MemoryType.PROJECT, "goal", "Ships in May", {"why": "feedback"})])
    await manager.save([fact("drink", "Likes tea")])
    assert await keys(manager, query="feedback project", limit=1) == ["drink"]
    assert await keys(manager, query="goal", limit=1) in (["goal"], ["drink"])


async def test_a_key_is_searched_too(make, store):
    manager = make()
    await manager.save([fact("favourite_drink", "Green tea"), fact("b", "Other")])
    found = await keys(manager, query="What is my favourite?", limit=1)
    assert found == (["favourite_drink"] if store.capabilities.search else ["b"])


async def test_a_pasted_document_is_no_burden(make, store, clock):
    manager = make(embedder=FakeEmbedder())
    await fill(manager, clock, 5)
    document = " ".join(f"word{number}" for number in range(50_000))
    found = await keys(manager, query=f"{document}\nWhat tea do I like? \ud800", limit=1)
    assert len(found) == 1
    if store.capabilities.search:
        assert found == ["drink"]


@pytest.mark.parametrize("query", ["", "   ", "?!", "c++", '"', "the of and", "*"])
async def test_no_query_is_an_error(make, clock, query):
    manager = make(embedder=FakeEmbedder())
    await fill(manager, clock, 5)
    assert len(await manager.retrieve(query=query)) == 6


async def test_the_latest_text_of_the_user_is_the_query(make, store, clock):
    manager = make(memory_budget_tokens=1_000)
    await fill(manager, clock, 200)
    messages = (Message.user("Hello"), Message.assistant("Hi"), Message.user("Which tea?"))
    state = await manager.on_session_start(AgentState(messages=messages))
    assert "green tea" not in state.messages[0].content
    assert ("green tea" in state.messages[-1].content) is store.capabilities.search


@pytest.fixture
def asked(store, monkeypatch):
    """The queries that the store was asked for."""
    queries = []

    class Spied(type(store)):
        async def search(self, namespace, query=None, *args, **options):
            queries.append(query)
            return await super().search(namespace, query, *args, **options)

    monkeypatch.setattr(store, "__class__", Spied)
    return queries


async def test_of_a_long_query_passages_of_both_ends_are_searched(make, store, asked):
    query = f"Alpha {'middle ' * 2000}{' '.join(f'w{n}' for n in range(400))} omega"
    await make().retrieve(query=query)
    told = [each.casefold().split() for each in asked if each]
    able = store.capabilities.search
    assert (bool(told) and "alpha" in told[0] and "omega" in told[-1]) is able
    assert len(told) <= 16
    assert all(len(each or "") <= 600 for each in asked)


SAID = {
    "en": ("My sister keeps bees in Graz.", "Where does my sister keep bees? ", "It rains a lot. "),
    "ur": (
        "میری بہن گراز میں مکھیاں پالتی ہے\u06d4",
        "میری بہن مکھیاں کہاں پالتی ہے\u06d4",
        "کل بارش ہوئی تھی\u06d4",
    ),
    "hi": ("मेरी बहन ग्राज़ में मधुमक्खियाँ पालती है।", "मेरी बहन मधुमक्खियाँ पालती है।", "कल बारिश हुई।"),
    "my": ("ကလာရာက ဂရတ်ဇ်မှာ ပျား မွေးတယ်။", "ကလာရာက ပျား မွေးတယ်။", "မနေ့က မိုးရွာတယ်။"),
    "am": ("ክላራ በግራዝ ንቦችን ታረባለች።", "ክላራ ንቦችን ታረባለች።", "ትናንት ዝናብ ዘነበ።"),
    "hy": (
        "Կլարան Գրացում մեղուներ է պահում\u0589",
        "Կլարան մեղուներ է պահում\u0589",
        "Երեկ անձրև եկավ\u0589",
    ),
    "ja": ("妹はグラーツで蜂を飼っている。", "妹は蜂を飼っている。", "昨日は雨が降った。"),
}


@pytest.mark.parametrize("language", SAID)
async def test_a_sentence_of_a_long_message_counts_as_much_as_alone(searching, clock, language):
    """Sentences end in each script with a mark of its own, not always before a space."""
    known, asked, other = SAID[language]
    manager = LLMMemoryManager(searching, clock=clock)
    await manager.save([fact("bees", known)])
    [alone] = await manager.search(asked)
    [found] = await manager.search(f"{other * 50}{asked}{other * 50}")
    assert found.score >= 0.8 * alone.score


async def test_of_a_message_all_words_are_searched(make, store, asked):
    query = "Hi! Do you know which of my two elder sisters plays the violoncello in Copenhagen?"
    await make().retrieve(query=query)
    assert asked[0] == (query if store.capabilities.search else None)


@pytest.mark.parametrize("has_embedder", [False, True])
async def test_what_a_manager_does_not_have_is_told_once_at_most(
    make, store, clock, events, has_embedder
):
    manager = make(embedder=FakeEmbedder() if has_embedder else None)
    await fill(manager, clock, 3)
    for _ in range(3):
        await manager.retrieve(query="tea")
    able = store.capabilities
    is_degraded = has_embedder and able.search != able.semantic_search
    assert len(events.of("retrieval.degraded")) == is_degraded


async def test_of_equally_good_matches_the_newest_comes_first_anywhere(searching, clock):
    manager = LLMMemoryManager(searching, clock=clock)
    for number, kind in enumerate(KINDS):
        clock.advance(60)
        await manager.save([fact(f"k{number}", f"Likes tea {'abcd'[number]}", kind)])
    assert (await keys(manager, query="tea", limit=4)) == ["k3", "k2", "k1", "k0"]


async def test_words_and_meaning_are_searched_at_once(searching, clock):
    embedder = FakeEmbedder()
    manager = LLMMemoryManager(searching, clock=clock, embedder=embedder)
    await fill(manager, clock, 30)
    asked = len(embedder.calls)
    assert (await keys(manager, query="Is tea good in the morning?", limit=2))[0] == "drink"
    assert embedder.calls[asked:] == [1]


async def test_a_run_is_shown_what_others_wrote_and_nothing_that_a_caller_changed(make, clock):
    manager, other = make(), make()
    await fill(manager, clock)
    state = AgentState(messages=(Message.user("Which tea should I buy?"),))
    for content in ("Likes black tea", "Likes white tea"):
        # A caller may change what it got; that changes nothing that is shown later.
        for each in await manager.retrieve("Which tea should I buy?"):
            each.metadata.clear()
        before = await manager.on_session_start(state)
        assert content not in str(before.messages)
        clock.advance(60)
        await other.save([fact("drink", content)])
        assert content in str((await manager.on_session_start(state)).messages)
