"""Processes that are killed between the buffer, the call and the write of a session."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.manager import LLMMemoryManager
from tests.memory.sessions.conftest import SCOPE, Distiller, episodes_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

PHASES = ("buffered", "calling", "called", "distilled")

TALKING = """
import asyncio, sys
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.events import subscribe
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.state import AgentState

def say(*words):
    print(*words, flush=True)

class Slow:
    name = "slow"

    async def extract(self, messages, memories):
        raise AssertionError

    async def distill(self, messages, memories):
        say("calling")
        await asyncio.sleep(0.01)
        say("called")
        fact = MemoryChange(op="add", type=MemoryType.PROJECT, key=messages[0].content[:12],
                            content=f"{messages[0].content[:12]} is done.")
        return Distillate(changes=(fact,), notes=(NoteDraft(messages[0].content),))

async def main(path, name):
    store = SQLiteStore(path)
    subscribe(lambda event: event.name == "memory.extracted" and say("distilled"))
    manager = LLMMemoryManager(store, extract_fn=Slow(), extract_mode="session_end")
    for number in range(1000):
        thread, messages = f"{name}.{number}", ()
        for turn in range(3):
            messages += (Message.user(f"{thread}.{turn} " + "We pack all the books. " * 4),
                         Message.assistant("Noted."))
            state = AgentState(messages=messages, metadata={"thread_id": thread})
            await manager.on_session_end(state)
            say("buffered", thread, len(messages))
            await asyncio.sleep(0.002)

asyncio.run(main(*sys.argv[1:]))
"""


def storm(path, name, phase, chance):
    """Kill a process shortly after a phase; return the buffered messages of each thread."""
    buffered = {}

    def note(line):
        """Note what a line says, and return its phase; what the kill cut off says nothing."""
        if not line.endswith("\n"):
            return None
        seen, *rest = line.split()
        if seen == "buffered":
            buffered[rest[0]] = int(rest[1])
        return seen

    command = [sys.executable, "-c", TALKING, str(path), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        after = chance.randint(1, 12)
        for line in process.stdout:
            after -= note(line) == phase
            if after <= 0:
                time.sleep(chance.random() * 0.01)
                break
        process.kill()
        # What was said before the kill counts as well.
        for line in process.stdout:
            note(line)
    return buffered


async def check(store, buffered):
    """Each buffered message is in exactly one episode, and each one in at most one."""
    covered = {}
    for each in await episodes_of(store):
        numbers = covered.setdefault(each.session_id, [])
        numbers += range(each.turns[0], each.turns[1] + 1)
    for thread, count in buffered.items():
        numbers = sorted(covered[thread])
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= count
    assert await store.list_keys(SCOPE.queue) == []


async def storms(folder, kills, seed=1):
    """Kill processes, each in one of the phases; recover, and check."""
    path, chance, buffered = folder / "memory.db", random.Random(seed), {}
    for number in range(kills):
        phase = PHASES[number % len(PHASES)]
        buffered |= await asyncio.to_thread(storm, path, f"p{number}", phase, chance)
    assert len(buffered) >= kills
    async with SQLiteStore(path) as store:
        async with LLMMemoryManager(
            store, extract_fn=Distiller(), extract_mode="session_end"
        ) as manager:
            assert await manager.sync_now() == 0
        await check(store, buffered)
