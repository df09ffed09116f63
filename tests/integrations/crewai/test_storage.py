"""CrewAI's storage: records by vectors, scopes and categories, under its own `Memory`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("crewai", reason="it has an environment of its own: make frameworks")

from crewai.memory.storage.backend import StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory

from locus_memory import open_backend
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import ConfigurationError, InvalidEmbeddingError
from locus_memory.events import collect
from locus_memory.integrations.crewai import LocusStorage

NOW = datetime(2026, 1, 1)  # noqa: DTZ001 - as the framework writes it


@pytest.fixture
async def storages(provider):
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield lambda **given: LocusStorage(backend, **given)


def record(name, vector=(1.0, 0.0), **given):
    return MemoryRecord(
        id=name, content=f"content of {name}", embedding=list(vector), created_at=NOW, **given
    )


def ids(found):
    return [each.id if isinstance(each, MemoryRecord) else each[0].id for each in found]


def embed(texts):
    return [[1.0, float("vienna" in text.lower()), len(text) / 1000] for text in texts]


async def test_the_nearest_records_of_a_scope(storages):
    storage = storages()
    await storage.asave(
        [
            record("a", (1, 0), scope="/team/ada", categories=["x"], metadata={"k": [1]}),
            record("b", (1, 1), scope="/team", categories=["x", "y"]),
            record("c", (0, 1), scope="/teams"),
            record("d", (-1, 0), scope="/"),
        ]
    )
    assert ids(storage.search([1, 0])) == ["a", "b", "c", "d"]
    assert ids(storage.search([1, 0], "/team")) == ["a", "b"]
    assert ids(storage.search([1, 0], "team/", limit=1)) == ["a"]
    assert ids(storage.search([1, 0], categories=["y", "z"])) == ["b"]
    assert ids(storage.search([1, 0], metadata_filter={"k": [1]})) == ["a"]
    assert ids(storage.search([1, 0], min_score=0.5)) == ["a", "b"]
    assert ids(await storage.asearch([0, 1], limit=2)) == ["c", "b"]
    [(_, score)] = storage.search([1, 0], limit=1)
    assert score == pytest.approx(1)
    with pytest.raises(InvalidEmbeddingError):
        storage.search([0, 0])


async def test_scopes_and_categories(storages):
    storage = storages()
    assert storage.get_scope_info("/a").record_count == 0
    records = [
        record("1", scope="/a/b", categories=["x"]),
        record("2", scope="/a/c/d", categories=["x", "y"]),
        record("3", scope="/ab"),
        record("4", scope="/a"),
    ]
    records[1].created_at = (NOW + timedelta(days=1)).replace(tzinfo=UTC)
    storage.save(records)
    assert storage.list_scopes() == ["/a", "/ab"]
    assert storage.list_scopes("/a") == ["/a/b", "/a/c"]
    info = storage.get_scope_info("/a/")
    assert (info.path, info.record_count, info.categories) == ("/a", 3, ["x", "y"])
    assert info.child_scopes == ["/a/b", "/a/c"]
    assert (info.oldest_record, info.newest_record) == (NOW, records[1].created_at)
    assert storage.list_categories() == {"x": 2, "y": 1}
    assert storage.list_categories("/a/b") == {"x": 1}
    assert (storage.count(), storage.count("/a")) == (4, 3)
    assert ids(storage.list_records("/a"))[0] == "2"
    assert len(storage.list_records(limit=2, offset=3)) == 1


async def test_changes_and_deletions(storages):
    storage = storages()
    storage.save([record(f"{n}", scope=f"/{n % 2}", categories=[f"{n}"]) for n in range(6)])
    found = storage.get_record("1")
    found.content = "changed"
    storage.update(found)
    # It is still found by its vector.
    assert "changed" in [each.content for each, _ in storage.search([1, 0])]
    assert storage.get_record("nobody") is None
    storage.touch_records(["1", "nobody"])
    assert storage.get_record("1").last_accessed > found.last_accessed
    assert storage.count() == 6
    assert await storage.adelete(record_ids=["0", "nobody"]) == 1
    assert storage.delete(scope_prefix="/1", categories=["1", "2"]) == 1
    assert storage.delete(older_than=NOW) == 0
    assert (
        storage.delete(scope_prefix="/0", older_than=(NOW + timedelta(1)).replace(tzinfo=UTC)) == 2
    )
    assert sorted(ids(storage.list_records())) == ["3", "5"]
    storage.reset("/0")
    assert storage.count() == 2
    storage.reset()
    assert (storage.count(), storage.search([1, 0])) == (0, [])


async def test_a_damaged_record_is_left_out():
    store = InMemoryStore()
    storage = LocusStorage(store)
    storage.save([record("a")])
    for number, value in enumerate([{}, 5, {"content": 1}]):
        await store.put_with_embedding(("crewai_memory",), f"{number}", value, [1.0, 0.0])
    with collect() as events:
        assert ids(storage.search([1, 0])) == ids(storage.list_records()) == ["a"]
        assert storage.get_record("0") is None
    assert {each.name for each in events} == {"integrations.item_unreadable"}
    storage.reset()
    assert await store.list_keys(("crewai_memory",)) == []


async def test_their_memory_remembers(tmp_path):
    for _ in range(2):
        memory = Memory(
            storage=LocusStorage(f"sqlite:{tmp_path}/a.db"), embedder=embed, llm="gpt-4o"
        )
        memory.remember(
            "Ada lives in Vienna.", scope="/ada", categories=["home"], importance=0.5, metadata={}
        )
        memory.remember("Bob likes tea.", scope="/bob", categories=[], importance=0.5, metadata={})
        memory.drain_writes()
        found = memory.recall("vienna", depth="shallow", scope="/ada")
        assert found[0].record.content == "Ada lives in Vienna."
        assert memory.list_scopes("/") == ["/ada", "/bob"]
        memory.forget(scope="/bob")
        assert memory.info("/bob").record_count == 0
        memory.close()


def test_it_works_from_threads_and_event_loops():
    storage = LocusStorage("memory")
    assert isinstance(storage, StorageBackend)

    async def inside():
        storage.save([record("a")])
        return await asyncio.gather(*(storage.asearch([1, 0]) for _ in range(3)))

    assert [ids(each) for each in asyncio.run(inside())] == [["a"]] * 3
    assert storage.count() == 1
    storage.close()
    with pytest.raises(ConfigurationError):
        LocusStorage("file:./x")
