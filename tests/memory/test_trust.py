"""Trust: trained by recalls, reset by a correction, changed by feedback."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.layers.vitals import Vitals
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.sync import blocking
from locus_memory.testing import FakeClock

DAY = 86_400
START = datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()
TEA = Memory(MemoryType.USER, "drink", "Ada likes green tea.")
WEB = Memory(MemoryType.REFERENCE, "shop", "The green tea shop is closed.", {"origin": "tool"})
OTHERS = [
    Memory(MemoryType.PROJECT, f"berth{n}", f"The harbour has berth {n}.", {"importance": 0.9})
    for n in range(20)
]
"""More salient than the tea: the stable part has no room for it, so that it is recalled."""
TRUST = {"blend": "trust", "memory_budget_tokens": 200}
WAYS = {
    "a blend": TRUST,
    "none": {"memory_budget_tokens": 200},
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture(params=WAYS)
async def ada(request, clock):
    """A manager that trains trust, bound to a user."""
    async with LLMMemoryManager(
        InMemoryStore(clock=clock), clock=clock, **WAYS[request.param]
    ) as m:
        await m.for_user("ada").save(OTHERS)
        yield m.for_user("ada")


async def turn(manager: LLMMemoryManager, thread: str) -> None:
    """Recall, as the start of a run does, and wait for what comes after it."""
    said = (Message.user("Do you remember my preference for green tea?"),)
    state = AgentState(messages=said, metadata={"thread_id": thread})
    shown = await manager.on_session_start(state)
    assert "green tea" in str(shown.messages)
    await manager._reader.afterwards.wait()


async def vitals_of(manager: LLMMemoryManager, memory: Memory = TEA) -> Vitals:
    """Return the vital signs of the current version of a memory."""
    found = await manager.get(f"{memory.type.value}:{memory.key}")
    assert found is not None
    return (await manager.vitals([found]))[0]


async def test_thirty_recalls_on_one_day_raise_the_trust_by_002(ada, clock):
    await ada.save([TEA, WEB])
    for _ in range(30):
        await turn(ada, "thread")
    vitals = await vitals_of(ada)
    assert (vitals.use_count, vitals.hits) == (30, 1)
    assert vitals.trust == pytest.approx(0.52, abs=1e-3)
    await turn(ada, "another")
    assert (await vitals_of(ada)).trust == pytest.approx(0.54, abs=1e-3)
    clock.advance(DAY)
    await turn(ada, "thread")
    assert (await vitals_of(ada)).hits == 3
    web = await vitals_of(ada, WEB)
    assert (web.trust, web.hits) == (0.3, 0)


async def test_a_correction_starts_with_the_trust_of_a_new_memory(ada, clock):
    await ada.save(TEA)
    for thread in range(5):
        await turn(ada, str(thread))
    trained = await vitals_of(ada)
    assert trained.trust == pytest.approx(0.6, abs=1e-3)
    await ada.save(Memory(MemoryType.USER, "drink", "Ada likes black tea."))
    assert (await vitals_of(ada)).trust == 0.5
    assert (await vitals_of(ada)).hits == 0
    await ada.undo("drink")
    assert (await vitals_of(ada)).trust == pytest.approx(trained.trust, abs=1e-3)


async def test_retrieve_trains_with_the_blend_and_a_query_alone(clock):
    for blend, expected in (("trust", 0.52), ("recency", 0.5), ("hybrid", 0.5)):
        async with LLMMemoryManager(InMemoryStore(), clock=clock, blend=blend) as manager:
            await manager.save(TEA)
            for _ in range(3):
                assert await manager.retrieve("green tea")
                assert await manager.retrieve()
                assert await manager.retrieve("green tea", at=datetime.now(UTC))
            await manager.drain()
            assert (await vitals_of(manager)).trust == expected


async def test_a_manager_with_its_own_retrieve_says_what_is_shown(clock):
    class Own(LLMMemoryManager):
        async def retrieve(self, query=None, limit=None):
            return [TEA]

    async with Own(InMemoryStore(), clock=clock, blend="trust") as manager:
        await manager.save(TEA)
        await turn(manager.for_user("x"), "t")
        assert "green tea" in await manager.prefetch("tea", session_id="t")


async def test_a_count_that_fails_is_an_event(failing_store, clock, events):
    async with LLMMemoryManager(failing_store, clock=clock, blend="trust") as manager:
        await manager.save(TEA)
        failing_store.failing = {"put_batch"}
        assert await manager.retrieve("green tea")
        await manager.drain()
        failing_store.failing = set()
    (event,) = events.of("memory.count_failed")
    assert isinstance(event.error, BackendUnavailableError)


async def test_runs_at_once_are_all_counted(ada, events):
    await ada.save(TEA)
    await asyncio.gather(*(turn(ada, str(thread)) for thread in range(30)))
    assert (await vitals_of(ada)).use_count == 30
    assert not events.of("memory.count_failed")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=8))
async def test_feedback_is_in_the_vital_signs(votes):
    store = InMemoryStore()
    async with LLMMemoryManager(store, clock=FakeClock(START)) as manager:
        (written,) = await manager.save(TEA)
        expected = 0.5
        for helpful in votes:
            assert await manager.feedback("drink", helpful=helpful)
            expected = min(1, max(0, expected + (0.1 if helpful else -0.2)))
        vitals = await vitals_of(manager)
        assert vitals.trust == pytest.approx(expected)
        assert await manager.history("drink") == [written]


async def test_feedback_about_a_type_or_about_nothing(clock):
    async with LLMMemoryManager(InMemoryStore(), clock=clock) as manager:
        note = Memory(MemoryType.PROJECT, "drink", "The drinks are ordered.")
        await manager.save([TEA, note])
        assert await manager.feedback("drink", helpful=True, type="project")
        assert (await vitals_of(manager)).trust == 0.5
        assert (await vitals_of(manager, note)).trust == 0.6
        assert await manager.feedback("drink", helpful=False)
        assert [(await vitals_of(manager, each)).trust for each in (TEA, note)] == [
            pytest.approx(0.3),
            pytest.approx(0.4),
        ]
        assert not await manager.feedback("food", helpful=True)


def test_feedback_without_await():
    with blocking(LLMMemoryManager("memory")) as manager:
        manager.save(TEA)
        assert manager.feedback("drink", helpful=True)
        (vitals,) = manager.vitals([manager.get("user:drink")])
        assert vitals.trust == pytest.approx(0.6, abs=1e-3)
