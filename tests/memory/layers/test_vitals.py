"""The vital signs of memories."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.layers.records import record_of, value_of
from locus_memory.memory.layers.vitals import Vitals, VitalsBook
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope

SCOPE = Scope(("app",))
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
TEA = Memory(MemoryType.USER, "likes:tea", "Ada likes tea.", {"importance": 0.8})


def at(days: float) -> str:
    """Return the moment after some days."""
    return (START + timedelta(days=days)).isoformat(timespec="microseconds")


def told(importance: float, day: float) -> Memory:
    """Return a memory of a day."""
    return Memory("user", "k", "A.", {"importance": importance, "valid_from": at(day)})


@pytest.mark.slow
@given(importance=st.floats(0, 1), trust=st.floats(0, 1), days=st.floats(0, 4_000))
def test_salience_and_trust_fall_with_time_within_their_bounds(
    importance: float, trust: float, days: float
) -> None:
    """What has no more than the default trust keeps it, and what endures stays at the floor."""
    start = Vitals(trust=trust, trusted_at=at(0))
    later = start.at(told(importance, 0), at(days))
    assert later.salience <= importance
    assert later.salience >= (0.2 if importance >= 0.9 else 0.0)
    assert min(trust, 0.5) <= later.trust <= trust
    assert later.at(told(importance, 0), at(days)) == later


def test_the_fall_has_the_documented_speed() -> None:
    """A salience of .8 halves in 20.8 days, and counts from the last session that said it."""
    memory = told(0.8, 0)
    assert Vitals().at(memory, at(30 * math.log(2))).salience == pytest.approx(0.4)
    assert Vitals().at(memory, at(-3)).salience == 0.8
    again = Vitals().mentioned(at(10), [])
    assert again.at(memory, at(40)).salience == pytest.approx(0.8 / math.e)
    assert again.mentioned(at(5), []).told_at == at(10)


def test_earned_trust_falls_with_time_and_a_low_one_does_not_rise() -> None:
    """What recalls have added fades as the salience does; a training starts from what is left."""
    vitals = Vitals()
    for thread in range(30):
        vitals = vitals.used(at(0), str(thread))
    assert vitals.trust == 1.0
    assert vitals.trust_at(at(30)) == vitals.at(TEA, at(30)).trust
    assert vitals.trust_at(at(30)) == pytest.approx(0.5 + 0.5 / math.e)
    assert vitals.at(TEA, at(10)).used(at(30), "t").trust == pytest.approx(0.52 + 0.5 / math.e)
    assert vitals.trust_at(at(-5)) == 1.0
    low = Vitals().rated(at(0), helpful=False)
    assert low.trust == low.trust_at(at(400)) == 0.3


def test_another_version_starts_with_the_trust_of_a_new_memory() -> None:
    """Trust is earned by a statement, not by its key; the uses stay."""
    first = Memory(MemoryType.USER, "k", "A.", {"sequence": 1, "valid_from": at(0)})
    second = Memory(MemoryType.USER, "k", "B.", {"sequence": 2, "valid_from": at(1)})
    vitals = Vitals().about(first).used(at(0), "t")
    assert vitals.about(first) == vitals
    fresh = vitals.about(second)
    assert (fresh.trust, fresh.hits, fresh.trained) == (0.5, 0, ())
    assert fresh.use_count == 1
    told = Memory(MemoryType.USER, "k", "B.", {**second.metadata, "origin": "tool"})
    assert vitals.about(told).trust == 0.3
    earlier = Vitals(trust=0.7)
    assert earlier.about(first).trust == 0.7
    assert earlier.about(first).about(second).trust == 0.5


def test_the_newest_fifty_messages_that_state_it_stay() -> None:
    """Each counts once."""
    vitals = Vitals()
    for number in (*range(60), 59):
        vitals = vitals.mentioned(at(number), [("thread", f"#{number}")])
    assert vitals.messages == tuple(("thread", f"#{number}") for number in range(10, 60))


async def test_a_record_of_an_earlier_version_is_read() -> None:
    """What it counted is kept; what is computed now is not read."""
    record = {
        "salience": 0.1,
        "decayed_at": at(0),
        "pinned_at": at(0),
        "source_count": 2,
        "sources": ["e1", "e2"],
        "use_count": 7,
        "last_used": at(1),
        "version": None,
        "trust": 0.7,
        "trusted_at": at(1),
        "hits": 9,
        "trained": ["t"],
        "trained_on": "2026-03-02",
        "retired_at": None,
        "messages": [["t", "#1"]],
        "promoted_on": at(0),
    }
    async with InMemoryStore() as store:
        await store.put(SCOPE.vitals, "user:likes:tea", record)
        vitals = (await VitalsBook(store).of(SCOPE, [TEA]))["user:likes:tea"]
    assert (vitals.use_count, vitals.hits, vitals.trust) == (7, 9, 0.7)
    assert (vitals.messages, vitals.trained) == ((("t", "#1"),), ("t",))
    again = record_of(Vitals, value_of(vitals))
    assert again.at(TEA, at(2)) == vitals.at(TEA, at(2))
    assert again.at(TEA, at(2)).salience > 0.7


async def test_a_change_raises_no_version_of_the_memory_and_none_of_an_erased_one() -> None:
    """Vital signs are beside the memory, and end with it."""
    async with InMemoryStore() as store:
        await store.put(SCOPE.current, "user:likes:tea", TEA.to_store_value())
        book = VitalsBook(store)
        use = {
            "user:likes:tea": lambda _, v: v.used(at(1), "t"),
            "user:erased": lambda _, v: v.used(at(1), "t"),
        }
        changed = await book.change(SCOPE, use)
        assert changed == {"user:likes:tea"}
        item = await store.get_item(SCOPE.current, "user:likes:tea")
        assert item is not None
        assert item.version == 1
        assert await store.list_keys(SCOPE.vitals) == ["user:likes:tea"]
        assert (await book.of(SCOPE, [TEA]))["user:likes:tea"].use_count == 1
