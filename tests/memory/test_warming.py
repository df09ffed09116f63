"""Recalls that are prepared after a turn for the next one."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory import Agent, ScriptedModel
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.wrappers import StoreWrapper

pytestmark = pytest.mark.parametrize("store", ["inmemory", "sqlite"], indirect=True)

FACTS = [
    Memory("user", "tea", "Ada drinks green tea in the garden."),
    Memory("user", "dog", "The dog is called Bosun."),
    *(Memory("project", f"p{n}", f"Ticket {n} is about the garden fence.") for n in range(30)),
]


async def told(manager, query, session="t"):
    block = await manager.prefetch(query, session_id=session)
    return [line for line in block.splitlines() if line.startswith("- ")]


def first(lines, word):
    return bool(lines) and word in lines[0]


async def test_what_is_warm_comes_first(make):
    manager = make(retrieve_limit=3)
    await manager.save(FACTS)
    assert not first(await told(manager, "the garden fence"), "green tea")
    await manager.queue_prefetch("green tea garden", session_id="t")
    lines = await told(manager, "the garden fence")
    assert first(lines, "green tea")
    assert len(lines) == 3


async def test_what_is_warm_needs_a_content_word_in_common(make):
    manager = make(retrieve_limit=3)
    await manager.save(FACTS)
    await manager.queue_prefetch("what is in the tea?", session_id="t")
    assert not any("green tea" in line for line in await told(manager, "what is in the fence?"))
    # It was thrown away.
    assert not any("green tea" in line for line in await told(manager, "the garden fence"))


async def test_what_is_warm_is_of_one_session_and_one_scope(make):
    manager = make(retrieve_limit=3)
    ada, bob = manager.for_user("ada"), manager.for_user("bob")
    for each in (manager, ada, bob):
        await each.save(FACTS[1:])
    await ada.save(FACTS[:1])
    await ada.queue_prefetch("green tea garden", session_id="t")
    query = "the garden fence"
    assert not any("green tea" in line for line in await told(bob, query))
    assert not any("green tea" in line for line in await told(manager, query))
    assert not first(await told(ada, query, "other"), "green tea")
    assert first(await told(ada, query), "green tea")


async def test_what_is_warm_is_valid_for_a_minute(make, clock):
    manager = make(retrieve_limit=3)
    await manager.save(FACTS)
    await manager.queue_prefetch("green tea garden", session_id="t")
    clock.advance(60)
    assert first(await told(manager, "the garden fence"), "green tea")
    clock.advance(1)
    assert not first(await told(manager, "the garden fence"), "green tea")


async def test_what_is_warm_is_read_again(make):
    manager = make(retrieve_limit=3)
    await manager.save(FACTS)
    await manager.queue_prefetch("green tea garden", session_id="t")
    await manager.save([Memory("user", "tea", "Ada drinks coffee in the garden.")])
    assert first(await told(manager, "the garden fence"), "coffee")
    await manager.forget("tea")
    assert not any("drinks" in line for line in await told(manager, "the garden fence"))


async def test_a_run_is_warmed_by_the_one_before(make):
    manager = make(retrieve_limit=3)
    await manager.save(FACTS)
    state = AgentState(messages=(Message.user("the garden fence"),), metadata={"thread_id": "t"})
    await manager.queue_prefetch("green tea garden", session_id="t")
    seen = await manager.on_session_start(state)
    lines = [line for line in seen.messages[0].content.splitlines() if line.startswith("- ")]
    assert first(lines, "green tea")


async def test_an_agent_warms_the_scope_of_its_run(make):
    manager = make(retrieve_limit=3, namespace_resolver=lambda state: ("of", state.metadata["who"]))
    ada, bob = manager.scoped(("of", "ada")), manager.scoped(("of", "bob"))
    await ada.save(FACTS)
    await bob.save(FACTS)
    agent = Agent(ScriptedModel(), memory_manager=manager, checkpointer="memory")
    await agent.run("green tea garden", "t", metadata={"who": "ada"})
    # It runs beside what comes next.
    async with asyncio.timeout(5):
        while not first(await told(ada, "the garden fence"), "green tea"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert not any("green tea" in line for line in await told(bob, "the garden fence"))
    assert not any("green tea" in line for line in await told(manager, "the garden fence"))
    await agent.close()


class FailingStore(StoreWrapper):
    """A store whose verbs fail as long as they are named in `failing`."""

    def __init__(self, store):
        super().__init__(store)
        self.failing = set()

    async def get_item(self, namespace, key):
        if "get_item" in self.failing:
            raise BackendUnavailableError("get_item is out of order")
        return await self.inner.get_item(namespace, key)


class Slow(StoreWrapper):
    """A store whose search waits."""

    waiting = False

    async def search(self, *arguments, **options):
        if self.waiting:
            await asyncio.Event().wait()
        return await self.inner.search(*arguments, **options)


async def test_a_store_that_fails_leaves_what_was_found(make, store, events):
    failing = FailingStore(store)
    manager = make(store=failing, retrieve_limit=3)
    await manager.save(FACTS)
    await manager.queue_prefetch("green tea garden", session_id="t")
    failing.failing.add("get_item")
    assert len(await told(manager, "the garden fence")) == 3
    [event] = events.of("memory.search_failed")
    assert event.attributes == {"search": "warmed"}


async def test_closing_ends_a_search_in_progress(store):
    store = Slow(store)
    manager = LLMMemoryManager(store)
    await manager.save(FACTS)
    store.waiting = True
    warming = asyncio.create_task(manager.queue_prefetch("tea", session_id="t"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await manager.close()
    async with asyncio.timeout(5):
        await warming
