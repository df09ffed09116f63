"""Handles close their store exactly once, and never before the last release."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import BackendClosedError, MemoryBackendError, MemoryStoreClosed
from locus_memory.resources.backends.base import MemoryStoreSpec
from locus_memory.resources.backends.local import LocalMemoryBackend
from locus_memory.resources.operations import MemoryOpRead
from locus_memory.sync import blocking


class Counting(LocalMemoryBackend):
    """The local backend, with a count of what it closed."""

    closed = 0

    async def discard(self, resource):
        self.closed += 1
        await super().discard(resource)


def collect(handles):
    handles.clear()
    gc.collect()


def in_memory(**options):
    return MemoryStoreSpec(options={"store": InMemoryStore(), **options})


@pytest.mark.slow
@given(st.lists(st.booleans(), max_size=40))
def test_any_interleaving_closes_once_and_after_the_last_release(steps):
    async def live():
        backend = Counting()
        handle = await backend.open(in_memory())
        count, is_closed = 0, False
        for acquires in steps:
            if acquires and not is_closed:
                assert handle.acquire() is handle
                count += 1
            elif acquires:
                with pytest.raises(MemoryStoreClosed):
                    handle.acquire()
            elif count:
                await handle.release()
                count -= 1
                is_closed = count == 0
            else:
                with pytest.raises(MemoryBackendError):
                    await handle.release()
            assert (handle.refcount, handle.is_closed) == (count, is_closed)
            assert (backend.closed, backend.store_count()) == (int(is_closed), int(not is_closed))
        if not is_closed:
            handle.acquire()
            for _ in range(count + 1):
                await handle.release()
        with pytest.raises(MemoryStoreClosed):
            await handle.dispatch(MemoryOpRead("memory://a"))
        with pytest.raises(BackendClosedError):
            await handle.read("memory://a")
        await backend.close(handle)
        assert backend.store_count() == 0

    asyncio.run(live())


async def test_many_tasks_and_threads_share_one_handle():
    backend = Counting()
    handle = (await backend.open(in_memory())).acquire()

    async def use(n):
        async with handle as same:
            await same.write(f"memory://{n}", "text")

    def use_in_a_thread(n):
        asyncio.run(use(n))

    with ThreadPoolExecutor(8) as pool:
        loop = asyncio.get_running_loop()
        await asyncio.gather(
            *(loop.run_in_executor(pool, use_in_a_thread, n) for n in range(20)),
            *(use(100 + n) for n in range(20)),
        )
    assert (handle.refcount, backend.closed) == (1, 0)
    assert len((await handle.list()).entries) == 40
    await handle.release()
    assert backend.closed == 1


def test_a_blocking_face_counts_as_well():
    with (
        blocking(LocalMemoryBackend().__class__())
        if False
        else blocking(asyncio.run(LocalMemoryBackend().open(in_memory()))) as handle
    ):
        assert handle.refcount == 1
        handle.write("memory://a", "text")
        assert handle.read("memory://a").data == "text"
    assert handle.is_closed


@pytest.mark.slow
@pytest.mark.parametrize("is_held", [False, True])
async def test_a_handle_that_is_collected_closes_and_warns(is_held):
    backend = Counting()
    handles = [await backend.open(in_memory())]
    if is_held:
        handles[0].acquire()
    with pytest.warns(ResourceWarning, match="collected while it was open"):
        collect(handles)
    await asyncio.sleep(0.01)
    assert (backend.closed, backend.store_count()) == (1, 0)


def test_a_handle_of_a_loop_that_ended_is_closed_as_well():
    backend = Counting()
    handles = [asyncio.run(backend.open(in_memory()))]
    with pytest.warns(ResourceWarning):
        collect(handles)
    assert (backend.closed, backend.store_count()) == (1, 0)


async def test_the_handle_says_who_it_is():
    handle = await LocalMemoryBackend().open(in_memory())
    async with handle:
        assert "refcount=1" in repr(handle)
        assert handle.backend_name == "local"
    assert "closed" in repr(handle)
