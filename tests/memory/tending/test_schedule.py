"""When a consolidation begins, and which process makes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from locus_memory._internal.running.lease import Lease
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.memory.tending.scopes import scopes_below
from locus_memory.state import AgentState
from locus_memory.store.base import BaseStore
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock
from tests.memory.conftest import log_of

HOUR = 3_600.0
ADA = Scope(("locus_memory", "users", "ada"))
RUN = AgentState(messages=(), metadata={"user_id": "ada"})


async def passes(store: BaseStore) -> int:
    """Return how many passes were made."""
    return len([each for each in await log_of(store, ADA) if each.kind == "consolidate"])


def managed(store: BaseStore, clock: FakeClock, **options: Any) -> LLMMemoryManager:
    """Return a manager of a memory."""
    return LLMMemoryManager(store, clock=clock, **options)


async def touch(manager: LLMMemoryManager) -> None:
    """Begin a run, and wait for what it started in the background."""
    await manager.on_session_start(RUN)
    await manager._schedule.wait()


async def test_a_pass_is_made_when_its_interval_is_over(clock: FakeClock) -> None:
    """The first look begins the interval; a run that comes later than it starts the pass."""
    async with InMemoryStore(clock=clock) as store:
        manager = managed(store, clock)
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        made = []
        for hours in (0, 0.5, 1, 22, 3, 1, 23, 1):
            clock.advance(hours * HOUR)
            await touch(manager)
            made.append(await passes(store))
        assert made == [0, 0, 0, 0, 1, 1, 2, 2]
        await manager.close()


async def test_in_manual_mode_nothing_runs_in_the_background(clock: FakeClock) -> None:
    """Such a manager never starts a pass, and writes no record of one."""
    async with InMemoryStore(clock=clock) as store:
        manager = managed(store, clock, extract_mode="manual")
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        for _ in range(4):
            clock.advance(48 * HOUR)
            await touch(manager)
        assert await store.list_namespaces() == [ADA.blocks, ADA.current]
        await manager.close()


class Blocking(StoreWrapper):
    """A store in which a pass waits, at its look at the log, until it may go on."""

    def __init__(self, store: BaseStore) -> None:
        super().__init__(store)
        self.reached, self.free = asyncio.Event(), asyncio.Event()

    async def scan(self, namespace: Any, *arguments: Any, **keywords: Any) -> Any:
        if namespace == ADA.log:
            self.reached.set()
            await self.free.wait()
        return await super().scan(namespace, *arguments, **keywords)


async def test_of_two_managers_one_makes_the_pass(clock: FakeClock) -> None:
    """A scope on which another pass is at work is left out, until it ends or its lease does."""
    async with InMemoryStore(clock=clock) as inner:
        store = Blocking(inner)
        one, other = managed(store, clock), managed(inner, clock)
        await one.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        clock.advance(48 * HOUR)
        task = asyncio.create_task(one.consolidate())
        await store.reached.wait()
        report = await other.consolidate()
        assert (report.busy, report.scopes) == (1, 0)
        store.free.set()
        assert (await task).scopes == 1
        assert (await other.consolidate()).busy == 0
        await one.close()
        await other.close()


async def test_a_lease_of_another_machine_ends_by_itself(clock: FakeClock) -> None:
    """A process that was killed far away blocks the scope for its lease only."""
    async with InMemoryStore(clock=clock) as store:
        manager = managed(store, clock)
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        lease = {**Lease(clock() + 900).to_value(), "host": "far away"}
        await store.put(ADA.tending, "pass", {"ran_at": None, "facts_at": None, "lease": lease})
        assert (await manager.consolidate()).busy == 1
        clock.advance(901)
        assert (await manager.consolidate()).busy == 0
        await manager.close()


async def test_a_first_pass_that_was_interrupted_is_due(clock: FakeClock) -> None:
    """Its record has no moment of a whole pass, and the next look makes it."""
    async with InMemoryStore(clock=clock) as store:
        manager = managed(store, clock)
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        await store.put(ADA.tending, "pass", {"ran_at": None, "facts_at": None, "lease": None})
        await touch(manager)
        clock.advance(HOUR)
        await touch(manager)
        assert await passes(store) == 1
        await manager.close()


async def test_closing_ends_the_pass_in_the_background(clock: FakeClock) -> None:
    """A manager closes at once, and another one finishes the pass."""
    async with InMemoryStore(clock=clock) as inner:
        store = Blocking(inner)
        manager = managed(store, clock)
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        await touch(manager)
        for hours in (1, 24):
            clock.advance(hours * HOUR)
            await manager.on_session_start(RUN)
            if hours == 1:
                await manager._schedule.wait()
        await store.reached.wait()
        await manager.close()
        assert await passes(inner) == 0
        assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert (await managed(inner, clock).consolidate()).scopes == 1


async def test_a_user_who_is_forgotten_during_a_pass_stays_forgotten(clock: FakeClock) -> None:
    """The end of the pass writes no record of them."""
    async with InMemoryStore(clock=clock) as inner:
        store = Blocking(inner)
        manager = managed(store, clock)
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        clock.advance(48 * HOUR)
        task = asyncio.create_task(manager.consolidate())
        await store.reached.wait()
        await forget(inner, user_id="ada")
        store.free.set()
        await task
        left = [space for space in await inner.list_namespaces() if "ada" in space]
        assert left == []
        await manager.close()


async def test_a_failure_in_the_background_is_an_event(clock: FakeClock, events: Any) -> None:
    """The run goes on, and the next hour tries again."""

    class Broken(StoreWrapper):
        async def list_namespaces(self, *arguments: Any, **keywords: Any) -> Any:
            raise ValueError("no")

    async with InMemoryStore(clock=clock) as inner:
        manager = managed(Broken(inner), clock)
        for _ in range(3):
            await touch(manager)
            clock.advance(HOUR)
        assert len(events.of("memory.consolidate_failed")) == 2
        await manager.close()


def test_a_manager_that_is_used_in_two_event_loops_goes_on() -> None:
    """The task of a loop that ended is not waited for."""
    clock = FakeClock()
    store = InMemoryStore(clock=clock)
    manager = managed(store, clock)

    async def use() -> None:
        await manager.for_user("ada").save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
        await touch(manager)
        clock.advance(HOUR)
        await touch(manager)

    for _ in range(2):
        asyncio.run(use())
        clock.advance(48 * HOUR)
    assert asyncio.run(passes(store)) == 1
    asyncio.run(manager.close())


async def test_the_scopes_below_a_prefix(clock: FakeClock) -> None:
    """Users with any layer, and no part of a layer, whatever the names of threads and keys."""
    layers = ("current", "vitals", "identity", "episodes", "log", "transcript")
    async with InMemoryStore(clock=clock) as store:
        for user in (*layers, "history", "users", "*"):
            scope = Scope(("app", "users", user))
            await store.put(scope.current, "user:a", {})
            for label in (*layers, "history"):
                await store.put(scope.transcript(label), "1", {})
                await store.put(scope.history(MemoryType.USER, label), "1", {})
        await store.put(Scope(("app", "users", "only turns")).transcript("t"), "1", {})
        await store.put(Scope(("app", "users", "only a log")).log, "1", {})
        await store.put(("app2", "current"), "user:a", {})
        await store.put(("app", "team", "x", "current"), "user:a", {})
        users = [*layers, "history", "users", "*", "only turns"]
        found = await scopes_below(store, ("app",), resolved=False)
        assert found == [Scope(("app", "users", user)) for user in sorted(users)]
        found = await scopes_below(store, ("app", "team"), resolved=True)
        assert found == [Scope(("app", "team", "x"))]
        resolved = await scopes_below(store, ("app", "users"), resolved=True)
        assert resolved == [
            Scope(("app", "users", user))
            for user in sorted(users)
            if user not in ("transcript", "only turns")
        ]


@pytest.mark.parametrize("now", [True, "soon", [], 1e30, "2026-13-01"])
async def test_a_moment_that_is_none_is_refused(now: Any) -> None:
    """The message names the value."""
    async with InMemoryStore() as store:
        with pytest.raises(InvalidArgumentError, match="now is a datetime"):
            await LLMMemoryManager(store).consolidate(now=now)
