"""From a verb to the driver are few functions of this package, as `docs/architecture.md` says."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import locus_memory
from locus_memory import Agent, AgentState, Message, ScriptedModel, open_backend

ROOT = str(Path(locus_memory.__file__).parent)
ASKS = {"fetch", "fetchrow", "fetchval", "execute", "executemany", "send_packed_command"}
"""What drivers are asked by."""

MOST = {"memory": 10, "sqlite": 17, "postgresql": 10, "redis": 15}
"""On SQLite this is the way to the thread of the file, and in it."""

MOST_OF_A_RUN = 15
STATE = AgentState().with_message(Message.user("Where is the boat?"))
VERBS = {
    "put": lambda backend: backend.store.put(("boats",), "petrel", {"length": 8}),
    "get": lambda backend: backend.store.get(("boats",), "petrel"),
    "search": lambda backend: backend.store.search(("boats",), "length"),
    "save": lambda backend: backend.checkpointer.save(STATE, "t"),
    "load": lambda backend: backend.checkpointer.load("t"),
}


def own_frames(frame):
    """Return the functions of the package that have led to a frame, the first one first."""
    names = []
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(ROOT):
            names.append(f"{code.co_filename[len(ROOT) + 1 :]}: {code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


class Watch:
    """Notes what has led to each call of a driver, on the event loop and in threads of ours."""

    def __init__(self):
        self.loop = threading.get_ident()
        self.on_loop, self.in_threads = [], []

    def __call__(self, frame, event, argument):
        called = frame.f_back if event == "call" else frame
        if called is None or not called.f_code.co_filename.startswith(ROOT):
            return
        name = frame.f_code.co_name if event == "call" else getattr(argument, "__name__", "")
        if event == "call":
            is_asked = name in ASKS and not frame.f_code.co_filename.startswith(ROOT)
        else:
            owner = type(getattr(argument, "__self__", None)).__module__
            is_asked = event == "c_call" and (
                owner == "_queue" or (owner == "sqlite3" and name in ASKS)
            )
        if is_asked:
            here = threading.get_ident() == self.loop
            (self.on_loop if here else self.in_threads).append(own_frames(called))

    @contextmanager
    def of_the_loop(self):
        self.on_loop.clear()
        self.in_threads.clear()
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


@pytest.fixture
def watch():
    made = Watch()
    # Threads that are started from here on.
    threading.setprofile(made)
    yield made
    threading.setprofile(None)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_is_near_its_driver(watch, provider, verb):
    where, options = provider
    async with open_backend(where, **options) as backend:
        for call in VERBS.values():
            await call(backend)
        with watch.of_the_loop():
            await VERBS[verb](backend)
    name = where.partition(":")[0]
    assert watch.on_loop or name == "memory"
    paths = [max(found, key=len, default=[]) for found in (watch.on_loop, watch.in_threads)]
    assert sum(map(len, paths)) <= MOST[name], "\n".join(["", *paths[0], "--", *paths[1]])


async def test_the_memory_of_a_run_is_near_its_agent(watch, tmp_path):
    where = f"sqlite:{tmp_path / 'memory.db'}"
    async with Agent(ScriptedModel(), memory_manager=where) as agent:
        await agent.run("I live in Vienna.", "monday", user_id="ada")
        with watch.of_the_loop():
            await agent.run("Where do I live?", "tuesday", user_id="ada")
    first = watch.on_loop[0]
    asking = [each for each in first if not each.startswith("backends/")]
    assert asking[-1].startswith("memory/")
    assert len(asking) <= MOST_OF_A_RUN, "\n".join(["", *first])
