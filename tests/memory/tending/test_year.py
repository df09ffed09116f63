"""A simulated year: facts stay, what is not used fades, and episodes end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.testing import FakeClock
from tests.memory.transcripts import transcript_puts

DAY = 86_400.0
SCOPE = Scope(("locus_memory", "users", "ada"))


def moment(clock: FakeClock) -> str:
    """Return the present moment of a clock."""
    return datetime.fromtimestamp(clock(), UTC).isoformat(timespec="microseconds")


def episode(clock: FakeClock, number: int) -> Episode:
    """Return the episode of a day, which mentions no fact."""
    now = moment(clock)
    return Episode(
        session_id=f"thread {number}",
        started_at=now,
        ended_at=now,
        notes=(Note(f"Session number{number} concerned topic{number} and matter{number}."),),
        salience=0.8,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("retention", "days"), [(30.0, 365), (0.0, 70)])
async def test_a_simulated_year(retention: float, days: int) -> None:
    """All facts stay, only the important one does not fade, and episodes are bounded."""
    clock = FakeClock()
    async with InMemoryStore(clock=clock) as store:
        manager = LLMMemoryManager(store, retention=retention, clock=clock)
        ada = manager.for_user("ada")
        facts = [
            Memory(MemoryType.USER, "allergy", "Ada is allergic to walnuts.", {"importance": 0.95}),
            Memory(MemoryType.USER, "tea", "Ada drinks green tea.", {"importance": 0.5}),
            Memory(MemoryType.PROJECT, "used", "The office is in Graz.", {"importance": 0.5}),
            *(
                Memory(
                    MemoryType.PROJECT, f"n{n}", f"Note{n} says item{n}.", {"importance": n / 100}
                )
                for n in range(0, 90, 11)
            ),
        ]
        await ada.save(facts)
        for day in range(days):
            await store.put_batch([episode_put(SCOPE, episode(clock, day))])
            said = [Message.user(f"Turn of day {day}."), Message.assistant("Yes.")]
            await store.put_batch(transcript_puts(SCOPE, f"thread {day}", said, 1, moment(clock)))
            clock.advance(DAY)
            if day % 20 == 0:
                now = moment(clock)
                used = {"project:used": lambda _, v, now=now: v.used(now, "t")}
                await VitalsBook(store).change(SCOPE, used)
            report = await manager.consolidate()
            assert (report.scopes, report.busy) == (1, 0)
            left = [memory.key async for memory in ada.memories()]
            assert len(left) == len(facts)
        episodes = [each async for each in EpisodeBook(store).scan(SCOPE)]
        turns = await store.list_namespaces(SCOPE.transcripts, 1_000)
        log = await store.list_keys(SCOPE.log, 1_000)
        assert len(episodes) == len(turns) == (30 if retention else days)
        assert len(log) == 31
        kept = [memory async for memory in ada.memories()]
        signs = {each.key: v.salience for each, v in zip(kept, await ada.vitals(kept), strict=True)}
        assert signs.pop("allergy") == 0.2
        assert max(signs.values()) < 0.1
        await manager.close()


@pytest.mark.slow
async def test_the_block_has_its_bound_all_year() -> None:
    """A fact is learnt and an episode is written each day; what a run is shown has its bound."""
    clock = FakeClock()
    async with InMemoryStore(clock=clock) as store:
        manager = LLMMemoryManager(store, memory_budget_tokens=800, clock=clock)
        ada = manager.for_user("ada")
        await ada.identity.add("Always reply in English.")
        rule = {"importance": 0.9}  # a plan counts no use, so another rule would fade
        await ada.save(Memory(MemoryType.FEEDBACK, "brief", "Never write more than a page.", rule))
        for day in range(365):
            note = f"Note {day:03} says that the harbour has berth {day:03}."
            await ada.save(Memory(MemoryType.PROJECT, f"berth{day:03}", note))
            await store.put_batch([episode_put(SCOPE, episode(clock, 100 + day))])
            if day % 7 == 0:
                await manager.consolidate()
            if day >= 40 and day % 25 == 0:
                for query in (
                    "Do you remember my preference for a harbour berth?",
                    "Remember when we talked about the session topic and matter?",
                ):
                    plan = await ada.plan(query)
                    assert plan.block is not None
                    assert "- always: Always reply in English." in plan.block
                    assert "- feedback: Never write more than a page." in plan.block
                    assert 300 < plan.tokens <= 800
            clock.advance(DAY)
        left = [memory.key async for memory in ada.memories("project")]
        await manager.close()
    assert len(left) == 365
