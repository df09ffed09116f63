"""Statements that are extracted only after newer ones."""

from __future__ import annotations

import pytest

from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

USER = MemoryType.USER
MONDAY, TUESDAY = "2023-11-14T22:13:20.000000+00:00", "2023-11-15T22:13:20.000000+00:00"
DAY = 86_400


def said(text, thread="t"):
    return AgentState(messages=(Message.user(text),), metadata={"thread_id": thread})


class Told:
    """An extractor that writes what it is told under a key, and fails as often as asked."""

    name = "told"

    def __init__(self, failures=0):
        self.failures = failures

    async def extract(self, messages, memories):
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        return [self.change(place, message) for place, message in enumerate(messages)]

    def change(self, place, message):
        key, _, content = message.content.partition(" ")
        op = "update" if content else "delete"
        return MemoryChange(op=op, type=USER, key=key, content=content, sources=(place,))


@pytest.fixture
def late(make, clock):
    """Lets the first thread fail on Monday, the second work on Tuesday, then the first."""

    async def run(monday, tuesday, **options):
        manager = make(extract_fn=Told(failures=1), **options)
        await manager.on_session_end(said(monday, "monday"))
        clock.advance(DAY)
        await manager.on_session_end(said(tuesday, "tuesday"))
        clock.advance(DAY)
        assert await manager.drain() == 0
        return manager

    return run


async def contents(manager, key="home"):
    return [memory.content for memory in await manager.history(key)]


async def current(manager):
    return [memory.content for memory in await manager.retrieve()]


async def test_what_was_said_earlier_does_not_replace_what_was_said_later(late, events):
    manager = await late("home Paris", "home Berlin")
    assert await current(manager) == ["Berlin"]
    berlin, paris = await manager.history("home")
    assert (berlin.content, paris.content) == ("Berlin", "Paris")
    assert berlin.metadata["valid_from"] == paris.metadata["superseded_at"] == TUESDAY
    assert paris.metadata["valid_from"] == MONDAY
    assert paris.metadata["thread_id"] == "monday"
    assert paris.metadata["superseded_by"] == {
        "change": "update",
        "type": "user",
        "key": "home",
        "sequence": berlin.metadata["sequence"],
    }
    (event,) = events.of("memory.outdated")
    assert event.attributes == {"type": "user", "key": "home"}


async def test_the_history_goes_on_behind_what_came_late(late):
    manager = await late("home Paris", "home Berlin")
    await manager.save([Memory(USER, "home", "Rome")])
    assert await contents(manager) == ["Rome", "Paris", "Berlin"]
    assert len({each.metadata["sequence"] for each in await manager.history("home")}) == 3
    assert (await manager.undo("home")).content == "Berlin"
    assert await manager.undo("home") is None
    assert await current(manager) == []


async def test_a_late_delete_is_dropped(late, events):
    manager = await late("home", "home Berlin")
    assert await current(manager) == ["Berlin"]
    assert await contents(manager) == ["Berlin"]
    assert len(events.of("memory.outdated")) == 1


async def test_what_was_deleted_since_stays_deleted(make, clock):
    manager = make(extract_fn=Told())
    await manager.save([Memory(USER, "home", "Oslo")])
    manager._extraction._extractor.failures = 1
    await manager.on_session_end(said("home Paris", "monday"))
    clock.advance(DAY)
    await manager.on_session_end(said("home", "tuesday"))
    assert await manager.drain() == 0
    assert await current(manager) == []
    assert await contents(manager) == ["Oslo"]
    assert (await manager.undo("home")).content == "Oslo"


async def test_what_was_said_first_is_new_where_nothing_is_known(late):
    manager = await late("home Paris", "pet Bosun")
    assert sorted(await current(manager)) == ["Bosun", "Paris"]
    (paris,) = await manager.history("home")
    assert paris.metadata["valid_from"] == MONDAY


async def test_a_late_job_that_is_done_twice_writes_once(late, make, store):
    manager = await late("home Paris", "home Berlin")
    before = await manager.history("home")
    job = {
        "namespace": ["locus_memory"],
        "thread": "monday",
        "messages": [
            {
                "number": 1,
                "role": "user",
                "content": "home Paris",
                "name": None,
                "id": None,
                "tool_call_id": None,
                "tools": [],
            }
        ],
        "cursor": {"place": 1, "count": 1, "tail": [], "sequence": 1},
        "attempts": 0,
        "lease": None,
        "queued_at": MONDAY,
    }
    await store.put(("locus_memory", "queue"), f"again{1:016}", job)
    assert await manager.drain() == 0
    assert await manager.history("home") == before


async def test_each_message_has_its_own_moment(make, clock):
    manager = make(extract_fn=Told(failures=1))
    await manager.on_session_end(said("home Paris"))
    clock.advance(DAY)
    await manager.save([Memory(USER, "home", "Berlin")])
    clock.advance(DAY)
    messages = (Message.user("home Paris"), Message.user("pet Bosun"))
    await manager.on_session_end(AgentState(messages=messages, metadata={"thread_id": "t"}))
    assert sorted(await current(manager)) == ["Berlin", "Bosun"]


async def test_without_a_history_what_comes_late_is_dropped(late):
    manager = await late("home Paris", "home Berlin", history_limit=0)
    assert await contents(manager) == ["Berlin"]


async def test_the_history_stays_bounded_by_what_comes_late(late):
    manager = await late("home Paris", "home Berlin", history_limit=1)
    assert await contents(manager) == ["Berlin", "Paris"]


async def test_what_is_saved_by_hand_is_never_late(make, clock):
    manager = make()
    await manager.save([Memory(USER, "home", "Paris")])
    clock.advance(-DAY)
    await manager.save([Memory(USER, "home", "Berlin")])
    assert await current(manager) == ["Berlin"]


async def test_a_fact_from_the_future_does_not_outrank_what_is_said_now(make, clock):
    """A clock that was years ahead does not fix what was said then."""
    manager = make(extract_fn=Told())
    clock.advance(3_650 * DAY)
    await manager.on_session_end(said("home Vienna.", "ahead"))
    await manager.on_session_end(said("drink Tea.", "ahead too"))
    await manager.delete("user:drink")
    clock.advance(-3_650 * DAY)
    await manager.on_session_end(said("home Graz.", "now"))
    await manager.on_session_end(said("drink Milk.", "now too"))
    assert {each.key: each.content async for each in manager.memories()} == {
        "home": "Graz.",
        "drink": "Milk.",
    }
    past = [each.content for each in await manager.history("home")]
    assert past == ["Graz.", "Vienna."]
