"""What is sent together, and what happens to those of a group."""

from __future__ import annotations

import asyncio
from itertools import chain

import pytest

from locus_memory.backends.grouping import Grouping


class Wire:
    """Sends nothing: it answers when it is told to."""

    def __init__(self):
        self.sent = []
        self.ended = []
        self.gate = asyncio.Event()
        self.refused = set()
        self.error = None
        self.grouping = Grouping(self.alone, self.together)

    async def alone(self, what):
        self.sent.append(what)
        await self.gate.wait()
        return f"<{what}>"

    async def together(self, several):
        self.sent.append(list(several))
        try:
            await self.gate.wait()
        finally:
            self.ended.append(list(several))
        if self.error is not None:
            raise self.error
        return [None if what in self.refused else f"({what})" for what in several]

    async def start(self, *several, key=str, kind=lambda _: None):
        """Send them all; return the tasks, each as far as it gets."""
        sends = (self.grouping.send(what, key=key(what), kind=kind(what)) for what in several)
        tasks = [asyncio.create_task(send) for send in sends]
        await turns()
        return tasks


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def wire():
    wire = Wire()
    yield wire
    wire.gate.set()
    await turns()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not [task for task in others if "together" in repr(task)]


@pytest.fixture
async def full(wire):
    """A wire on which one more has to wait for the group that is under way."""
    tasks = await wire.start(*"vwxyz")
    assert wire.sent == ["v", "w", "x", "y", ["z"]]
    yield wire
    wire.gate.set()
    await asyncio.gather(*tasks)


async def test_what_comes_alone_is_sent_alone(wire):
    wire.gate.set()
    for what in "abc":
        assert await wire.grouping.send(what, key=1) == f"<{what}>"
    assert wire.sent == ["a", "b", "c"]


async def test_what_comes_meanwhile_is_sent_together(full):
    tasks = await full.start("a", "b", "c")
    assert len(full.sent) == 5
    full.gate.set()
    assert await asyncio.gather(*tasks) == ["(a)", "(b)", "(c)"]
    assert full.sent[5:] == [["a", "b", "c"]]


async def test_the_next_group_is_sent_before_the_last_one_goes_on(full):
    seen = []

    async def send(what):
        await full.grouping.send(what, key=what)
        seen.append(len(full.sent))

    tasks = [asyncio.create_task(send(what)) for what in range(40)]
    await turns()
    full.gate.set()
    await asyncio.gather(*tasks)
    assert [len(each) for each in full.sent[5:]] == [32, 8]
    assert seen == [7] * 40


async def test_a_group_has_a_bound(full):
    tasks = await full.start(*range(100))
    full.gate.set()
    assert await asyncio.gather(*tasks) == [f"({what})" for what in range(100)]
    assert list(chain.from_iterable(full.sent[5:])) == list(range(100))
    assert [len(each) for each in full.sent[5:]] == [32, 32, 32, 4]


async def test_those_of_one_key_are_sent_one_after_the_other(wire):
    tasks = await wire.start("a1", "a2", "b1", "a3", "b2", key=lambda what: what[0])
    assert wire.sent == ["a1", "b1"]
    wire.gate.set()
    assert await asyncio.gather(*tasks) == ["<a1>", "(a2)", "<b1>", "(a3)", "(b2)"]
    order = [what for each in wire.sent for what in (each if isinstance(each, list) else [each])]
    assert [what for what in order if what[0] == "a"] == ["a1", "a2", "a3"]
    assert [what for what in order if what[0] == "b"] == ["b1", "b2"]


async def test_a_group_is_of_one_kind(full):
    tasks = await full.start("a1", "b1", "a2", "b2", kind=lambda what: what[0])
    full.gate.set()
    await asyncio.gather(*tasks)
    assert full.sent[5:] == [["a1", "a2"], ["b1", "b2"]]


async def test_what_a_group_leaves_out_is_sent_alone(full):
    full.refused = {"b"}
    tasks = await full.start("a", "b", "c")
    full.gate.set()
    assert await asyncio.gather(*tasks) == ["(a)", "<b>", "(c)"]
    assert full.sent[5:] == [["a", "b", "c"], "b"]


async def test_an_error_is_that_of_each(wire):
    await wire.start(*"vwxy")
    tasks = await wire.start("a")
    tasks += await wire.start("b", "c")
    wire.error = LookupError("lost")
    wire.gate.set()
    assert await asyncio.gather(*tasks, return_exceptions=True) == [wire.error] * 3
    wire.error = None
    assert await wire.grouping.send("d", key="d") == "<d>"


async def test_one_that_is_cancelled_leaves_the_others_alone(full):
    waiting, gone = await full.start("a", "b")
    gone.cancel()
    full.gate.set()
    assert await waiting == "(a)"
    assert gone.cancelled()
    assert full.sent[5:] == [["a"]]


async def test_one_that_is_cancelled_when_it_is_sent_already(wire):
    lone = await wire.start(*"vwxyz")
    staying, gone = await wire.start("a", "b")
    first, wire.gate = wire.gate, asyncio.Event()
    first.set()
    await asyncio.gather(*lone)
    await turns()
    assert wire.sent[5:] == [["a", "b"]]
    gone.cancel()
    await turns()
    assert not staying.done()
    wire.gate.set()
    assert await staying == "(a)"
    assert gone.cancelled()


async def test_a_group_nobody_waits_for_ends(wire):
    lone = await wire.start(*"vwxy")
    sends = await wire.start("a", "b")
    assert wire.sent == ["v", "w", "x", "y", ["a"]]
    for task in sends:
        task.cancel()
    await asyncio.gather(*sends, return_exceptions=True)
    assert wire.ended == [["a"]]
    later = await wire.start("c")
    assert wire.sent[-1] == ["c"]
    wire.gate.set()
    assert await asyncio.gather(*lone, *later) == ["<v>", "<w>", "<x>", "<y>", "(c)"]
