"""Several processes with one store, all alive."""

from __future__ import annotations

import asyncio
import random

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.testing import FakeClock
from tests.memory.conftest import PlainStore
from tests.memory.sessions.conftest import LONG, SCOPE, Distiller, episodes_of, run_of, turns_of


class Late(Distiller):
    """An extractor that takes a while, so that others come in between."""

    def __init__(self, chance):
        super().__init__()
        self.chance = chance

    async def distill(self, messages, memories):
        for _ in range(self.chance.randint(0, 30)):
            await asyncio.sleep(0)
        return await super().distill(messages, memories)


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("seed", range(8))
async def test_turns_of_one_session_in_several_processes(is_plain, seed):
    """Each turn is in one episode, whichever process queued and distilled it."""
    chance = random.Random(seed)
    async with InMemoryStore() as inner:
        store = PlainStore(inner) if is_plain else inner
        managers = [
            LLMMemoryManager(store, extract_fn=Late(chance), extract_mode="session_end")
            for _ in range(3)
        ]

        async def talk(thread):
            for count in range(1, 9):
                texts = [f"{thread}{n} {LONG}" for n in range(count)]
                await chance.choice(managers).on_session_end(run_of(turns_of(*texts), thread))
                for _ in range(chance.randint(0, 10)):
                    await asyncio.sleep(0)
                if chance.random() < 0.4:
                    await chance.choice(managers).sync_now()

        await asyncio.gather(talk("a"), talk("b"))
        for manager in managers:
            await manager.sync_now()
        for thread in ("a", "b"):
            numbers = [
                number
                for each in await episodes_of(inner)
                if each.session_id == thread
                for number in range(each.turns[0], each.turns[1] + 1)
            ]
            assert sorted(numbers) == list(range(1, 17))
        assert await inner.list_keys(SCOPE.queue) == []
        for manager in managers:
            await manager.close()


@pytest.mark.parametrize("is_plain", [False, True])
async def test_a_process_that_lost_its_lease_writes_nothing(is_plain, events):
    """Another process takes the session over, and only one of them writes its episode."""
    clock, entered, gate = FakeClock(), asyncio.Event(), asyncio.Event()

    class Stuck(Distiller):
        async def distill(self, messages, memories):
            entered.set()
            await gate.wait()
            return Distillate(notes=(NoteDraft("the slow one"),))

    async with InMemoryStore(clock=clock) as inner:
        store = PlainStore(inner) if is_plain else inner
        slow, quick = (
            LLMMemoryManager(store, extract_fn=each, extract_mode="session_end", clock=clock)
            for each in (Stuck(), Distiller())
        )
        await slow.on_session_end(run_of(turns_of(LONG)))
        waiting = asyncio.create_task(slow.sync_now())
        await entered.wait()
        clock.advance(1000)
        await quick.on_session_end(run_of(turns_of(LONG, LONG)))
        assert await quick.sync_now() == 0
        gate.set()
        await waiting
        (episode,) = await episodes_of(inner)
        assert episode.turns == (1, 4)
        assert episode.text != "the slow one"
        assert len(events.of("memory.extracted")) == 1
        assert await inner.list_keys(SCOPE.queue) == []
        for manager in (slow, quick):
            await manager.close()
