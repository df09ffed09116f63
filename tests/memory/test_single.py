"""Memories by id, at a moment, and with an end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import EXPIRES_AT, Memory, MemoryType
from locus_memory.testing import FakeClock

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOME = Memory(MemoryType.USER, "home", "Ada lives in Berlin.")
TEA = Memory(MemoryType.USER, "likes:tea", "Ada likes tea.")


def managed(clock: FakeClock) -> LLMMemoryManager:
    """Return a manager over an empty store."""
    return LLMMemoryManager(InMemoryStore(clock=clock), clock=clock)


def clock_at_start() -> FakeClock:
    """Return a clock that stands at the start."""
    return FakeClock(START.timestamp())


async def test_a_memory_is_found_changed_and_retired_by_its_id() -> None:
    """The id stays the same for all versions, and every step can be undone."""
    manager = managed(clock_at_start())
    (home,) = await manager.save(HOME)
    assert len(home.id) == 8
    changed = await manager.update(home.id, "Ada lives in Graz.")
    assert changed is not None
    assert (changed.id, changed.content) == (home.id, "Ada lives in Graz.")
    assert await manager.get("user:home") == await manager.get(home.id) == changed
    assert await manager.delete(home.id)
    assert await manager.get(home.id) is None
    assert not await manager.delete(home.id)
    assert await manager.update(home.id, "x") is None
    await manager.undo("home")
    await manager.undo("home")
    restored = await manager.get(home.id)
    assert restored is not None
    assert restored.content == HOME.content


@pytest.mark.slow
@given(text=st.text(max_size=40))
async def test_an_unknown_id_is_no_memory(text: str) -> None:
    """No text is an id by accident, and none raises anything."""
    manager = managed(clock_at_start())
    await manager.save([HOME, TEA])
    if text not in (HOME.id, TEA.id, "user:home", "user:likes:tea"):
        assert await manager.get(text) is None
        assert not await manager.delete(text)


@pytest.mark.parametrize("wrong", [None, 5, ["user:home"]])
async def test_an_id_is_a_text(wrong: object) -> None:
    """A wrong argument is an error of this library."""
    manager = managed(clock_at_start())
    for verb in (manager.get, manager.delete, manager.update, manager.identity.remove):
        with pytest.raises(InvalidArgumentError):
            await verb(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["soon", "2026-13-01", 5])
async def test_an_end_that_is_no_moment_is_refused(end: object) -> None:
    """Else the memory would never expire, and nobody would know."""
    manager = managed(clock_at_start())
    with pytest.raises(InvalidArgumentError, match="expires_at"):
        await manager.save(Memory(MemoryType.USER, "pass", "Ada has a pass.", {EXPIRES_AT: end}))
    assert [each async for each in manager.memories()] == []


async def test_no_other_scope_has_the_id() -> None:
    """The id of one user's memory finds nothing of another user."""
    manager = managed(clock_at_start())
    await manager.for_user("ada").save(HOME)
    assert await manager.for_user("bob").get(HOME.id) is None
    assert not await manager.get(HOME.id)


async def test_an_expired_memory_is_not_recalled_and_takes_no_place() -> None:
    """From the moment of its end it is in no answer; the others take its place."""
    clock = clock_at_start()
    manager = managed(clock)
    soon = (START + timedelta(hours=1)).isoformat()
    await manager.save(TEA)
    clock.advance(1)
    await manager.save(
        [Memory(MemoryType.USER, f"code{n}", f"Room {n}.", {EXPIRES_AT: soon}) for n in range(3)]
    )
    assert len(await manager.retrieve(limit=2)) == 2
    clock.advance(3600)
    assert [each.key for each in await manager.retrieve(limit=2)] == ["likes:tea"]
    assert [each.key async for each in manager.memories()] == ["likes:tea"]
    assert await manager.get("user:code1") is None
    assert len(await manager.history("code1")) == 1


async def test_an_update_sets_the_end_and_keeps_the_content() -> None:
    """Only the moment changes, in a new version of the metadata."""
    clock = clock_at_start()
    manager = managed(clock)
    await manager.save(TEA)
    await manager.update(TEA.id, expires_at=START + timedelta(days=1))
    assert await manager.get(TEA.id) is not None
    clock.advance(86_400)
    assert await manager.get(TEA.id) is None


async def test_an_undone_change_counts_as_never_made() -> None:
    """At the moment of a change that was undone, the version before it is listed."""
    clock = clock_at_start()
    manager = managed(clock)
    await manager.save(HOME)
    clock.advance(3600)
    await manager.update("user:home", "Ada lives on Mars.")
    clock.advance(3600)
    await manager.undo("home")
    moment = START + timedelta(hours=1.5)
    assert [each.content async for each in manager.memories(at=moment)] == [HOME.content]
