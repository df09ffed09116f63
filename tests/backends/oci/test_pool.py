"""The calls in threads: their number, cancelled ones, closing, and other event loops."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from locus_memory.backends.oci.connection import pool as pools
from locus_memory.backends.oci.connection.pool import ThreadPool
from locus_memory.errors import BackendClosedError, BackendUnavailableError


class Clients:
    """Makes clients, and counts them."""

    def __init__(self):
        self.made = []
        self.ended = []

    def make(self):
        self.made.append(object())
        return self.made[-1]


@pytest.fixture
def clients():
    return Clients()


@pytest.fixture
async def pool(clients):
    pool = made(clients)
    yield pool
    await pool.close()


def made(clients, size=2, acquire_timeout=5.0):
    return ThreadPool(
        clients.make, clients.ended.append, size=size, acquire_timeout=acquire_timeout, place="b/n"
    )


async def test_each_call_has_a_client_of_its_own_and_there_are_so_many(clients, pool):
    def work(client):
        time.sleep(0.01)
        return client, threading.current_thread().name

    found = await asyncio.gather(*(pool.run(work, is_read=True) for _ in range(10)))
    assert {client for client, _ in found} == set(clients.made)
    assert len(clients.made) == 2
    assert pool.is_open()
    await pool.close()
    assert not pool.is_open()
    for _ in range(100):
        await asyncio.sleep(0.01)
        if len(clients.ended) == 2:
            break
    assert set(clients.ended) == set(clients.made)


async def test_errors_are_the_callers(clients, pool):
    def fail(_):
        raise LookupError("x")

    with pytest.raises(LookupError):
        await pool.run(fail, is_read=False)
    assert await pool.run(lambda _: 1, is_read=False) == 1


async def test_a_client_that_cannot_be_made_is_an_error_of_each_call():
    def fail():
        raise LookupError("no profile")

    pool = ThreadPool(fail, lambda _: None, size=1, acquire_timeout=5.0, place="b/n")
    for _ in range(3):
        with pytest.raises(LookupError):
            await pool.run(lambda _: 1, is_read=True)
    await pool.close()


async def test_a_cancelled_call_that_waits_never_begins(clients):
    pool, gate, begun = made(clients, size=1), threading.Event(), []
    first = asyncio.create_task(pool.run(lambda _: gate.wait(5), is_read=False))
    await asyncio.sleep(0.05)
    second = asyncio.create_task(pool.run(lambda _: begun.append(1), is_read=False))
    await asyncio.sleep(0.05)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.set()
    assert await first
    assert await pool.run(lambda _: 5, is_read=False) == 5
    assert not begun
    await pool.close()


@pytest.mark.slow
async def test_a_cancelled_write_that_has_begun_is_waited_for_and_a_read_is_not(clients, pool):
    ended = []

    def work(_):
        time.sleep(0.2)
        ended.append(1)

    write = asyncio.create_task(pool.run(work, is_read=False))
    await asyncio.sleep(0.05)
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    assert ended == [1]
    read = asyncio.create_task(pool.run(work, is_read=True))
    await asyncio.sleep(0.05)
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    assert ended == [1]


async def test_a_call_does_not_wait_for_ever_for_its_turn(clients):
    pool, gate = made(clients, size=1, acquire_timeout=0.1), threading.Event()
    first = asyncio.create_task(pool.run(lambda _: gate.wait(5), is_read=False))
    await asyncio.sleep(0.05)
    with pytest.raises(
        BackendUnavailableError, match=r"all 1 threads are busy, and none came back within 0\.1 s"
    ):
        await pool.run(lambda _: 1, is_read=True)
    gate.set()
    assert await first, "a call that runs longer is not refused"
    assert await pool.run(lambda _: 1, is_read=True) == 1
    await pool.close()


async def test_closing_refuses_what_waits_and_waits_for_what_runs(clients):
    pool, gate = made(clients, size=1), threading.Event()
    running = asyncio.create_task(pool.run(lambda _: gate.wait(5), is_read=False))
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(pool.run(lambda _: 1, is_read=False))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)
    with pytest.raises(BackendClosedError):
        await pool.run(lambda _: 1, is_read=True)
    gate.set()
    assert await running
    with pytest.raises(BackendClosedError):
        await waiting
    await closing


async def test_closing_does_not_wait_for_ever(clients, monkeypatch):
    monkeypatch.setattr(pools, "LONGEST_CLOSE", 0.1)
    pool, gate = made(clients, size=1), threading.Event()
    running = asyncio.create_task(pool.run(lambda _: gate.wait(5), is_read=False))
    await asyncio.sleep(0.05)
    await pool.close()
    assert not running.done()
    gate.set()
    assert await running


async def test_a_call_that_ends_after_closing_closes_its_client(clients, monkeypatch):
    monkeypatch.setattr(pools, "LONGEST_CLOSE", 0.05)
    pool, gate = made(clients, size=1), threading.Event()
    running = asyncio.create_task(pool.run(lambda _: gate.wait(5), is_read=False))
    await asyncio.sleep(0.05)
    await pool.close()
    assert not clients.ended
    gate.set()
    assert await running
    assert clients.ended == clients.made
    assert not pool.is_open()


async def test_event_loops_share_the_clients(clients, pool):
    async def work(n):
        return [await pool.run(lambda _, n=n: n, is_read=True) for _ in range(20)]

    loops = (asyncio.to_thread(asyncio.run, work(n)) for n in range(4))
    assert await asyncio.gather(*loops, work(4)) == [[n] * 20 for n in range(5)]
    assert len(clients.made) <= 5


async def test_an_event_loop_that_ends_early_harms_nobody(clients, pool):
    gate = threading.Event()

    async def leave():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await pool.run(lambda _: gate.wait(5), is_read=True)

    await asyncio.to_thread(asyncio.run, leave())
    gate.set()
    assert await pool.run(lambda _: 1, is_read=True) == 1


async def test_five_hundred_cancels_leave_the_pool_whole(clients, pool):
    for n in range(500):
        task = asyncio.create_task(pool.run(lambda _: time.sleep(0.0005), is_read=n % 2 == 0))
        for _ in range(n % 4):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await pool.run(lambda _: 1, is_read=True) == 1
    assert len(clients.made) <= 2
