"""The day on which a message was said, where it was said."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeModel

ANSWER = json.dumps({"notes": [{"text": "Ada ran a marathon.", "messages": [1]}]})
TURNS = [{"user": "Today I ran a marathon.", "assistant": "Well done!"}]
# The last of May in California, and the first of June in Europe.
EVENING = datetime(2026, 6, 1, 5, 30, tzinfo=UTC)


def asked(model):
    """Return the first message that the model was shown."""
    return model.calls[0][-1].content.partition("<messages>\n")[2].splitlines()[0]


@pytest.mark.parametrize(
    ("date", "zone"),
    [
        ("2026-05-31T22:30:00-07:00", "Asia/Tokyo"),
        ("2026-05-31T22:30:00", "America/Los_Angeles"),
        ("2026-05-31", "America/Los_Angeles"),
        ("2026-05-31", "Pacific/Kiritimati"),
        ("2026-05-31T23:59:59+14:00", "UTC"),
    ],
)
async def test_the_day_of_a_conversation_is_that_of_its_place(store, date, zone):
    model = FakeModel([ANSWER])
    async with LLMMemoryManager(store, extract_fn=LLMExtractor(model), timezone=zone) as manager:
        done = await manager.ingest("agent", "run", TURNS, session_date=date)
        assert (done["turns"], done["episodes"]) == (1, 1)
    assert asked(model) == "1. (Sunday 2026-05-31) user: Today I ran a marathon."


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("America/Los_Angeles", "Sunday 2026-05-31"),
        ("Europe/Vienna", "Monday 2026-06-01"),
        ("UTC", "Monday 2026-06-01"),
    ],
)
async def test_an_evening_does_not_become_the_next_day(store, clock, zone, day):
    """Neither for the model that extracts, nor in what a run is shown."""
    clock.now = EVENING.timestamp()
    model = FakeModel([ANSWER])
    options = {"extract_fn": LLMExtractor(model), "timezone": zone, "clock": clock}
    async with LLMMemoryManager(store, **options) as manager:
        said = (Message.user("Today I ran a marathon."), Message.assistant("Well done!"))
        await manager.on_session_end(AgentState(messages=said, metadata={"thread_id": "a"}))
        plan = await manager.plan("What did I do?")
    assert asked(model) == f"1. ({day}) user: Today I ran a marathon."
    assert f"\n{day.split()[1]}:\n- Ada ran a marathon.\n" in plan.stable


async def test_a_day_is_shown_once_until_it_changes(store, clock):
    model = FakeModel([ANSWER, ANSWER])
    options = {"extract_fn": LLMExtractor(model), "timezone": "UTC", "clock": clock}
    async with LLMMemoryManager(store, extract_mode="manual", **options) as manager:
        said = []
        for text in ("one", "two", "three"):
            said += [Message.user(text), Message.assistant("Yes.")]
            await manager.on_session_end(
                AgentState(messages=tuple(said), metadata={"thread_id": "a"})
            )
            clock.advance(43_200)
        await manager.sync_now()
    rows = model.calls[0][-1].content.splitlines()
    days = [row for row in rows if "(" in row]
    assert len(days) == 2
    assert [row.partition("user: ")[2] for row in days] in (["one", "two"], ["one", "three"])


@pytest.mark.parametrize("date", ["yesterday", "", "2026-13-01", 5, "9999-12-31T23:59:59-14:00"])
async def test_what_is_no_date_is_refused(store, date):
    async with LLMMemoryManager(store) as manager:
        with pytest.raises(InvalidArgumentError, match="session_date"):
            await manager.ingest("agent", "c", TURNS, session_date=date)


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati", "UTC"])
@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
async def test_the_ends_of_the_calendar_stop_nothing(store, date, zone):
    """There may be no such day where it was said: it is unknown, and everything else is there."""
    model = FakeModel([ANSWER])
    options = {"extract_fn": LLMExtractor(model), "timezone": zone, "retention": 0}
    async with LLMMemoryManager(store, **options) as manager:
        done = await manager.ingest("agent", "run", TURNS, session_date=date)
        assert (done["turns"], done["episodes"], done["pending"]) == (1, 1, 0)
        plan = await manager.plan("What did I do?")
    assert "- Ada ran a marathon.\n" in plan.stable
