from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import (
    BackendUnavailableError,
    InvalidArgumentError,
    ValueNotSerializableError,
)
from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.view import NamespacedStore
from locus_memory.testing import FakeEmbedder

USER, PROJECT = MemoryType.USER, MemoryType.PROJECT


def fact(key, content, kind=USER, **metadata):
    return Memory(kind, key, content, metadata)


def said(*texts, **metadata):
    """A state in which user and assistant speak in turns."""
    roles = (Message.user, Message.assistant)
    messages = tuple(roles[n % 2](text) for n, text in enumerate(texts))
    metadata = {"thread_id": "t", **metadata}
    return AgentState(messages=(Message.system("You help."), *messages), metadata=metadata)


async def contents(manager, **options):
    return [memory.content for memory in await manager.retrieve(**options)]


async def test_the_newest_come_first_never_the_oldest(make, clock):
    manager = make()
    kinds = list(MemoryType)
    for number in range(30):
        clock.advance(1)
        await manager.save([fact(f"k{number}", f"Number {number}.", kinds[number % 4])])
    assert await contents(manager, limit=5) == [f"Number {n}." for n in range(29, 24, -1)]
    assert await contents(manager, limit=0) == []


async def test_saying_it_again_changes_nothing(make, store):
    manager = make()
    await manager.save([fact("city", "Lives in Oslo.")])
    before = await store.get_item(("locus_memory", "current"), "user:city")
    assert await manager.save([fact("city", "  Lives in\tOslo. ")]) == []
    assert await store.get_item(("locus_memory", "current"), "user:city") == before
    assert len(await manager.history("city")) == 1


async def test_importance_rises_by_saying_it_again_and_never_falls(make):
    manager = make()
    for importance in (0.3, 0.8, 0.4):
        await manager.save([fact("city", "Lives in Oslo.", importance=importance)])
    (memory,) = await manager.history("city")
    assert memory.metadata["importance"] == 0.8


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user likes tea.", "the user likes  Tea. "),
        ("Stra\u00dfe \uff12", "STRASSE 2"),
        ("?!", "?!"),
    ],
)
async def test_a_duplicate_under_another_key_is_dropped(make, events, one, other):
    manager = make()
    await manager.save([fact("a", one), fact("b", other)])
    assert await contents(manager) == [one]
    (event,) = events.of("memory.duplicate_dropped")
    assert event.attributes == {"type": "user", "key": "b", "duplicate_of": "a"}


async def test_a_duplicate_of_another_type_is_kept(make):
    manager = make()
    await manager.save([fact("a", "Ships in May"), fact("b", "Ships in May", PROJECT)])
    assert len(await manager.retrieve()) == 2


async def test_a_listing_without_a_query_has_the_newest_of_each_type(make, clock):
    manager = make(max_memories=2)
    await manager.save([fact("goal", "Ship it", PROJECT)])
    for number in range(5):
        clock.advance(1)
        await manager.save([fact(f"k{number}", f"Number {number}")])
    assert await contents(manager) == ["Number 4", "Number 3", "Ship it"]
    assert [each.key for each in await manager.retrieve(2)] == ["k4", "k3"]
    assert [each.key for each in await manager.retrieve(type="user")] == ["k4", "k3"]
    assert [each.key for each in await manager.retrieve(at="2100-01-01")] == ["k4", "k3", "goal"]
    assert len(await manager.retrieve("number", 9)) == 6
    assert len([each async for each in manager.memories()]) == 6


async def test_what_is_no_memory_is_refused(make):
    manager = make()
    with pytest.raises(InvalidArgumentError):
        await manager.save(["Lives in Oslo"])
    with pytest.raises(ValueNotSerializableError):
        await manager.save([fact("a", "One", when=object())])
    assert await manager.retrieve() == []


async def test_what_others_wrote_is_read_and_carried_on(make, store):
    place = ("locus_memory", "current")
    await store.put(place, "user:city", {"content": "Lives in Oslo", "metadata": {}})
    await store.put(place, "user:job", Memory(USER, "job", "Bakes").to_store_value())
    for key in ("user:junk", "user:", ":", "user", "friend:name"):
        await store.put(place, key, ["not", "a", "memory"])
    await store.put(place, "friend:home", {"content": "Of no type", "metadata": {}})
    manager = make()
    assert sorted(await contents(manager)) == ["Bakes", "Lives in Oslo"]
    await manager.save([fact("city", "Lives in Rome")])
    assert [each.content for each in await manager.history("city")] == [
        "Lives in Rome",
        "Lives in Oslo",
    ]
    back = await manager.undo("city")
    assert back is not None
    assert back.content == "Lives in Oslo"


async def test_all_memories_are_listed_by_type_and_key(make):
    manager = make(max_memories=1000)
    await manager.save([fact(f"k{n:03}", f"Number {n}") for n in range(120)])
    await manager.save([fact("goal", "Ship it", PROJECT)])
    listed = [memory.key async for memory in manager.memories()]
    assert listed == [*(f"k{n:03}" for n in range(120)), "goal"]
    assert [memory.key async for memory in manager.memories("project")] == ["goal"]


async def test_forgetting_leaves_nothing(make, store):
    manager = make(embedder=FakeEmbedder())
    await manager.save([fact("city", "Lives in Oslo")])
    await manager.save([fact("city", "Lives in Rome")])
    assert await manager.forget("city") == 2
    assert await manager.retrieve() == []
    assert await manager.history("city") == []
    assert await manager.undo("city") is None
    assert await manager.forget("city") == 0
    inner = getattr(store, "inner", store)
    assert await inner.list_namespaces(("locus_memory",)) == []


async def test_a_session_is_told_what_is_remembered(make):
    manager = make()
    await manager.save([fact("city", "Lives in Oslo.")])
    state = await manager.on_session_start(said("Where do I live?"))
    assert [message.role for message in state.messages] == ["system", "system", "user"]
    assert "Lives in Oslo." in state.messages[1].content


async def test_the_block_of_a_thread_stays_until_it_would_show_what_is_forgotten(make):
    manager = make()
    await manager.save([fact("city", "Lives in Oslo.")])
    once = await manager.on_session_start(said("Hi"))
    assert await manager.on_session_start(once) is once
    await manager.save([fact("city", "Lives in Rome.")])
    twice = await manager.on_session_start(once)
    assert twice.messages[:-1] == once.messages[:-1]
    assert twice.messages[-1].content.endswith("- Lives in Rome.\n</memory>\n\nHi")
    await manager.forget("city")
    assert (await manager.on_session_start(twice)).messages == said("Hi").messages


async def test_a_session_is_extracted_with_its_origin(make, scripted, clock):
    change = MemoryChange(
        op="add", type=USER, key="city", content="Lives in Oslo", importance=0.9, sources=(0,)
    )
    extractor = scripted([change])
    manager = make(extract_fn=extractor)
    await manager.on_session_end(said("I live in Oslo", "Noted"))
    (memory,) = await manager.retrieve()
    assert memory.metadata["message_ids"] == ["#1"]
    assert memory.metadata["thread_id"] == "t"
    assert memory.metadata["extractor"] == "scripted"
    assert memory.metadata["importance"] == 0.9
    assert memory.metadata["extracted_at"].startswith("2023-11-14T22:13:20")
    assert manager.pending == 0


async def test_messages_with_ids_are_named_by_them(make, scripted):
    extractor = scripted([fact("city", "Lives in Oslo")])
    manager = make(extract_fn=extractor)
    message = Message.user("I live in Oslo").model_copy(update={"id": "m-7"})
    await manager.on_session_end(AgentState(messages=(message, Message.assistant("Noted"))))
    (memory,) = await manager.retrieve()
    assert memory.metadata["message_ids"] == ["m-7"]


async def test_an_extractor_retires_and_corrects(make, scripted):
    delete = MemoryChange(op="delete", type=USER, key="pet")
    update = MemoryChange(op="update", type=USER, key="city", content="Lives in Rome")
    manager = make(extract_fn=scripted([delete, update]))
    await manager.save([fact("pet", "Has a cat"), fact("city", "Lives in Oslo")])
    await manager.on_session_end(said("I moved to Rome, and the cat died", "I am sorry"))
    assert await contents(manager) == ["Lives in Rome"]
    assert [memory.content for memory in await manager.history("pet")] == ["Has a cat"]


async def test_an_extractor_is_shown_what_it_may_change_and_no_block(make, scripted):
    extractor = scripted()
    manager = make(extract_fn=extractor)
    await manager.save([fact("city", "Lives in Oslo")])
    await manager.on_session_end(await manager.on_session_start(said("I moved to Rome", "Ah")))
    ((messages, memories),) = extractor.calls
    assert [message.content for message in messages] == ["I moved to Rome", "Ah"]
    assert [memory.content for memory in memories] == ["Lives in Oslo"]


async def test_extracting_directly_writes_nothing(make, scripted):
    manager = make(extract_fn=scripted([fact("city", "Lives in Oslo")]))
    (memory,) = await manager.extract(said("I live in Oslo", "Noted").messages)
    assert memory.metadata["message_ids"] == ["#1"]
    assert "thread_id" not in memory.metadata
    assert await manager.retrieve() == []
    assert await manager.extract([Message.system("You help.")]) == []


async def test_a_secret_an_extractor_returns_is_dropped(make, scripted, events):
    secret = "The password is hunter2"
    manager = make(extract_fn=scripted([fact("a", secret), fact("b", "Likes tea")]))
    await manager.on_session_end(said("My password is hunter2 and I like tea", "Ok"))
    assert await contents(manager) == ["Likes tea"]
    said_it, event = events.of("memory.secret_dropped")
    assert (said_it.attributes["type"], event.attributes["type"]) == ("transcript", "user")
    assert "hunter2" not in repr(event)
    await manager.save([fact("a", secret)])
    assert secret in await contents(manager)


async def test_a_change_that_cannot_be_written_is_dropped_alone(make, scripted, events):
    bad = [fact("\ud800", "Half a character"), fact("a", "One", when={1, 2}), "no memory"]
    manager = make(extract_fn=scripted([*bad, fact("b", "Likes tea")]))
    await manager.on_session_end(said("I like tea", "Ok"))
    assert await contents(manager) == ["Likes tea"]
    assert events.names.count("memory.change_refused") == 3


@pytest.mark.parametrize("verb", ["search", "scan", "get_item", "write_batch"])
async def test_a_failing_store_is_reported_and_never_fails_a_run(
    failing_store, make, scripted, events, verb
):
    manager = make(store=failing_store, extract_fn=scripted([fact("a", "Likes tea")]))
    failing_store.failing.add(verb)
    state = said("I like tea", "Ok")
    assert await manager.on_session_start(state) is state
    await manager.on_session_end(state)
    assert any(isinstance(event.error, BackendUnavailableError) for event in events)
    failing_store.failing.clear()
    await manager.on_session_end(said("I like tea", "Ok", "Really", "Yes"))
    assert await manager.drain() == 0
    assert await contents(manager) == ["Likes tea"]


async def test_a_failing_store_takes_an_old_block_away(failing_store, make, events):
    manager = make(store=failing_store)
    await manager.save([fact("city", "Lives in Oslo.")])
    state = await manager.on_session_start(said("Hi"))
    failing_store.failing.add("search")
    assert (await manager.on_session_start(state)).messages == said("Hi").messages
    assert "memory.retrieve_failed" in events.names


async def test_direct_calls_raise_what_the_store_raises(failing_store, make):
    manager = make(store=failing_store)
    failing_store.failing |= {"search", "scan", "get_item"}
    with pytest.raises(BackendUnavailableError):
        await manager.retrieve()
    with pytest.raises(BackendUnavailableError):
        await manager.save([fact("a", "One")])
    with pytest.raises(BackendUnavailableError):
        await manager.history("a")


async def test_a_counter_that_fails_is_reported(make, events):
    def counter(text):
        raise RuntimeError("no tokenizer")

    manager = make(token_counter=counter)
    await manager.save([fact("city", "Lives in Oslo.")])
    state = said("Hi")
    assert await manager.on_session_start(state) is state
    assert "memory.retrieve_failed" in events.names


async def test_two_managers_on_one_store_lose_nothing(make):
    one, other = make(), make()
    await asyncio.gather(
        *(one.save([fact("k", f"From one, {n}")]) for n in range(5)),
        *(other.save([fact("k", f"From other, {n}")]) for n in range(5)),
    )
    found = {memory.content for memory in await one.history("k")}
    assert found == {f"From {who}, {n}" for who in ("one", "other") for n in range(5)}
    assert sorted(m.metadata["sequence"] for m in await one.history("k")) == list(range(1, 11))


async def test_a_provider_string_is_opened_and_closed_here(tmp_path):
    where = f"sqlite:{tmp_path / 'agent.db'}"
    async with LLMMemoryManager(where) as manager:
        await manager.save([fact("city", "Lives in Oslo")])
    async with LLMMemoryManager(where) as manager:
        assert await contents(manager) == ["Lives in Oslo"]
        await manager.for_user("ana").close()
        assert await contents(manager) == ["Lives in Oslo"]


async def test_a_store_that_was_given_stays_open():
    store = InMemoryStore()
    async with LLMMemoryManager(store) as manager:
        await manager.save([fact("city", "Lives in Oslo")])
        await manager.close()
    assert await NamespacedStore(store, ("locus_memory", "current")).exists("user:city")
    await store.close()


async def test_an_unknown_type_is_refused(make):
    with pytest.raises(InvalidArgumentError, match="user, feedback"):
        await make().history("k", "mood")


async def test_the_query_comes_first_and_the_limit_in_either_place():
    manager = LLMMemoryManager(InMemoryStore())
    for key, content in (("tea", "Likes green tea"), ("city", "Lives in Graz")):
        await manager.save(Memory(MemoryType.USER, key, content))
    for arguments, named in (
        (("green tea", 1), {}),
        ((1, "green tea"), {}),
        (("green tea",), {"limit": 1}),
        ((), {"query": "green tea", "limit": 1}),
    ):
        assert [m.key for m in await manager.retrieve(*arguments, **named)] == ["tea"]
    assert [m.key for m in await manager.retrieve("green tea")] == ["tea", "city"]
    for newest in (manager.retrieve(1), manager.retrieve(limit=1), manager.retrieve(None, 1)):
        assert [m.key for m in await newest] == ["city"]
    for arguments in (("a", "b"), (1, 2), (True,), (b"a",), (-1,), ("a", -1)):
        with pytest.raises(InvalidArgumentError):
            await manager.retrieve(*arguments)


class Own(BaseMemoryManager):
    """A manager as it was written before `retrieve` took a query."""

    def __init__(self, error=None):
        self.saved = []
        self.error = error

    async def extract(self, messages):
        if self.error == "extract":
            raise RuntimeError("no model")
        return [fact("last", messages[-1].content)]

    async def retrieve(self, limit=20):
        return self.saved[:limit]

    async def save(self, memories):
        if self.error == "save":
            raise RuntimeError("no disk")
        self.saved += memories


async def test_a_manager_of_ones_own_needs_three_methods():
    async with Own() as manager:
        await manager.on_session_end(said("Hi", "Hello there"))
        state = await manager.on_session_start(said("Hi"))
        assert "Hello there" in state.messages[1].content
        assert (await manager.drain(), manager.pending) == (0, 0)


@pytest.mark.parametrize(("step", "told"), [("extract", {}), ("save", {"memories": 1})])
async def test_a_manager_of_ones_own_may_fail(step, told, events):
    manager = Own(error=step)
    await manager.on_session_end(said("Hi", "Hello there"))
    assert events.names == [f"memory.{step}_failed"]
    assert isinstance(events[0].error, RuntimeError)
    assert events[0].attributes == {"hook": step, **told}


async def test_a_conversation_in_which_nobody_spoke_is_not_extracted():
    manager = Own(error="extract")
    await manager.on_session_end(AgentState(messages=(Message.system("You help."),)))
    assert manager.saved == []


async def test_the_noop_manager_does_nothing():
    manager = NoopMemoryManager()
    state = said("Hi")
    assert await manager.on_session_start(state) is state
    await manager.on_session_end(state)
    assert await manager.save([fact("a", "One")]) == []
    assert await manager.retrieve() == []
    assert await manager.extract(state.messages) == []
