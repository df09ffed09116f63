from __future__ import annotations

import asyncio
import threading

import pytest

from locus_memory.backends.loops import close_elsewhere


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
