"""A storage of the Locus SDK, of four verbs, is a storage of the checkpointer."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.checkpoint import (
    CheckpointMetadata,
    DeltaCheckpoint,
    DeltaCheckpointer,
    DeltaStorage,
)
from locus_memory.checkpoint.four_verbs import FourVerbStorage
from locus_memory.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    InvalidArgumentError,
)
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import CheckpointerConformance


class DictStorage(DeltaStorage):
    """As the Locus SDK's pages write one: what is kept by name, listed by moments."""

    persistent = False

    def __init__(self):
        self.kept = {}

    async def store(self, thread_id, checkpoint_id, checkpoint):
        self.kept.setdefault(thread_id, {})[checkpoint_id] = checkpoint

    async def retrieve(self, thread_id, checkpoint_id):
        return self.kept.get(thread_id, {}).get(checkpoint_id)

    async def list_checkpoints(self, thread_id, limit=10):
        found = [each.metadata for each in list(self.kept.get(thread_id, {}).values())]
        return sorted(found, key=lambda each: each.created_at, reverse=True)[:limit]

    async def delete(self, thread_id, checkpoint_id=None):
        if checkpoint_id is None:
            return self.kept.pop(thread_id, None) is not None
        return self.kept.get(thread_id, {}).pop(checkpoint_id, None) is not None


class TestFourVerbStorage(CheckpointerConformance):
    def make_checkpointer(self, clock, tmp_path, **options):
        return DeltaCheckpointer(DictStorage(), clock=clock, **options)


def state_of(count):
    return AgentState(messages=[Message.user(f"message {number}") for number in range(count)])


async def test_what_it_keeps_is_what_the_sdk_says():
    storage = DictStorage()
    checkpointer = DeltaCheckpointer(storage, max_chain_depth=5)
    for count in range(1, 9):
        await checkpointer.save(state_of(count), "t", f"c{count}")
    found = await storage.list_checkpoints("t")
    assert [each.checkpoint_id for each in found] == [f"c{count}" for count in range(8, 0, -1)]
    first = found[-1]
    assert (first.is_full, first.chain_depth, first.parent_id) == (True, 0, None)
    known = {each.checkpoint_id: each for each in found}
    for each in found:
        kept = await storage.retrieve("t", each.checkpoint_id)
        assert isinstance(kept, DeltaCheckpoint)
        assert kept.metadata == each
        assert kept.is_delta is not each.is_full
        assert kept.compression_ratio == each.size_bytes / each.compressed_size_bytes
        if not each.is_full:
            assert each.chain_depth == known[each.parent_id].chain_depth + 1 <= 5
    fresh = DeltaCheckpointer(storage)
    assert len((await fresh.load("t")).messages) == 8
    assert len((await fresh.load("t", "c3")).messages) == 3


async def test_its_threads_are_listed():
    storage = DictStorage()
    checkpointer = DeltaCheckpointer(storage)
    for name in ("b", "a", "c"):
        await checkpointer.save(state_of(1), name)
    await checkpointer.delete("b")
    assert await DeltaCheckpointer(storage).list_threads() == ["a", "c"]
    with pytest.raises(NotImplementedError):
        await storage.list_threads()


async def test_bytes_of_somebody_else_are_damage():
    storage = DictStorage()
    await storage.store("t", "c", DeltaCheckpoint(CheckpointMetadata("c", "t"), b"{}\nx"))
    with pytest.raises(CheckpointCorruptError, match="no record"):
        await DeltaCheckpointer(storage).load("t")


def test_a_checkpoint_of_nothing_has_a_ratio():
    assert DeltaCheckpoint(CheckpointMetadata("c", "t"), b"").compression_ratio == 1.0


async def test_a_storage_that_is_no_subclass_works():
    class Plain:
        store, retrieve = DictStorage.store, DictStorage.retrieve
        list_checkpoints, delete = DictStorage.list_checkpoints, DictStorage.delete
        __init__ = DictStorage.__init__

    async with DeltaCheckpointer(Plain()) as checkpointer:
        assert isinstance(checkpointer.storage, FourVerbStorage)
        await checkpointer.save(state_of(2), "t")
        assert len((await checkpointer.load("t")).messages) == 2


async def test_those_who_share_a_storage_take_turns():
    class Slow(DictStorage):
        async def list_checkpoints(self, thread_id, limit=10):
            await asyncio.sleep(0)
            return await super().list_checkpoints(thread_id, limit)

    storage = Slow()
    first, other = DeltaCheckpointer(storage), DeltaCheckpointer(storage)
    await first.save(state_of(1), "t", "c0")
    saved = await asyncio.gather(
        first.save(state_of(2), "t", "c1", expected_parent="c0"),
        other.save(state_of(3), "t", "c2", expected_parent="c0"),
        return_exceptions=True,
    )
    assert {type(each) for each in saved} == {str, CheckpointConflictError}
    assert [each.sequence for each in await other.list_with_metadata("t")] == [2, 1]


async def test_a_storage_may_name_its_arguments_as_it_likes():
    class Other(DictStorage):
        async def store(self, thread, name, kept):
            await super().store(thread, name, kept)

    checkpointer = DeltaCheckpointer(Other())
    await checkpointer.save(state_of(2), "t")
    assert len((await checkpointer.load("t")).messages) == 2


async def test_a_damaged_thread_can_be_deleted():
    storage = DictStorage()
    checkpointer = DeltaCheckpointer(storage)
    for count in range(1, 4):
        await checkpointer.save(state_of(count), "t", f"c{count}")
    storage.kept["t"]["c2"].data = b"damage"
    assert await DeltaCheckpointer(storage).delete("t")
    assert await checkpointer.list_threads() == []
    assert "t" not in storage.kept


async def test_no_thread_is_saved_over_the_list_of_threads():
    checkpointer = DeltaCheckpointer(DictStorage())
    await checkpointer.save(state_of(1), "t")
    with pytest.raises(InvalidArgumentError, match="keeps its threads"):
        await checkpointer.save(state_of(1), "locus_memory.threads")
    for verb in (checkpointer.delete, checkpointer.load, checkpointer.list_checkpoints):
        with pytest.raises(InvalidArgumentError, match="keeps its threads"):
            await verb("locus_memory.threads")
    assert await checkpointer.list_threads() == ["t"]
