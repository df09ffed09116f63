from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import BackendUnavailableError
from locus_memory.events import subscribe
from locus_memory.memory.extraction.thread import CONTEXT
from locus_memory.memory.layers.log import LogEntry
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.registry import get_store
from locus_memory.store.base import scan_all
from locus_memory.store.item import StoreCapabilities
from locus_memory.store.wrappers import EncryptingStore, StoreWrapper
from locus_memory.testing import FakeClock


class PlainStore(StoreWrapper):
    """A store that only promises the four verbs: no search, no transactions."""

    capabilities = StoreCapabilities()

    async def write_batch(self, operations):
        raise AssertionError("it has no transactions")


class FailingStore(StoreWrapper):
    """A store whose verbs fail as long as they are named in `failing`."""

    def __init__(self, store):
        super().__init__(store)
        self.failing = set()

    def __getattribute__(self, name):
        failing = object.__getattribute__(self, "__dict__").get("failing", ())
        if name in failing:
            raise BackendUnavailableError(f"{name} is out of order")
        return super().__getattribute__(name)


def make_store(kind, clock, folder):
    if kind == "sqlite":
        return SQLiteStore(folder / "memory.db", clock=clock)
    inner = InMemoryStore(clock=clock)
    if kind == "encrypted":
        return EncryptingStore(inner, {"k": b"k" * 16}, active="k", clock=clock)
    return PlainStore(inner) if kind == "plain" else inner


class Events(list):
    """What was emitted, in order."""

    @property
    def names(self):
        return [event.name for event in self]

    def of(self, name):
        return [event for event in self if event.name == name]


async def log_of(store, scope):
    """The entries of the log of a scope, the oldest first."""
    return [LogEntry(**item.value) async for item in scan_all(store, scope.log)]


@pytest.fixture
def events():
    """The events of the test, in order."""
    seen = Events()
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture(params=["inmemory", "plain"])
async def store(request, clock, tmp_path):
    made = make_store(request.param, clock, tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def searching(provider, clock):
    """A store that searches by words and by meaning."""
    url, options = provider
    async with get_store(url, clock=clock, **options) as made:
        yield made


@pytest.fixture
def failing_store(clock):
    return FailingStore(InMemoryStore(clock=clock))


def new_of(messages):
    """The messages that are not shown once more, for what follows them."""
    return [message for message in messages if CONTEXT not in message.metadata]


def timers(manager):
    """What lets the manager look at the threads that wait."""
    return [unit.timer for unit in manager._worker._units.values() if unit.timer is not None]


async def idle(manager):
    """Let the tasks of the worker end, without starting any."""
    while running := manager._worker._running():
        await asyncio.wait(running)


async def ring(manager):
    """Let the time of all timers be over."""
    for timer in timers(manager):
        callback, arguments = timer._callback, timer._args
        timer.cancel()
        callback(*arguments)
    await idle(manager)


class Scripted:
    """An extractor that returns what it is told to, and remembers the new messages it was given."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    async def extract(self, messages, memories):
        self.calls.append((new_of(messages), list(memories)))
        answer = self.answers.pop(0) if self.answers else ()
        if isinstance(answer, BaseException):
            raise answer
        return await answer(messages, memories) if callable(answer) else answer

    @property
    def texts(self):
        return [[message.content for message in messages] for messages, _ in self.calls]


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
async def make(store, clock):
    """Makes managers over the store, and closes them."""
    made = []

    def manager(**options):
        options = {"extract_fn": Scripted(), "clock": clock, **options}
        made.append(LLMMemoryManager(options.pop("store", store), **options))
        return made[-1]

    yield manager
    for each in made:
        await each.close()
