"""Records that build on each other in a circle: an error, on a storage with defaults too."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.storage import DeltaStorage
from locus_memory.errors import CheckpointCorruptError

QUICKLY = 10.0


class Circling(InMemoryDeltaStorage):
    """Lets the oldest record of a thread build on the newest, as damage may."""

    retrieve_chain = DeltaStorage.retrieve_chain

    async def retrieve(self, thread_id, checkpoint_id=None):
        record = await super().retrieve(thread_id, checkpoint_id)
        heads = await self.list_checkpoints(thread_id, None)
        if record is not None and record.base is None:
            return replace(record, base=heads[0].revision)
        return record


async def test_a_circle_of_records_is_an_error():
    checkpointer = DeltaCheckpointer(Circling(), state_type=None)
    state = {"list": list(range(500))}
    for n in range(4):
        await checkpointer.save({**state, "n": n}, "t", f"c{n}")
    with pytest.raises(CheckpointCorruptError, match="builds on is missing"):
        async with asyncio.timeout(QUICKLY):
            await checkpointer.load("t")


class CirclingHeads(InMemoryDeltaStorage):
    """Tells of every record that it builds on the next newer one, and the newest on the oldest."""

    async def list_checkpoints(self, thread_id, limit=10, *, before=None):
        heads = await super().list_checkpoints(thread_id, limit, before=before)
        bases = [heads[-1], *heads[:-1]]
        return [replace(head, base=base.revision) for head, base in zip(heads, bases, strict=True)]


async def test_removing_from_a_circle_is_an_error():
    checkpointer = DeltaCheckpointer(CirclingHeads())
    for n in range(4):
        await checkpointer.save({"n": n}, "t", f"c{n}")
    with pytest.raises(CheckpointCorruptError, match="circle"):
        async with asyncio.timeout(QUICKLY):
            await checkpointer.prune("t", keep_last=1)
