"""Memories as facts: what is exported is imported again, exactly."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.facts import fact_of, read_fact
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.testing import FakeClock

SCOPE = Scope(("app", "users", "ada"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | words
values = st.recursive(
    scalars,
    lambda each: st.lists(each, max_size=2) | st.dictionaries(words, each, max_size=2),
    max_leaves=4,
)
NAMES = ["id", "content", "source", "created_at", "created_ts", "type", "key", "metadata"]
NAMES += ["fields", "fact_id", "sequence", "valid_from", "supersedes", "extractor", "importance"]
names = st.sampled_from(NAMES) | words
moments = st.integers(0, 4 * 10**15).map(lambda us: EPOCH + timedelta(microseconds=us))
facts = st.fixed_dictionaries(
    {"id": st.uuids().map(lambda each: each.hex), "content": words, "source": st.just("") | words},
    optional={
        "created_at": moments.map(lambda at: at.isoformat("T", "microseconds")),
        "type": st.sampled_from(["user", "feedback", "project", "reference"]),
        "key": words,
    },
)
unknown = st.dictionaries(names, values, max_size=4)


@pytest.mark.slow
@given(memory=st.builds(Memory, st.just("user"), words, words, unknown))
def test_a_memory_of_any_metadata_survives_as_a_fact(memory):
    """Only what a change of a memory writes is left to the ledger."""
    managed = ("sequence", "valid_from", "supersedes", "created_at", "fact_id", "fields")
    own = {name: each for name, each in memory.metadata.items() if name not in managed}
    kept = own | {"extractor": str(own.get("extractor") or "")}
    if not kept["extractor"]:
        del kept["extractor"]
    plain = Memory(memory.type, memory.key, memory.content, own)
    read = read_fact(fact_of(plain, SCOPE)).memory
    metadata = dict(read.metadata)
    assert len(metadata.pop("fact_id")) == 32
    assert metadata == kept
    assert (read.type, read.key, read.content) == (plain.type, plain.key, plain.content)


@pytest.mark.slow
@given(told=facts, rest=unknown)
def test_a_fact_survives_as_a_memory(told, rest):
    """Fields of other programs come back, whatever they are called."""
    rest = {name: each for name, each in rest.items() if name not in (*NAMES[:8], "created_ts")}
    read = read_fact({**rest, **told})
    again = fact_of(read.memory, SCOPE)
    assert {**again, **rest, **told, "created_at": None} == {**again, "created_at": None}
    assert read.said_at == told.get("created_at")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(facts, max_size=6, unique_by=lambda each: each["id"]))
async def test_an_export_is_imported_into_another_scope_unchanged(told):
    """Ids, moments and metadata; a second import changes nothing."""
    clock = FakeClock(datetime(2100, 1, 2, tzinfo=UTC).timestamp())
    async with LLMMemoryManager(InMemoryStore(clock=clock), clock=clock) as manager:
        ada, bob = manager.for_user("ada"), manager.for_user("bob")
        distinct = {(each.get("type"), each.get("key", each["id"])): each for each in told}
        await ada.import_facts(distinct.values())
        first = [each async for each in ada.export_facts()]
        moments = {each["id"]: each["created_at"] for each in first}
        for each in distinct.values():
            if "created_at" in each and each["id"] in moments:
                assert moments[each["id"]] == each["created_at"]
        await bob.import_facts(first)
        assert [each async for each in bob.export_facts()] == first
        assert await bob.import_facts(first) == []
        assert [each async for each in bob.export_facts()] == first


async def test_one_bad_fact_writes_nothing():
    good = {"id": "a" * 32, "content": "x"}
    async with LLMMemoryManager(InMemoryStore()) as manager:
        for bad, message in (
            ({"content": "y"}, "fact 2: a fact's id is a text"),
            (good, "fact 2: it has the key of fact 1"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                await manager.import_facts([good, bad])
        assert [each async for each in manager.memories()] == []


async def test_a_memory_that_was_no_fact_has_the_same_id_each_time_and_another_per_user():
    async with LLMMemoryManager(InMemoryStore()) as manager:
        ids = set()
        for user in ("ada", "bob"):
            scoped = manager.for_user(user)
            await scoped.save(Memory("user", "home", "Lives in Brest."))
            found = [[each["id"] async for each in scoped.export_facts()] for _ in range(2)]
            assert found[0] == found[1]
            ids.update(found[0])
        assert len(ids) == 2
