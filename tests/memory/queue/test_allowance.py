"""The calls and tokens that extraction may take a day."""

from __future__ import annotations

import asyncio
import json

import pytest

from locus_memory.errors import ConfigurationError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.state import AgentState

NOTHING = json.dumps({"changes": [], "notes": ["They talked."], "identity": []})
LONG = "I moved to Graz last week, because of the river and the mountains around it, I think."


class Metered:
    """A model that reports 400 tokens a call."""

    def __init__(self):
        self.calls = 0

    async def __call__(self, messages):
        self.calls += 1
        usage = {"prompt_tokens": 390, "completion_tokens": 10}
        return Message(role="assistant", content=NOTHING, metadata={"usage": usage})


async def talk(manager, *threads):
    for thread in threads:
        said = (Message.user(f"{thread}: {LONG}"), Message.assistant("Nice."))
        await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": thread}))


@pytest.mark.parametrize("mode", ["background", "session_end"])
async def test_what_is_too_much_today_is_read_tomorrow(store, clock, mode):
    model = Metered()
    options = {"extract_mode": mode, "extraction_budget": (2, 10_000), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        await talk(manager, "a", "b", "c", "d", "e")
        assert await manager.drain() == 3
        assert (await manager.drain(), model.calls) == (3, 2)
    # Another process counts on.
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        assert (await manager.drain(), model.calls) == (3, 2)
        clock.advance(86_400)
        assert (await manager.drain(), model.calls) == (1, 4)
        assert (await manager.sync_now(), model.calls) == (0, 5)
        assert len(await manager.episodes()) == 5


async def test_tokens_count_as_well(store, clock):
    model = Metered()
    options = {"extract_mode": "background", "extraction_budget": (50, 800), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        for thread in "abcd":
            await talk(manager, thread)
            await manager.drain()
        assert (model.calls, manager.pending) == (2, 2)
        clock.advance(86_400)
        assert (await manager.drain(), model.calls) == (0, 4)


async def test_a_call_that_a_run_waits_for_is_not_counted(store, clock):
    model = Metered()
    options = {"extraction_budget": (1, 1), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        await talk(manager, "a", "b", "c")
        assert (model.calls, manager.pending) == (3, 0)


@pytest.mark.parametrize("budget", [5, (5,), (0, 5), (5, True), [5, 5], (5, None), "ab"])
async def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(ConfigurationError, match="extraction_budget"):
        LLMMemoryManager("memory", extraction_budget=budget)


@pytest.mark.parametrize("value", [7, {}, {"day": 19_675}, {"calls": "9", "tokens": None}])
async def test_a_damaged_count_stops_nothing(store, clock, value):
    day = {"day": int(clock.now // 86_400)}
    await store.put(("locus_memory", "tending"), "allowance", value)
    if isinstance(value, dict):
        await store.put(("locus_memory", "tending"), "allowance", value | day)
    model = Metered()
    options = {"extract_mode": "background", "extraction_budget": (2, 800), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        await talk(manager, "a")
        assert (await manager.drain(), model.calls) == (0, 1)


async def test_a_call_that_another_process_makes_is_not_counted(store, clock, monkeypatch):
    """A job that somebody else was faster to claim costs nothing of the day."""
    model = Metered()
    options = {"extract_mode": "background", "extraction_budget": (1, 10_000), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        claim = manager._queue.claim

        async def late(trip, lease):
            return []

        monkeypatch.setattr(manager._queue, "claim", late)
        await talk(manager, "a")
        assert (await manager.drain(), model.calls) == (1, 0)
        monkeypatch.setattr(manager._queue, "claim", claim)
        assert (await manager.drain(), model.calls) == (0, 1)


async def test_what_may_not_be_read_today_was_not_tried(store, clock):
    """It is no attempt, and nobody holds it."""
    options = {"extract_mode": "background", "extraction_budget": (1, 10_000), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(Metered()), **options) as manager:
        await talk(manager, "a", "b", "c")
        assert await manager.drain() == 2
        for item in await store.scan(("locus_memory", "queue")):
            assert (item.value["attempts"], item.value["lease"]) == (0, None)


@pytest.mark.parametrize("mode", ["background", "session_end"])
async def test_what_waits_for_tomorrow_is_not_read_at_each_turn(store, clock, mode, monkeypatch):
    model, read = Metered(), []
    options = {"extract_mode": mode, "extraction_budget": (1, 10_000), "clock": clock}
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), **options) as manager:
        await talk(manager, "a", "b")
        assert await manager.drain() == 1
        scan = type(store).scan

        async def counted(self, *names, **more):
            found = await scan(self, *names, **more)
            read.append(len(found))
            return found

        monkeypatch.setattr(type(store), "scan", counted)
        said = []
        for number in range(40):
            said += [Message.user(f"{number}: {LONG}"), Message.assistant("Nice.")]
            state = AgentState(messages=tuple(said), metadata={"thread_id": "c"})
            await manager.on_session_end(state)
            await asyncio.sleep(0.001)
        # Where each turn reads all turns of the day, it is 40 * 41 / 2.
        assert sum(read) < 2 * 40
        monkeypatch.undo()
        clock.advance(86_400)
        assert await manager.drain() > 0
        assert model.calls == 2
        assert (await manager.sync_now(), manager.pending) == (0, 0)
