"""Three nodes, one of them killed under load: nothing acknowledged is lost, the client goes on."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

import pytest

from locus_memory.errors import BackendUnavailableError, MissingDriverError
from locus_memory.registry import get_checkpointer
from locus_memory.testing.servers import OpenSearchServer


@pytest.fixture
def nodes():
    with ExitStack() as stack:
        try:
            first = stack.enter_context(OpenSearchServer(heap=256))
        except MissingDriverError as error:
            pytest.skip(str(error))
        others = [stack.enter_context(OpenSearchServer(heap=256, joining=first)) for _ in range(2)]
        yield [first, *others]


@pytest.mark.slow
async def test_a_node_is_killed_under_load(nodes, prefix):
    where = "opensearch:" + ",".join(node.address for node in nodes)
    saved, failures = {}, []
    progress, stop = asyncio.Event(), asyncio.Event()

    async def work(checkpointer, thread):
        number = 0
        while not stop.is_set():
            number += 1
            state = {"thread": thread, "n": number}
            try:
                name = await checkpointer.save(state, thread)
            except BackendUnavailableError as error:
                failures.append(error)
            else:
                saved[thread, name] = state
                progress.set()

    async def saves(count):
        target, end = len(saved) + count, time.monotonic() + 120
        while len(saved) < target:
            assert time.monotonic() < end, failures[-1:]
            progress.clear()
            await asyncio.wait_for(progress.wait(), 120)

    made = get_checkpointer(where, index_prefix=prefix, replicas=2, state_type=None)
    async with made as checkpointer:
        await checkpointer.save({}, "first")
        nodes[1].call("GET", f"/_cluster/health/{prefix}*?wait_for_status=green&timeout=60s")
        tasks = [asyncio.create_task(work(checkpointer, f"t{n}")) for n in range(8)]
        await saves(200)
        # The first is the elected manager, and as a rule it has the primary shard.
        await asyncio.to_thread(nodes[0].kill)
        await saves(200)
        await asyncio.to_thread(nodes[0].start)
        await saves(100)
        stop.set()
        await asyncio.gather(*tasks)
        for (thread, name), state in saved.items():
            assert await checkpointer.load(thread, name) == state
        for number in range(8):
            names = await checkpointer.list_checkpoints(f"t{number}", 100_000)
            assert len(names) == len(set(names))
            mine = [name for thread, name in saved if thread == f"t{number}"]
            # Those that were not acknowledged may be there too.
            assert [name for name in names[::-1] if name in set(mine)] == mine
        assert len(failures) < 100
