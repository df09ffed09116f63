from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from locus_memory import (
    Agent,
    BlockingCallError,
    Bridge,
    LLMMemoryManager,
    ScriptedModel,
    SlidingWindowManager,
    VersionConflictError,
    blocking,
    get_checkpointer,
    get_store,
    open_backend,
)
from locus_memory.messages import Message


@pytest.fixture
def bridge():
    with Bridge() as made:
        yield made


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path, bridge):
    where = "memory" if request.param == "memory" else f"sqlite:{tmp_path / 'a.db'}"
    with blocking(get_store(where), bridge=bridge) as made:
        yield made


def test_a_store_blocks(store):
    """Verbs, their errors and what they return are those of the store."""
    assert store.put(("users", "ada"), "tea", {"likes": "oolong"}) == 1
    assert store.get(("users", "ada"), "tea") == {"likes": "oolong"}
    assert [hit.key for hit in store.search(("users", "ada"), "oolong")] == ["tea"]
    assert store.capabilities.search
    with pytest.raises(VersionConflictError):
        store.put(("users", "ada"), "tea", None, if_version=7)


def test_many_threads_share_one_face(store):
    """Calls of several threads run side by side, and none is lost."""
    with ThreadPoolExecutor(8) as pool:
        versions = sorted(pool.map(lambda n: store.put(("n",), "k", n), range(64)))
    assert versions == list(range(1, 65))


def test_a_checkpointer_blocks(tmp_path, bridge):
    where = f"sqlite:{tmp_path / 'a.db'}"
    with blocking(get_checkpointer(where, state_type=None), bridge=bridge) as checkpointer:
        first = checkpointer.save({"n": 1}, "t")
        checkpointer.save({"n": 2}, "t")
        assert checkpointer.load("t") == {"n": 2}
        assert checkpointer.load("t", first) == {"n": 1}


def test_what_a_backend_has_is_blocking_too(bridge):
    with blocking(open_backend("memory"), bridge=bridge) as backend:
        backend.store.put(("a",), "k", 1)
        assert backend.store.get(("a",), "k") == 1
        assert backend.checkpointer.load("t") is None


def test_managers_block(bridge):
    store = get_store("memory")
    manager = blocking(LLMMemoryManager(store, extract_fn=lambda _: []), bridge=bridge)
    manager.save([])
    assert manager.retrieve() == []
    window = blocking(SlidingWindowManager(window_size=1), bridge=bridge)
    assert len(window.async_apply([Message.user("a"), Message.user("b")])) == 1


def test_an_agent_blocks(bridge):
    agent = blocking(Agent(model=ScriptedModel(["hello"])), bridge=bridge)
    assert agent.run("hi").text == "hello"


def test_a_stream_is_an_ordinary_iterator(bridge):
    """It is closed in the event loop, also by whoever does not read it to its end."""
    closed = []

    class Source:
        async def numbers(self):
            try:
                for number in range(3):
                    await asyncio.sleep(0)
                    yield number
            finally:
                closed.append(threading.current_thread().name)

    source = blocking(Source(), bridge=bridge)
    assert list(source.numbers()) == [0, 1, 2]
    begun = source.numbers()
    assert next(begun) == 0
    begun.close()
    assert closed == ["locus-memory-bridge"] * 2


@pytest.mark.slow
async def test_inside_an_event_loop_it_refuses(store):
    """The error says what to do instead, and nothing is left that was never awaited."""
    with pytest.raises(BlockingCallError, match="await the original"):
        store.put(("a",), "k", 1)
    assert await asyncio.to_thread(store.get, ("a",), "k") is None
    gc.collect()


def test_a_blocking_call_inside_its_own_bridge_is_refused(bridge):
    """It would wait for itself."""
    store = blocking(get_store("memory"), bridge=bridge)

    async def inside():
        return store.get(("a",), "k")

    with pytest.raises(BlockingCallError):
        bridge.run(inside())
    with pytest.raises(BlockingCallError, match="thread it runs in"):
        bridge.run(asyncio.to_thread(lambda: bridge.run(_close_inside(bridge))))


async def _close_inside(bridge):
    bridge.close()


def test_a_call_that_is_cancelled_from_within_is_not_taken_for_a_closed_bridge(bridge):
    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(CancelledError):
        bridge.run(cancelled())
    assert bridge.run(asyncio.sleep(0, 7)) == 7


def test_after_close_it_refuses(bridge):
    bridge.run(asyncio.sleep(0))
    bridge.close()
    bridge.close()
    with pytest.raises(BlockingCallError, match="closed"):
        bridge.run(asyncio.sleep(0))


def test_closing_ends_calls_that_still_run(bridge):
    """Whoever waits for one is told, and no task is left pending."""
    started, failed = threading.Event(), []

    async def endless():
        started.set()
        await asyncio.Event().wait()

    def wait():
        try:
            bridge.run(endless())
        except BlockingCallError as error:
            failed.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    started.wait(10)
    bridge.close()
    thread.join(10)
    assert failed == ["the bridge was closed while a call was running"]


def test_context_variables_are_those_of_the_caller(bridge):
    user = contextvars.ContextVar("user")
    user.set("ada")

    async def read():
        await asyncio.sleep(0)
        return user.get()

    assert bridge.run(read()) == "ada"


def test_private_attributes_stay_private(bridge):
    face = blocking(get_store("memory"), bridge=bridge)
    with pytest.raises(AttributeError):
        face._anything  # noqa: B018
    assert "put" in dir(face)
    assert repr(face).startswith("blocking(InMemoryStore")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_has_a_bridge_of_its_own(tmp_path):
    """The thread of the parent is not there, and the child does not wait for it."""
    code = f"""
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from locus_memory import blocking, get_store
store = blocking(get_store("sqlite:{tmp_path / "f.db"}"))
store.put(("a",), "k", 1)
child = os.fork()
if child == 0:
    with blocking(get_store("sqlite:{tmp_path / "f.db"}")) as mine:
        print(mine.get(("a",), "k"), flush=True)
    os._exit(0)
os.waitpid(child, 0)
store.close()
"""
    assert run(code) == "1"


def test_the_shared_bridge_ends_with_the_process():
    """A program that closes nothing ends, and says nothing, though its loop has used threads."""
    assert (
        run(
            "from locus_memory import blocking, get_store;"
            "s = blocking(get_store('memory')); s.put(('a',), 'k', ['x' * 1_000] * 5_000);"
            "print(len(s.get(('a',), 'k')))"
        )
        == "5000"
    )


# On a busy machine asyncio's debug mode also tells of steps that took long, as a warning.
QUIET = "import logging; logging.getLogger('asyncio').setLevel(logging.ERROR)\n"


def run(code):
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", QUIET + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.strip()
