"""A host whose process is suspended: it is reached, and never answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import contextmanager, suppress

import pytest

from integration.machines.postgresql_servers import pair
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


async def test_writers_are_back_after_a_promotion():
    loop = asyncio.get_running_loop()
    with pair() as servers:
        async with get_store(servers.url, command_timeout=3, connect_timeout=6) as store:
            written = []
            tasks = [asyncio.create_task(writer(store, n, written)) for n in range(8)]
            await asyncio.sleep(1)
            assert {number for _, number, _ in written} == set(range(8))
            with suspended(servers.primary):
                await asyncio.sleep(5)
                await asyncio.to_thread(servers.promote)
                promoted = loop.time()
                async with asyncio.timeout(BACK):
                    while {n for at, n, _ in written if at > promoted} != set(range(8)):
                        await asyncio.sleep(0.05)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for _, number, count in written:
                    assert await store.get(("w", f"{number}"), f"{count}") == count
                # A new process finds the primary as well.
                async with asyncio.timeout(BACK), get_store(servers.url) as again:
                    assert await again.exists(("w", "0"), "0")
