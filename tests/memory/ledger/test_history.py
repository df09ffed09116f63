from __future__ import annotations

import pytest

from locus_memory.errors import BackendUnavailableError
from locus_memory.memory.models import Memory, MemoryChange, MemoryType
from locus_memory.memory.queue.jobs import Job
from locus_memory.messages import Message
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.testing import FakeEmbedder

USER, PROJECT = MemoryType.USER, MemoryType.PROJECT


def fact(content, key="city", kind=USER, **metadata):
    return Memory(kind, key, content, metadata)


async def told(manager, *words, clock=None):
    for word in words:
        await manager.save([fact(word)])
        if clock is not None:
            clock.advance(60)


async def history(manager, key="city", kind=None):
    return [memory.content for memory in await manager.history(key, kind)]


async def current(manager):
    return [memory.content for memory in await manager.retrieve()]


async def test_a_changed_fact_is_replaced_and_kept(make, clock):
    manager = make()
    await told(manager, "Oslo", "Rome", clock=clock)
    assert await current(manager) == ["Rome"]
    now, before = await manager.history("city", "user")
    assert now.metadata == {
        "valid_from": "2023-11-14T22:14:20.000000+00:00",
        "updated_at": "2023-11-14T22:14:20.000000+00:00",
        "sequence": 2,
        "supersedes": {"type": "user", "key": "city", "sequence": 1},
        "origin": "person",
    }
    assert before.content == "Oslo"
    assert before.metadata["superseded_at"] == now.metadata["valid_from"]
    assert before.metadata["superseded_by"] == {
        "change": "update",
        "type": "user",
        "key": "city",
        "sequence": 2,
    }


async def test_what_is_managed_cannot_be_forged(make):
    manager = make()
    await told(manager, "Oslo")
    (memory,) = await manager.retrieve()
    forged = {"sequence": 99, "superseded_at": "never", "supersedes": {"sequence": 7}}
    await manager.save([Memory(USER, "city", "Rome", memory.metadata | forged)])
    (now, before) = await manager.history("city")
    assert now.metadata["sequence"] == 2
    assert "superseded_at" not in now.metadata
    assert before.metadata["sequence"] == 1


async def test_the_history_is_bounded(make):
    manager = make(history_limit=3)
    await told(manager, "A1", "B2", "C3", "D4", "E5", "F6")
    assert await history(manager) == ["F6", "E5", "D4", "C3"]


async def test_no_history_if_none_is_wanted(make):
    manager = make(history_limit=0)
    await told(manager, "Oslo", "Rome")
    assert await history(manager) == ["Rome"]
    assert await manager.undo("city") is None
    assert await current(manager) == ["Rome"]


async def test_what_was_undone_is_marked(make):
    manager = make()
    await told(manager, "Oslo", "Rome")
    restored = await manager.undo("city")
    assert "superseded_at" not in restored.metadata
    (_, undone) = await manager.history("city")
    assert undone.metadata["superseded_by"]["change"] == "undo"
    assert undone.metadata["superseded_by"]["sequence"] == 1


async def test_what_no_longer_is_kept_cannot_be_brought_back(make):
    manager = make(history_limit=1)
    await told(manager, "Oslo", "Rome", "Bern")
    assert (await manager.undo("city")).content == "Rome"
    assert await manager.undo("city") is None
    assert await current(manager) == ["Rome"]


async def test_a_restored_memory_is_found_again(make):
    manager = make(embedder=FakeEmbedder())
    await told(manager, "Likes green tea", "Likes black coffee")
    await manager.undo("city")
    found = await manager.retrieve(query="tea")
    assert [memory.content for memory in found] == ["Likes green tea"]


class Breaking(StoreWrapper):
    """A store without transactions that is cut off before one of its writes."""

    capabilities = StoreCapabilities()

    def __init__(self, store):
        super().__init__(store)
        self.writes_left = 1_000_000

    def _spend(self):
        if self.writes_left == 0:
            raise BackendUnavailableError("cut off")
        self.writes_left -= 1

    async def put_batch(self, items):
        self._spend()
        return await self.inner.put_batch(items)

    async def delete(self, namespace, key, *, if_version=None):
        self._spend()
        return await self.inner.delete(namespace, key, if_version=if_version)


@pytest.mark.parametrize("writes", range(3))
@pytest.mark.parametrize("change", ["save", "undo", "delete"])
async def test_a_change_cut_off_half_way_loses_nothing(
    make, failing_store, scripted, change, writes
):
    store = Breaking(failing_store)
    delete = MemoryChange(op="delete", type=USER, key="city")
    manager = make(store=store, extract_fn=scripted([delete], [delete]))

    async def make_change():
        if change == "save":
            await told(manager, "Bern")
        elif change == "undo":
            await manager.undo("city")
        else:
            edits = (await manager._extraction.distilled(manager._scope, [job])).edits
            await manager._ledger.apply(manager._scope, edits)

    await told(manager, "Oslo", "Rome")
    job = Job.unqueued(("locus_memory",), "", [Message.user("Forget it")], manager._ledger.now())
    store.writes_left = writes
    try:
        await make_change()
        cut = False
    except BackendUnavailableError:
        cut = True
    store.writes_left = 1_000_000
    kept = await history(manager)
    assert {"Oslo", "Rome"} <= set(kept)
    assert len(kept) == len(set(kept))
    if cut and change == "save":
        await make_change()
        assert await history(manager) == ["Bern", "Rome", "Oslo"]
