"""What was known at a moment, and what was true at one, against plain models."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.validity import Then, checked
from locus_memory.registry import get_store
from locus_memory.testing import FakeClock

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
VERBS = ["save", "late", "delete", "gone", "undo", "forget"]
WORDS = ["tea", "milk", "rum"]
steps = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from("ab"), st.sampled_from(WORDS)), max_size=12
)


@asynccontextmanager
async def clocked(store="memory", **options):
    """Yield a manager whose clock stands at the start, and the clock."""
    clock = FakeClock(START.timestamp())
    made = InMemoryStore(clock=clock) if store == "memory" else get_store(store)
    async with made, LLMMemoryManager(made, clock=clock, **options) as manager:
        yield manager, clock


async def change(manager, now, verb, key, word):
    """Make a change that happens now; that of a late one was said two days before."""
    before = (now - timedelta(days=2)).isoformat(timespec="microseconds")
    memory = Memory("user", key, f"{word} for {key}.")
    if verb in ("late", "gone"):
        edit = (
            Statement(memory, before)
            if verb == "late"
            else Retirement(MemoryType.USER, key, before)
        )
        await manager._ledger.apply(manager._scope, [edit])
    elif verb == "save":
        await manager.save(memory)
    elif verb == "delete":
        await manager.delete(f"user:{key}")
    else:
        await getattr(manager, verb)(key)


async def listed(manager, **then):
    return {each.key: each.content async for each in manager.memories(**then)}


def as_dict(memories):
    return {each.key: each.content for each in memories}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "sqlite::memory:"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps)
@example(steps=[(verb, "a", "tea") for verb in ("save", "delete", "undo", "delete", "undo")])
@example(steps=[("save", "a", word) for word in WORDS] + [("undo", "a", "")] * 3)
async def test_an_answer_as_of_a_moment_is_that_of_the_moment(store, steps):
    """Whatever was written, replaced, deleted and undone since; only what is erased is gone."""
    async with clocked(store) as (manager, clock):
        seen = []
        for step in steps:
            await change(manager, datetime.fromtimestamp(clock(), UTC), *step)
            if step[0] == "forget":
                for _, _, known in seen:
                    known.pop(step[1], None)
            seen.append((clock(), as_dict(await manager.retrieve()), await listed(manager)))
            clock.advance(86_400)
        for moment, found, known in seen:
            for then in (moment, moment + 86_399):
                assert await listed(manager, as_of=then) == known
            again = as_dict(await manager.retrieve(as_of=moment))
            assert again == {key: each for key, each in found.items() if key in known}
        assert await listed(manager, as_of=START - timedelta(seconds=1)) == {}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
@given(
    first=st.none() | st.integers(0, 20),
    last=st.none() | st.integers(0, 20),
    at=st.integers(-24, 24 * 22),
)
def test_a_validity_of_days_holds_on_whole_days_of_the_user(zone, first, last, at):
    """From the beginning of the first day to the end of the last one, open on either side."""
    place, origin = ZoneInfo(zone), date(2026, 5, 1)
    days = [None if each is None else origin + timedelta(days=each) for each in (first, last)]
    given = dict(zip(("valid_from", "valid_to"), days, strict=True))
    moment = datetime(2026, 5, 1, tzinfo=place) + timedelta(hours=at)
    if None not in days and days[0] > days[1]:
        with pytest.raises(InvalidArgumentError, match="valid_to is after"):
            checked(given, place)
        return
    told = checked(given, place)
    assert told == {name: each.isoformat() for name, each in given.items() if each}
    then = Then.read(None, moment, place)
    said = (moment - timedelta(days=1)).isoformat()
    is_in = (days[0] or date.min) <= moment.date() <= (days[1] or date.max)
    assert then.is_true(said, told) is is_in


SPANS = st.none() | st.integers(0, 9)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(told=st.lists(st.tuples(st.sampled_from("ab"), SPANS, SPANS), max_size=6))
async def test_what_was_true_is_that_of_a_plain_model(told):
    """A version counts in its span, until it is superseded or, if later, the next one begins."""
    day = timedelta(days=1)
    async with clocked(timezone="UTC") as (manager, clock):
        model: dict[str, list[list]] = {}
        for number, (key, first, last) in enumerate(told):
            now = datetime.fromtimestamp(clock(), UTC)
            start, end = (
                None if e is None else (START + e * day).isoformat() for e in (first, last)
            )
            if None not in (first, last) and first >= last:
                continue
            memory = Memory("user", key, f"{number}.", valid_from=start, valid_to=end)
            await manager.save(memory)
            ends = START + last * day if last is not None else None
            begins = START + first * day if first is not None else now if last is None else None
            versions = model.setdefault(key, [])
            if versions:
                versions[-1][3] = max(now, begins or now)
            versions.append([begins or START - 99 * day, ends, f"{number}.", None])
            clock.advance(86_400)
        for hour in range(-12, 24 * 11, 24):
            at = START + timedelta(hours=hour)
            expected = {}
            for key, versions in model.items():
                true = [
                    (since, number, content)
                    for number, (since, ends, content, over) in enumerate(versions)
                    if since <= at and (ends is None or at < ends) and (over is None or at < over)
                ]
                if true:
                    expected[key] = max(true)[2]
            assert await listed(manager, at=at) == expected
