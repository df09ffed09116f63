"""A store that never answers."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.store.wrappers import StoreWrapper

STATE = AgentState(messages=(Message.user("Hello, do I like tea?"),))


class Hanging(StoreWrapper):
    """A store of which one verb does not return as long as it hangs."""

    verb = ""

    async def _wait(self, verb):
        if self.verb == verb:
            await asyncio.Event().wait()

    async def search(self, *arguments, **options):
        await self._wait("search")
        return await self.inner.search(*arguments, **options)

    async def scan(self, *arguments, **options):
        await self._wait("scan")
        return await self.inner.scan(*arguments, **options)


@pytest.mark.parametrize("verb", ["search", "scan"])
async def test_a_store_that_hangs_does_not_hang_the_run(make, failing_store, events, verb):
    store = Hanging(failing_store)
    manager = make(store=store, recall_timeout=0.01)
    await manager.save([Memory(MemoryType.USER, "tea", "Likes tea")])
    store.verb = verb
    async with asyncio.timeout(10):
        assert await manager.on_session_start(STATE) is STATE
    (event,) = events.of("memory.retrieve_failed")
    assert isinstance(event.error, TimeoutError)
    store.verb = ""


async def test_what_waits_is_taken_up_once_the_store_answers(make, failing_store, scripted):
    store = Hanging(failing_store)
    await make(store=store, extract_fn=scripted(RuntimeError("no model"))).on_session_end(STATE)
    extractor = scripted()
    manager = make(store=store, extract_fn=extractor, recall_timeout=0.01)
    store.verb = "scan"
    await manager.on_session_start(STATE)
    store.verb = ""
    await manager.on_session_start(STATE)
    assert await manager.drain() == 0
    assert len(extractor.calls) == 1


async def test_a_run_that_is_cancelled_meanwhile_stays_cancelled(make, failing_store):
    store = Hanging(failing_store)
    manager = make(store=store)
    store.verb = "search"
    run = asyncio.create_task(manager.on_session_start(STATE))
    while not run.done():
        await asyncio.sleep(0)
        run.cancel()
    assert run.cancelled()


async def test_a_store_that_hangs_does_not_hang_the_end_of_the_run(make, failing_store, events):
    store = Hanging(failing_store)
    manager = make(store=store, extract_timeout=0.01)
    store.verb = "search"
    async with asyncio.timeout(10):
        await manager.on_session_end(STATE)
    (event,) = events.of("memory.extract_failed")
    assert isinstance(event.error, TimeoutError)
    store.verb = ""
    assert await manager.drain() == 0
