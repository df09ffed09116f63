"""Threads that wait for more messages, or for their extractor to work again."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.messages import Message
from locus_memory.state import AgentState
from tests.memory.conftest import timers


def run_of(*texts):
    messages = tuple(Message.user(text) for text in texts)
    return AgentState(messages=messages, metadata={"thread_id": "t"})


class Heard:
    """An extractor that fails as often as it is told, and tells when it did not."""

    name = "heard"

    def __init__(self, failures=0):
        self.failures = failures
        self.texts = []
        self.worked = asyncio.Event()

    async def extract(self, messages, memories):
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        self.texts.append([message.content for message in messages])
        self.worked.set()
        return []


async def test_a_quiet_thread_does_not_wait_for_more(make):
    heard = Heard()
    manager = make(extract_fn=heard, extract_mode="session_end", session_idle=0)
    await manager.on_session_end(run_of("one"))
    async with asyncio.timeout(10):
        await heard.worked.wait()
    assert heard.texts == [["one"]]


async def test_a_thread_that_is_not_quiet_waits(make):
    heard = Heard()
    manager = make(extract_fn=heard, extract_mode="session_end")
    for count in range(1, 4):
        await manager.on_session_end(run_of(*(f"text {n}" for n in range(count))))
        assert len(timers(manager)) == 1
    assert manager.pending == 3
    assert heard.texts == []
    await manager.close()
    assert heard.texts == [["text 0", "text 1", "text 2"]]
    assert timers(manager) == []


async def test_what_failed_is_tried_again_by_itself(make, events):
    heard = Heard(failures=3)
    manager = make(extract_fn=heard, session_idle=0)
    await manager.on_session_end(run_of("one"))
    async with asyncio.timeout(10):
        await heard.worked.wait()
    assert len(events.of("memory.extract_failed")) == 3
    assert events.of("memory.extract_dropped") == []


async def test_the_pause_after_a_failure_grows(make):
    heard = Heard(failures=3)
    manager = make(extract_fn=heard, session_idle=10)
    loop = asyncio.get_running_loop()
    pauses = []
    for count in range(1, 4):
        begin = loop.time()
        await manager.on_session_end(run_of(*(f"text {n}" for n in range(count))))
        (timer,) = timers(manager)
        pauses.append(round((timer.when() - begin) / 10))
    assert pauses == [1, 4, 16]


class Odd(BaseException):
    """What no `except Exception` catches."""


@pytest.mark.parametrize("error", [asyncio.CancelledError, Odd, SystemExit])
async def test_whatever_an_extractor_raises_is_a_failed_attempt(
    make, store, events, error, monkeypatch
):
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", 2)
    calls = []

    async def extract(messages):
        calls.append(messages)
        raise error

    manager = make(extract_fn=extract)
    await manager.on_session_end(run_of("one"))
    assert await manager.drain() == 0
    assert len(calls) == 2
    failed = events.of("memory.extract_failed")
    assert [event.attributes["attempts"] for event in failed] == [1, 2]
    assert all(isinstance(event.error, error) for event in failed)
    assert len(events.of("memory.extract_dropped")) == 1
    assert await store.list_keys(("locus_memory", "queue")) == []


async def test_an_attempt_that_is_cut_off_is_given_back(make, store, events):
    entered = asyncio.Event()

    async def extract(messages):
        entered.set()
        await asyncio.Event().wait()

    manager = make(extract_fn=extract, extract_mode="background", drain_timeout=0)
    await manager.on_session_end(run_of("one"))
    await entered.wait()
    await manager.close()
    (item,) = await store.scan(("locus_memory", "queue"))
    assert (item.value["attempts"], item.value["lease"]) == (0, None)
    assert events.of("memory.extract_failed") == []
