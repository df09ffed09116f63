from __future__ import annotations

import asyncio
import threading

from locus_memory._internal.running.turns import Turns, turns_of


async def test_calls_of_several_event_loops_take_turns():
    turns, inside, most = Turns(), [], 0

    async def work():
        nonlocal most
        for _ in range(50):
            async with turns.turn():
                inside.append(None)
                most = max(most, len(inside))
                await asyncio.sleep(0)
                inside.pop()

    async def several():
        await asyncio.gather(*(work() for _ in range(4)))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        await asyncio.to_thread(each.join, 60)
    assert most == 1


async def test_whoever_gives_up_passes_the_turn_on():
    turns, order = Turns(), []

    async def take(name):
        async with turns.turn():
            order.append(name)

    async with turns.turn():
        given_up = asyncio.create_task(take("given up"))
        last = asyncio.create_task(take("last"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        assert order == []
    await last
    assert order == ["last"]


async def test_many_that_give_up_at_once_leave_the_line_whole():
    turns = Turns()

    async def take():
        async with turns.turn():
            return True

    async with turns.turn():
        given_up = [asyncio.create_task(take()) for _ in range(3_000)]
        await asyncio.sleep(0)
        for each in given_up:
            each.cancel()
        await asyncio.wait(given_up)
    assert await asyncio.wait_for(take(), 30)


async def test_a_turn_that_is_given_to_a_cancelled_call_goes_on():
    turns = Turns()

    async def take():
        async with turns.turn():
            return True

    async with turns.turn():
        given_up, last = asyncio.create_task(take()), asyncio.create_task(take())
        await asyncio.sleep(0)
    given_up.cancel()
    assert await asyncio.wait_for(last, 30)
    assert await asyncio.wait_for(take(), 30)


def test_who_shares_an_object_shares_a_line():
    one, other = [], []
    line = turns_of(one)
    assert turns_of(one) is line
    assert turns_of(other) is not line
