"""A host whose process is suspended: it is reached, and never answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import contextmanager, suppress

import pytest

from integration.machines.postgresql_servers import pair
from integration.machines.redis_servers import cluster, facts, watched
from locus_memory.errors import BackendUnavailableError
from locus_memory.registry import get_store

pytestmark = pytest.mark.slow

BACK = 10
"""Seconds from a promotion until all writers are back."""


def processes_of(process):
    """Return a process and those that it started."""
    found, left = [], [process]
    while left:
        found.append(left.pop())
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(found[-1])],
            capture_output=True,
            text=True,
            check=False,
        )
        left += map(int, listed.stdout.split())
    return found


@contextmanager
def suspended(server):
    """Suspend a server with all of its processes."""
    processes = processes_of(server._process.pid)
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in processes_of(server._process.pid) + processes:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


async def writer(store, number, written):
    """Write until cancelled, and note the moment of each acknowledged write."""
    loop, count = asyncio.get_running_loop(), 0
    while True:
        try:
            await store.put(("w", f"{number}"), f"{count}", count)
        except BackendUnavailableError:
            await asyncio.sleep(0.05)
        else:
            written.append((loop.time(), number, count))
            count += 1


class Writers:
    """Eight writers that go on until they are stopped."""

    def __init__(self, store):
        self.store = store
        self.written = []
        self.tasks = [asyncio.create_task(writer(store, n, self.written)) for n in range(8)]

    async def all_since(self, moment, seconds):
        """Wait until each has written after a moment."""
        async with asyncio.timeout(seconds):
            while {n for at, n, _ in self.written if at > moment} != set(range(8)):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)

    async def stop(self):
        """Stop them; return what they wrote."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return [(("w", f"{number}"), f"{count}") for _, number, count in self.written]


async def test_writers_are_back_after_a_promotion_of_postgresql():
    loop = asyncio.get_running_loop()
    with pair() as servers:
        async with get_store(servers.url, command_timeout=3, connect_timeout=6) as store:
            writers = Writers(store)
            await writers.all_since(0, BACK)
            with suspended(servers.primary):
                await asyncio.sleep(5)
                await asyncio.to_thread(servers.promote)
                await writers.all_since(loop.time(), BACK)
                for name in await writers.stop():
                    assert await store.exists(*name)
                # A new process finds the primary as well.
                async with asyncio.timeout(BACK), get_store(servers.url) as again:
                    assert await again.exists(("w", "0"), "0")


async def promoted(servers):
    """Wait until one of these servers of Redis is a primary."""
    while True:
        for server in servers:
            found = await asyncio.to_thread(facts, server, "INFO", "replication")
            if found["role"] == "master":
                return
        await asyncio.sleep(0.05)


async def test_writers_are_back_after_a_promotion_by_sentinels():
    loop = asyncio.get_running_loop()
    with watched() as servers:
        options = {"command_timeout": 2, "connect_timeout": 4}
        async with get_store(servers.url, **options) as store:
            writers = Writers(store)
            await writers.all_since(0, BACK)
            with suspended(servers.servers[0]), suspended(servers.sentinels[0]):
                async with asyncio.timeout(60):
                    await promoted(servers.servers[1:])
                await writers.all_since(loop.time(), BACK)
                await writers.stop()
                async with asyncio.timeout(BACK), get_store(servers.url) as again:
                    assert await again.exists(("w", "0"), "0")


async def test_writers_are_back_after_a_promotion_in_a_cluster():
    loop = asyncio.get_running_loop()
    with cluster() as servers:
        options = {"command_timeout": 2, "connect_timeout": 6}
        async with get_store(servers.url, **options) as store:
            writers = Writers(store)
            await writers.all_since(0, BACK)
            with suspended(servers.primaries[0]):
                async with asyncio.timeout(60):
                    await promoted(servers.replicas)
                await writers.all_since(loop.time(), BACK)
                await writers.stop()
                for _ in range(4):
                    # The first of the seeds is silent.
                    async with asyncio.timeout(BACK), get_store(servers.url) as again:
                        assert await again.exists(("w", "0"), "0")
