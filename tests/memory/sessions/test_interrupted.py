"""Processes that end at any write: every buffered turn is in exactly one episode."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock
from tests.memory.conftest import PlainStore
from tests.memory.sessions.conftest import LONG, SCOPE, episodes_of, run_of, turns_of

WRITES = {"put", "put_batch", "write_batch", "delete", "delete_batch"}


class DiedError(Exception):
    """The process is gone: nothing it does reaches the store any more."""


class DyingStore(StoreWrapper):
    """A store whose process ends at the nth write, before or after it is done."""

    def __init__(self, store, writes, *, after):
        super().__init__(store)
        self.left, self.after, self.is_dead = writes, after, False

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name.startswith("_") or not inspect.iscoroutinefunction(found):
            return found

        async def verb(*args, **named):
            if self.is_dead:
                raise DiedError
            if name not in WRITES:
                return await found(*args, **named)
            self.left -= 1
            self.is_dead = self.left < 0
            if not self.is_dead or self.after:
                done = await found(*args, **named)
            if self.is_dead:
                raise DiedError
            return done

        return verb


class Keen:
    """An extractor that answers the same for the same session."""

    name = "keen"

    async def distill(self, messages, memories):
        fact = MemoryChange(
            op="add",
            type=MemoryType.USER,
            key=f"fact {messages[0].content[:8]}",
            content=f"The user said {messages[0].content[:8]} in Graz.",
            importance=0.7,
        )
        return Distillate(
            changes=(fact,),
            notes=(NoteDraft(f"{len(messages)} messages"),),
        )

    async def extract(self, messages, memories):
        raise AssertionError


def managers(inner, is_plain, deaths):
    """Managers of one process after the other; the last one lives."""
    clock = FakeClock()
    for death in [*deaths, None]:
        whole = PlainStore(inner) if is_plain else inner
        store = whole if death is None else DyingStore(whole, death[0], after=death[1])
        yield (
            LLMMemoryManager(store, extract_fn=Keen(), extract_mode="session_end", clock=clock),
            store,
            clock,
        )


def text_of(thread, number, *, is_short):
    """The text of a turn; a short one has a third of the characters of a session's least."""
    return f"{thread}{number:07} {'Yes.' if is_short else LONG}"


async def storm(is_plain, deaths, plan, *, is_short=False):
    """Talk in two sessions; each process repeats from where its user is."""
    async with InMemoryStore() as inner:
        said = {"a": 0, "b": 0}
        steps = iter(plan)
        for manager, store, clock in managers(inner, is_plain, deaths):
            is_last = not isinstance(store, DyingStore)
            while is_last or not store.is_dead:
                step = next(steps, None)
                if step is None:
                    break
                clock.advance(5)
                said[step] += 1
                texts = [text_of(step, n, is_short=is_short) for n in range(said[step])]
                await manager.on_session_end(run_of(turns_of(*texts), step))
            for thread, count in said.items():
                texts = [text_of(thread, n, is_short=is_short) for n in range(count)]
                if texts:
                    clock.advance(5)
                    await manager.on_session_end(run_of(turns_of(*texts), thread))
            left = await manager.sync_now()
            await manager._worker.close(0)
        assert left == 0
        await check(inner, said)


async def check(store, said):
    """Each turn is in one episode: that of its session, or of one that it travelled with."""
    episodes = await episodes_of(store)
    for thread, count in said.items():
        covered = [
            number
            for each in episodes
            for session, first, last in each.all_turns
            if session == thread
            for number in range(first, last + 1)
        ]
        assert sorted(covered) == list(range(1, 2 * count + 1))
        recorded = await store.scan(SCOPE.transcript(thread), 10_000)
        assert [item.metadata["position"] for item in recorded] == list(range(1, 2 * count + 1))
        assert await store.list_keys(SCOPE.queue) == []
    manager = LLMMemoryManager(store)
    memories = [each async for each in manager.memories()]
    vitals = await VitalsBook(store).of(SCOPE, memories)
    told = {(name, n) for name, count in said.items() for n in range(1, 2 * count + 1)}
    # Each fact is stated by messages that a completed call has read, and counted once for each.
    for each in vitals.values():
        stated = [(name, int(number.removeprefix("#"))) for name, number in each.messages]
        assert set(stated) <= told
        assert len(stated) == len(set(stated))


@pytest.mark.slow
@pytest.mark.parametrize("is_plain", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    deaths=st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=5),
    plan=st.lists(st.sampled_from("ab"), max_size=8),
)
def test_every_turn_is_in_exactly_one_episode(is_plain, deaths, plan):
    """With transactions and without, before or after any write."""
    asyncio.run(storm(is_plain, deaths, plan))


@pytest.mark.slow
@pytest.mark.parametrize("is_plain", [False, True])
@settings(max_examples=40, deadline=None)
@given(
    deaths=st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=5),
    plan=st.lists(st.sampled_from("aab"), max_size=8),
)
def test_short_turns_of_dying_processes_are_in_exactly_one_episode(is_plain, deaths, plan):
    """What is too short for a call of its own travels with another session."""
    asyncio.run(storm(is_plain, deaths, plan, is_short=True))


async def test_what_was_written_before_its_process_ended_does_not_hold_the_rest_up():
    """Of two sessions that travel together, one was written already: the other goes on at once."""
    deaths = [(4, False), (10, False), (12, False), (13, False)]
    await storm(True, deaths, "aaaaabbb", is_short=True)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("writes", range(16))
def test_one_process_ends_at_each_write(is_plain, writes, after, is_short):
    asyncio.run(storm(is_plain, [(writes, after)], "aabb", is_short=is_short))
