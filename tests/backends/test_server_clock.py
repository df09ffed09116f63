"""The clock of a server, asked over a slow network by a machine whose own clock steps."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.backends.loops import ServerClock
from locus_memory.errors import BackendUnavailableError


class World:
    """The true time, and the clocks of this machine."""

    def __init__(self, monkeypatch, *, skew=0.0):
        self.true, self.steady, self.skew = 1_700_000_000.0, 100.0, skew
        self.asked, self.tells, self.delay = 0, True, 0.0
        monkeypatch.setattr(time, "time", lambda: self.true + self.skew)
        monkeypatch.setattr(time, "monotonic", lambda: self.steady)

    def passes(self, seconds):
        self.true += seconds
        self.steady += seconds

    async def ask(self):
        self.asked += 1
        self.passes(self.delay / 2)
        told = self.true if self.tells else None
        self.passes(self.delay / 2)
        return told


async def test_it_is_asked_once_a_minute(monkeypatch):
    world = World(monkeypatch, skew=600)
    clock = ServerClock(world.ask)
    for _ in range(59):
        assert await clock.seconds() == pytest.approx(world.true)
        world.passes(1)
    assert world.asked == 1
    world.passes(2)
    assert (await clock.now()).timestamp() == pytest.approx(world.true)
    assert world.asked == 2


async def test_a_step_of_the_clock_here_and_sleep_are_noticed(monkeypatch):
    world = World(monkeypatch)
    clock = ServerClock(world.ask)
    await clock.seconds()
    world.skew = 3600
    assert await clock.seconds() == pytest.approx(world.true)
    # The machine sleeps: its monotonic clock stands still.
    world.true += 500
    assert await clock.seconds() == pytest.approx(world.true)
    assert world.asked == 3


async def test_a_server_whose_clock_is_set_back_is_followed(monkeypatch):
    world = World(monkeypatch)
    clock = ServerClock(world.ask)
    await clock.seconds()
    world.passes(61)
    world.true -= 30
    world.skew += 30
    assert await clock.seconds() == pytest.approx(world.true)


async def test_one_that_does_not_tell_leaves_the_clock_here(monkeypatch):
    world = World(monkeypatch, skew=5)
    world.tells = False
    clock = ServerClock(world.ask)
    for _ in range(3):
        assert await clock.seconds() == pytest.approx(world.true + 5)
    assert world.asked == 1


async def test_a_crowd_asks_once_and_a_failure_is_not_kept():
    asked = []

    async def ask():
        asked.append(1)
        await asyncio.sleep(0)
        if len(asked) == 1:
            raise BackendUnavailableError("silent")
        return 5.0

    clock = ServerClock(ask)
    with pytest.raises(BackendUnavailableError):
        await clock.seconds()
    found = await asyncio.gather(*(clock.seconds() for _ in range(50)))
    assert len(asked) == 2
    assert all(5 <= each < 6 for each in found)
    assert await clock.seconds(lambda: 7.0) == 7.0


@given(steps=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 5)), min_size=1, max_size=20))
def test_it_is_never_ahead_and_at_most_the_network_behind(steps):
    """So nothing expires before its time by the server."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(patch, skew=-50)

        async def told():
            told = await world.ask()
            return float(int(told))

        async def live():
            clock = ServerClock(told, precision=1.0)
            for passed, delay in steps:
                world.delay = delay
                found = await clock.seconds()
                assert found <= world.true + 1e-3
                assert found > world.true - 1 - 5 - 1e-3
                world.passes(passed)

        asyncio.run(live())
