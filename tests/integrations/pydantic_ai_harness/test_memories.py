"""Memories of Pydantic AI's harness: the answers and errors of its own store, on any database."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

pytest.importorskip(
    "pydantic_ai_harness.memory", reason="it has an environment of its own: make frameworks"
)

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from pydantic_ai_harness.memory import (
    InMemoryStore as Theirs,
)
from pydantic_ai_harness.memory import (
    Memory,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

from locus_memory import EncryptingStore
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import collect
from locus_memory.integrations.pydantic_ai import LocusMemoryStore
from locus_memory.store.wrappers.base import StoreWrapper


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    """A memory store on each embedded database."""
    where = "memory" if request.param == "memory" else f"sqlite:{tmp_path / 'test.db'}"
    async with LocusMemoryStore(where) as opened:
        yield opened


class Plain(StoreWrapper):
    """A store without transactions."""

    @property
    def capabilities(self):
        return replace(super().capabilities, transactions=False)


PATHS = st.sampled_from(["a", "b.md", "n/a", "n/b", "n/deep/a", "n.b", "../x", "", "a/./b"])
TEXTS = st.text(st.sampled_from("tea ob"), max_size=20)
OPERATIONS = st.none() | st.builds(
    MemoryOperation, id=st.sampled_from(["1", "2", "3"]), fingerprint=st.sampled_from("xy")
)
METADATA = st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "é", "\0"]))
PREFIXES = st.sampled_from(["", "n", "n/", "n/d", "../"])
CALLS = st.one_of(
    *[st.tuples(st.just("write"), PATHS, TEXTS, st.booleans(), METADATA, OPERATIONS)] * 3,
    st.tuples(st.just("delete"), PATHS, st.booleans(), OPERATIONS),
    st.tuples(st.just("read"), PATHS, st.integers(-1, 8)),
    st.tuples(st.just("get_operation"), OPERATIONS.filter(bool)),
    st.tuples(st.just("list_paths"), PREFIXES, st.integers(-1, 4)),
    st.tuples(
        st.just("search"), PREFIXES, TEXTS, st.integers(0, 3), st.integers(0, 3), st.integers(0, 9)
    ),
)


class Driven:
    """One store; its versions are told by their order, for each store has others."""

    def __init__(self, store):
        self.store = store
        self.seen = []

    def told(self, answer):
        version = getattr(answer, "version", None)
        if version is None:
            return answer
        if version not in self.seen:
            self.seen.append(version)
        return replace(answer, version=str(self.seen.index(version)))

    async def expected(self, path, right):
        file = await self.store.read(path, max_chars=1)
        version = file.version if file else None
        if right:
            return version
        return "none" if version is None else None

    async def write(self, path, text, right, metadata, operation):
        version = await self.expected(path, right)
        return await self.store.write_with_metadata(
            path, text, expected_version=version, metadata=metadata, operation=operation
        )

    async def delete(self, path, right, operation):
        version = await self.expected(path, right)
        return await self.store.delete(path, expected_version=version, operation=operation)

    async def read(self, path, most):
        return await self.store.read(path, max_chars=most)

    async def get_operation(self, operation):
        return await self.store.get_operation(operation)

    async def list_paths(self, prefix, limit):
        return await self.store.list_paths(prefix, limit=limit)

    async def search(self, prefix, query, limit, files, characters):
        most = {"limit": limit, "max_files": files, "max_chars": 40, "max_file_chars": characters}
        return await self.store.search(prefix, query, **most)

    async def outcome(self, name, *arguments):
        try:
            return self.told(await getattr(self, name)(*arguments))
        except (ValueError, TypeError, MemoryConflictError, MemoryOperationConflictError) as error:
            return type(error), str(error)


@settings(max_examples=200, deadline=None)
@given(calls=st.lists(CALLS, max_size=16), plain=st.booleans())
def test_it_answers_as_the_store_of_the_harness(calls, plain):
    async def both():
        inner = Plain(InMemoryStore()) if plain else InMemoryStore()
        ours, theirs = Driven(LocusMemoryStore(inner)), Driven(Theirs())
        for call in calls:
            assert await ours.outcome(*call) == await theirs.outcome(*call), call

    asyncio.run(both())


def test_it_is_each_kind_of_store():
    store = LocusMemoryStore("memory")
    for kind in (MemoryStore, MetadataMemoryStore, SearchableMemoryStore):
        assert isinstance(store, kind)


async def test_an_agent_remembers(store):
    model = TestModel(call_tools=["write_memory"], custom_output_text="Noted.")
    agent = Agent(model, capabilities=[Memory(store)])
    await agent.run("Remember that I like tea.")
    assert await store.list_paths(limit=10) != []


async def test_of_two_writes_at_once_one_is_refused(store):
    done = await asyncio.gather(
        *(store.write("a", f"{n}", expected_version=None) for n in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(each, MemoryMutation) for each in done) == 1
    assert sum(isinstance(each, MemoryConflictError) for each in done) == 7


async def test_an_operation_counts_once(store):
    operation = MemoryOperation(id="1", fingerprint="x")
    done = await asyncio.gather(
        *(store.write("a", "x", expected_version=None, operation=operation) for _ in range(8))
    )
    assert sum(not each.replayed for each in done) == 1
    assert len({each.version for each in done}) == 1


@pytest.mark.parametrize(
    ("content", "operation", "field"),
    [
        (7, None, "content"),
        ("\ud800", None, "content"),
        ("x", MemoryOperation(id="", fingerprint="x"), r"operation\.id"),
        ("x", MemoryOperation(id="1", fingerprint=None), r"operation\.fingerprint"),
    ],
)
async def test_what_cannot_be_held(store, content, operation, field):
    with pytest.raises(InvalidArgumentError, match=field):
        await store.write("a", content, expected_version=None, operation=operation)
    assert await store.list_paths(limit=10) == []


async def test_a_damaged_file_is_left_out_and_replaced():
    inner = InMemoryStore()
    store = LocusMemoryStore(EncryptingStore(inner, {"k": b"0" * 32}, active="k"))
    await store.write("a", "x", expected_version=None)
    await store.write("b", "y", expected_version=None)
    other = EncryptingStore(inner, {"k": b"1" * 32}, active="k")
    await other.put(("pydantic_ai_memory", "files"), "a", {})
    with collect() as events:
        assert await store.read("a", max_chars=9) is None
        assert await store.list_paths(limit=9) == ["b"]
    assert {each.name for each in events} == {"integrations.item_unreadable"}
    await store.write("a", "z", expected_version=None)
    assert (await store.read("a", max_chars=9)).content == "z"
