from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.waiting import WaitingLine


class TooLateError(Exception):
    pass


class Line:
    """A line of names, each with a future of its own."""

    def __init__(self, timeout=60.0):
        self.waiting = WaitingLine(timeout, TooLateError)
        self.answers = {}

    def join(self, *names):
        for name in names:
            self.answers[name] = asyncio.get_running_loop().create_future()
            self.waiting.join(name, self.answers[name])


async def test_first_come_first_served():
    line = Line()
    assert line.waiting.take() is None
    line.join("a", "b")
    assert [line.waiting.take() for _ in range(3)] == ["a", "b", None]
    line.waiting.end()


async def test_whoever_was_cancelled_is_passed_over():
    line = Line()
    line.join("a", "b", "c")
    line.answers["a"].cancel()
    line.answers["b"].cancel()
    assert len(line.waiting) == 3
    assert (line.waiting.take(), len(line.waiting)) == ("c", 0)
    line.waiting.end()


async def test_whoever_waited_for_too_long_is_refused_and_the_next_are_not(monkeypatch):
    line, loop = Line(), asyncio.get_running_loop()
    line.join("a", "b", "c")
    line.answers["b"].cancel()
    now, passed = loop.time, 30.0
    monkeypatch.setattr(loop, "time", lambda: now() + passed)
    line.join("d")
    passed = 61.0
    with pytest.raises(TooLateError):
        await line.answers["a"]
    with pytest.raises(TooLateError):
        await line.answers["c"]
    assert not line.answers["d"].done()
    passed = 91.0
    with pytest.raises(TooLateError):
        await line.answers["d"]
    assert len(line.waiting) == 0


async def test_the_end_of_it_refuses_all_that_wait():
    line = Line()
    line.join("a", "b")
    line.answers["a"].cancel()
    line.waiting.end(LookupError)
    assert isinstance(line.answers["b"].exception(), LookupError)
    assert len(line.waiting) == 0
