from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import threading
import weakref

import pytest

from locus_memory.backends.loops import LoopLocal, PerLoop, close_elsewhere, until_the_loop_ends
from locus_memory.errors import BackendClosedError


class Held:
    def __init__(self, *, ended=False, error=None):
        self.ended = ended
        self.error = error
        self.log = []

    def has_ended(self):
        return self.ended

    def abandon(self):
        self.log.append("abandoned")

    async def close(self):
        await asyncio.sleep(0)
        self.log.append(f"closed in {threading.current_thread().name}")
        if self.error is not None:
            raise self.error


@pytest.fixture
def elsewhere():
    """An event loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="elsewhere")
    thread.start()
    while not loop.is_running():
        pass
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_it_is_closed_in_its_own_loop(elsewhere):
    held = Held()
    assert close_elsewhere(elsewhere, held).result(10) is None
    assert held.log == ["closed in elsewhere"]


def test_what_closed_itself_gets_no_task(elsewhere):
    """Nor a coroutine that nobody awaits: warnings are errors here."""
    held = Held(ended=True)
    assert close_elsewhere(elsewhere, held).result(10) is None
    assert held.log == []


def test_its_error_comes_through(elsewhere):
    with pytest.raises(OSError, match="no route"):
        close_elsewhere(elsewhere, Held(error=OSError("no route"))).result(10)


def test_whoever_waits_may_give_up(elsewhere):
    held = Held()
    close_elsewhere(elsewhere, held).cancel()
    assert close_elsewhere(elsewhere, Held()).result(10) is None


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_loop_that_does_not_run_is_not_waited_for(is_closed):
    loop, held = asyncio.new_event_loop(), Held()
    if is_closed:
        loop.close()
    assert close_elsewhere(loop, held).result(10) is None
    assert held.log == ["abandoned"]
    loop.close()


class TestPerLoop:
    async def test_calls_that_come_at_once_share_what_is_opened(self):
        held, opened = PerLoop("db"), []

        async def opening():
            await asyncio.sleep(0)
            opened.append(Held())
            return opened[-1]

        assert held.here() is None
        found = await asyncio.gather(*(held.opened(opening) for _ in range(5)))
        assert found == opened * 5
        assert held.here() is opened[0]

    async def test_they_share_a_failure_and_the_next_call_tries_again(self):
        held, attempts = PerLoop("db"), []

        async def opening():
            attempts.append(1)
            await asyncio.sleep(0)
            raise OSError("no route")

        for number in (1, 2):
            calls = (held.opened(opening) for _ in range(5))
            failures = await asyncio.gather(*calls, return_exceptions=True)
            assert {str(each) for each in failures} == {"no route"}
            assert len(attempts) == number
        assert not held.is_open()

    async def test_a_failure_is_not_kept_once_it_is_told(self):
        held = PerLoop("db")

        class Kept:
            pass

        async def fail():
            kept = Kept()
            seen.append(weakref.ref(kept))
            await held.opened(opening)

        async def opening():
            await asyncio.sleep(0)
            raise OSError("no route")

        seen = []
        await asyncio.gather(*(fail() for _ in range(3)), return_exceptions=True)
        # The event loop lets go of what it did last.
        await asyncio.sleep(0)
        gc.collect()
        assert [each() for each in seen] == [None] * 3

    async def test_a_cancelled_call_leaves_the_opening_to_the_next(self):
        held, made, go_on = PerLoop("db"), [Held()], asyncio.Event()

        async def opening():
            await go_on.wait()
            return made.pop()

        first, second = (asyncio.create_task(held.opened(opening)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        go_on.set()
        assert isinstance(await second, Held)
        assert first.cancelled()

    async def test_closing_reaches_every_loop_and_refuses_later_calls(self, elsewhere):
        held, here, there = PerLoop("db"), Held(), Held()

        async def opening(each):
            return each

        await held.opened(lambda: opening(here))
        in_thread = asyncio.run_coroutine_threadsafe(held.opened(lambda: opening(there)), elsewhere)
        await asyncio.wrap_future(in_thread)
        assert (len(held._held()), held.is_open(), held.is_closed) == (2, True, False)
        await held.close(10)
        assert here.log == ["closed in MainThread"]
        assert there.log == ["closed in elsewhere"]
        assert (len(held._held()), held.is_open(), held.is_closed) == (0, False, True)
        for call in (held.opened(lambda: opening(here)), asyncio.to_thread(held.here)):
            with pytest.raises(BackendClosedError, match=r"^db: used after close"):
                await call
        await held.close()

    async def test_what_is_opened_while_it_is_closed_is_closed(self):
        held, late, go_on = PerLoop("db"), Held(), asyncio.Event()

        async def opening():
            await go_on.wait()
            return late

        call = asyncio.create_task(held.opened(opening))
        await asyncio.sleep(0)
        await held.close()
        go_on.set()
        with pytest.raises(BackendClosedError):
            await call
        assert late.log == ["closed in MainThread"]

    def test_a_loop_that_was_closed_is_abandoned(self):
        held, made = PerLoop("db"), []

        async def opening():
            made.append(Held())
            return made[-1]

        for _ in range(3):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(held.opened(opening))
            loop.close()
        assert [each.log for each in made] == [["abandoned"], ["abandoned"], []]
        assert len(held._held()) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
    def test_a_child_of_a_fork_leaves_what_its_parent_has_alone(self):
        held, parents = PerLoop("db"), Held()

        async def opening():
            return parents

        async def in_child():
            assert held.here() is None
            await held.close(10)

        parent = asyncio.new_event_loop()
        parent.run_until_complete(held.opened(opening))
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                asyncio.run(in_child())
                os._exit(len(parents.log))
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(held._held()) == 1
        parent.close()


def test_a_value_for_each_loop():
    local = LoopLocal()

    async def get():
        return local.get(list), local.get(list)

    loops = [asyncio.new_event_loop() for _ in range(2)]
    found = [loop.run_until_complete(get()) for loop in loops]
    assert all(first is second for first, second in found)
    assert found[0][0] is not found[1][0]
    for loop in loops:
        loop.close()


def test_what_a_loop_ends_with():
    ends = []

    async def end():
        ends.append("ended")

    async def main(guard):
        await anext(guard)

    asyncio.run(main(until_the_loop_ends(end)))
    assert ends == ["ended"]
