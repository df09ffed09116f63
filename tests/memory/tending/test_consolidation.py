"""A pass over a scope: every step, on every store, and killed anywhere."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.retrieval.embedders.marks import embedded_put, mark_of
from locus_memory.store.base import BaseStore
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeClock, FakeEmbedder
from tests.memory.conftest import log_of
from tests.memory.transcripts import transcript_puts

DAY = 86_400.0
START = 1_700_000_000.0
ADA = Scope(("locus_memory", "users", "ada"))


def at(days: float) -> str:
    """Return the moment so many days after the start."""
    return datetime.fromtimestamp(START + days * DAY, UTC).isoformat(timespec="microseconds")


def episode(number: int, day: float, summary: str, **fields: object) -> Episode:
    """Return an episode of one day."""
    given = {"session_id": f"s{number}", "started_at": at(day), "ended_at": at(day), **fields}
    return Episode(notes=(Note(summary),), **given)  # type: ignore[arg-type] # the fields of an episode


EARLIER = {
    "overrides": [{"id": "1" * 32, "text": "Be brief.", "created_at": at(300)}],
    "facts": [
        {
            "text": "Ada is a sailor.",
            "source": {"thread_id": "harbour", "message_ids": ["#1"]},
            "at": at(379),
        }
    ],
    "content": "Ada sails.",
    "content_at": at(379),
}
"""The record of an identity with what earlier versions derived."""

EPISODES = [
    episode(0, 1, "An old session on the harbour."),
    episode(1, 370, "Ada planned the move to Graz.", salience=0.4),
    episode(2, 371, "Ada planned the move to Graz.", salience=0.9),
    episode(3, 372, "Ada planned the move to Graz!"),
    episode(4, 373, "Ada planned the move to Graz.", agent_id="another agent"),
    episode(5, 374, "Ada compared vans for the move to Graz."),
    episode(6, 375, "Boxes for the move to Graz were bought by Ada."),
]


async def live(store: BaseStore, clock: FakeClock) -> None:
    """Leave something for every step: the moment is day 380 afterwards."""
    clock.set(START)
    manager = LLMMemoryManager(store, clock=clock).for_user("ada")
    user, project = MemoryType.USER, MemoryType.PROJECT
    await manager.save(Memory(user, "allergy", "Walnuts are deadly.", {"importance": 0.95}))
    clock.set(START + 300 * DAY)
    ends = {"expires_at": at(350)}
    await manager.save([Memory(project, f"p{n}", f"Note{n} on item{n}.", ends) for n in range(3)])
    await manager.save(Memory(project, "undone", "A note on nothing."))
    await manager.undo("undone")
    clock.set(START + 376 * DAY)
    await manager.save([Memory(user, "move", "Ada moves to Graz."), Memory(user, "new", "New.")])
    clock.set(START + 380 * DAY)
    await store.put_batch([episode_put(ADA, each) for each in EPISODES])
    await store.put_batch(
        [
            *transcript_puts(ADA, "s0", [Message.user("Ahoy."), Message.user("Hm.")], 1, at(1)),
            *transcript_puts(ADA, "s0", [Message.user("Later.")], 3, at(379)),
            log_put(ADA, LogEntry(kind="distill", at=at(340), duration_ms=1.0)),
            log_put(ADA, LogEntry(kind="distill", at=at(379), duration_ms=1.0)),
        ]
    )
    await store.put(ADA.identity, "identity", EARLIER, text="")


def managed(store: BaseStore, clock: FakeClock) -> LLMMemoryManager:
    """Return a manager."""
    return LLMMemoryManager(store, clock=clock)


async def contents(store: BaseStore) -> dict[Any, Any]:
    """Return the values of all items; of the log only their kinds and moments, in order."""
    found: dict[Any, Any] = {}
    for space in await store.list_namespaces(limit=1_000):
        items = await store.scan(space, 1_000)
        if space == ADA.log:
            found[space] = sorted((i.value["kind"], i.value["at"]) for i in items)
        else:
            found[space] = {item.key: item.value for item in items}
    return found


async def test_every_step_of_a_pass(store: BaseStore, clock: FakeClock) -> None:
    """The report counts what was done, and a dry run what would be."""
    await check_pass(store, clock)


@pytest.mark.slow
async def test_every_step_of_a_pass_on_each_backend(searching: BaseStore, clock: FakeClock) -> None:
    """The same on the backends with a server."""
    await check_pass(searching, clock)


async def check_pass(store: BaseStore, clock: FakeClock) -> None:
    """Look before a pass, make it, and look for what is left to do."""
    await live(store, clock)
    before = await contents(store)
    manager = managed(store, clock).for_user("ada")
    dry = await manager.consolidate(dry_run=True)
    assert await contents(store) == before
    report = await manager.consolidate()
    wanted = {
        "evicted": 3,
        "pruned_episodes": 1,
        "pruned_turns": 2 if store.capabilities.list_namespaces else 0,
        "purged": 1,
        "scopes": 1,
        "busy": 0,
    }
    for each in (dry, report):
        assert {**each.counts()} | wanted == {**each.counts()}
    left = [memory.key async for memory in manager.memories()]
    known = [key for key in left if not key.startswith(("ada-sailor", "brief"))]
    assert known == ["allergy", "move", "new"]
    episodes = [each async for each in EpisodeBook(store).scan(ADA)]
    assert [each.session_id for each in episodes] == ["s6", "s5", "s4", "s3", "s2", "s1"]
    assert [each.text for each in reversed(episodes)] == [each.text for each in EPISODES[1:]]
    assert {entry.kind for entry in await log_of(store, ADA)} == {"distill", "consolidate"}
    again = await manager.consolidate()
    assert {**again.counts(), "duration_ms": 0} == {
        **dict.fromkeys(report.counts(), 0),
        "scopes": 1,
    }


async def test_turns_without_a_moment_hide_no_older_ones(
    store: BaseStore, clock: FakeClock
) -> None:
    """A page of them ends no pass: what stands behind it and is too old goes as well."""
    await live(store, clock)
    messages = [Message.user(f"It is windy, {number}.") for number in range(81)]
    puts = transcript_puts(ADA, "harbour", messages, 1, at(1))
    bare = [replace(put, metadata={}) for put in puts[:-1]]
    await store.put_batch([*bare, puts[-1]])
    await managed(store, clock).for_user("ada").consolidate()
    left = await store.list_keys(ADA.transcript("harbour"))
    is_listed = store.capabilities.list_namespaces
    assert sorted(left) == sorted(put.key for put in (bare if is_listed else puts))


async def test_what_earlier_versions_derived_becomes_memories(
    store: BaseStore, clock: FakeClock
) -> None:
    """A run sees it before and after the pass; what a person fixed stays."""
    await live(store, clock)
    manager = managed(store, clock).for_user("ada")
    before = await manager.plan(None)
    assert "- Ada is a sailor." in str(before.stable)
    await manager.consolidate()
    assert await store.get(ADA.identity, "identity") is None
    [brief] = (await manager.identity.read()).overrides
    assert (brief.text, brief.created_at) == ("Be brief.", at(300))
    [sailor] = [each async for each in manager.memories() if "sailor" in each.content]
    assert sailor.metadata["thread_id"] == "harbour"
    assert sailor.metadata["message_ids"] == ["#1"]
    assert sailor.metadata["valid_from"] == at(379)
    assert "- Ada is a sailor." in str((await manager.plan(None)).stable)


async def test_an_expired_fact_comes_back_if_it_is_said_again(
    store: BaseStore, clock: FakeClock, events: Any
) -> None:
    """It is in the history, and `undo` alone leaves it expired."""
    await live(store, clock)
    manager = managed(store, clock).for_user("ada")
    assert (await manager.consolidate()).evicted == 3
    assert [each.attributes["key"] for each in events.of("memory.expired")] == ["p0", "p1", "p2"]
    assert (await manager.undo("p0")) is not None
    assert (await manager.undo("p1")) is not None
    await manager.save(Memory(MemoryType.PROJECT, "p1", "Note1 on item1."))
    assert (await manager.consolidate()).evicted == 1
    assert [each.key async for each in manager.memories("project")] == ["p1"]


@pytest.mark.slow
async def test_a_pass_drops_no_vector_and_raises_no_version(
    searching: BaseStore, clock: FakeClock
) -> None:
    """On every backend that searches: it touches neither a fact nor a note, nor their vectors."""
    embedder = FakeEmbedder()
    clock.set(START + 380 * DAY)
    manager = LLMMemoryManager(searching, clock=clock, embedder=embedder).for_user("ada")
    await manager.save(Memory(MemoryType.USER, "tea", "Ada likes tea."))
    told = episode_put(ADA, EPISODES[1])
    vector = (await embedder.embed([told.text or ""]))[0]
    await searching.put_batch([embedded_put(told, vector, embedder)])
    names = [(ADA.current, "user:tea"), (ADA.episodes, told.key)]
    before = [await searching.get_embedding(*name) for name in names]
    clock.advance(5 * DAY)
    report = await manager.consolidate()
    assert report.scopes == 1
    assert None not in before
    assert [await searching.get_embedding(*name) for name in names] == before
    fact, stored = [await searching.get_item(*name) for name in names]
    assert fact is not None
    assert stored is not None
    assert (fact.version, stored.version) == (1, 1)
    assert mark_of(stored.metadata) is not None
    assert [hit.key for hit in await searching.search(ADA.episodes, "Graz move")] == [told.key]


class Killed(BaseException):
    """The process ends."""


class MortalStore(StoreWrapper):
    """A store that ends its process after some writes."""

    def __init__(self, store: BaseStore, left: int = 10**9) -> None:
        super().__init__(store)
        self.left = left

    def strike(self) -> None:
        """Count a write."""
        self.left -= 1
        if self.left < 0:
            raise Killed

    async def put_batch(self, items: Any) -> Any:
        self.strike()
        return await super().put_batch(items)

    async def write_batch(self, operations: Any) -> Any:
        self.strike()
        return await super().write_batch(operations)

    async def delete_batch(self, keys: Any) -> Any:
        self.strike()
        return await super().delete_batch(keys)

    async def delete(self, namespace: Any, key: Any, *, if_version: Any = None) -> Any:
        self.strike()
        return await super().delete(namespace, key, if_version=if_version)


class PlainMortalStore(MortalStore):
    """One without transactions and batches: each item is a write of its own."""

    capabilities = StoreCapabilities(list_namespaces=True)

    async def put_batch(self, items: Any) -> Any:
        return [(await super(PlainMortalStore, self).put_batch([item]))[0] for item in items]

    async def delete_batch(self, keys: Any) -> Any:
        return sum([await self.delete(*name) for name in keys])


@pytest.mark.slow
@pytest.mark.parametrize("make", [MortalStore, PlainMortalStore])
async def test_a_pass_killed_after_any_write_is_finished_by_the_next(make: Any) -> None:
    """For every number of writes: killed, run again, and equal to one whole pass."""

    async def outcome(writes: int) -> tuple[Any, bool]:
        clock = FakeClock()
        async with InMemoryStore(clock=clock) as inner:
            await live(inner, clock)
            mortal = make(inner, writes)
            with suppress(Killed):
                await managed(mortal, clock).consolidate()
            died = mortal.left < 0
            mortal.left = 10**9
            if died:
                await managed(mortal, clock).consolidate()
            return await contents(inner), died

    whole, died = await outcome(10**9)
    assert not died
    for writes in itertools.count():
        found, died = await outcome(writes)
        if not died:
            break
        assert found == whole, writes
    assert writes > 10


async def test_an_outage_is_an_error_and_the_right_is_given_back(clock: FakeClock) -> None:
    """A pass that fails raises; the next one does not wait for its lease."""

    class Broken(StoreWrapper):
        works = False

        async def delete_batch(self, keys: Any) -> Any:
            if not self.works:
                raise BackendUnavailableError("gone")
            return await super().delete_batch(keys)

    async with InMemoryStore(clock=clock) as inner:
        await live(inner, clock)
        store = Broken(inner)
        with pytest.raises(BackendUnavailableError):
            await managed(store, clock).consolidate()
        assert (await inner.get(ADA.tending, "pass"))["lease"] is None
        store.works = True
        assert (await managed(store, clock).consolidate()).busy == 0
