"""Backlogs that take several prompts, and threads that are waited for in a busy scope."""

from __future__ import annotations

import asyncio
import json

from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.extraction.thread import roles_and_texts
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.messages import Message
from tests.memory.sessions.conftest import episodes_of, run_of, turns_of

LONG = "and then we went on through the rain, " * 12


class Noting:
    """A model that makes ten notes of each prompt, after a while."""

    def __init__(self, seconds=0.0):
        self.seconds, self.calls = seconds, 0

    async def __call__(self, messages):
        self.calls += 1
        await asyncio.sleep(self.seconds)
        notes = [{"text": f"Note {n} of call {self.calls}.", "kind": "event"} for n in range(10)]
        return Message.assistant(json.dumps({"changes": [], "notes": notes}))


def managed(store, model, **options):
    extractor = LLMExtractor(model, max_prompt_tokens=2_000)
    return LLMMemoryManager(store, extract_fn=extractor, extract_mode="session_end", **options)


async def test_the_notes_of_all_prompts_are_kept(either):
    model = Noting()
    manager = managed(either, model)
    await manager.ingest("a", "c", [{"user": f"{n} {LONG}", "assistant": LONG} for n in range(40)])
    noted = [note.text for each in await episodes_of(either) for note in each.notes]
    assert model.calls > 4
    assert len(noted) == len(set(noted)) == 10 * model.calls
    await manager.close()


async def test_each_prompt_has_the_time_of_one(either):
    """Ten prompts take longer than the timeout of one; other processes wait for them."""
    model = Noting(0.05)
    manager = managed(either, model, extract_timeout=0.3)
    said = turns_of(*(f"{n} {LONG}" for n in range(20)))
    await manager.on_session_end(run_of(said, "t"))
    [job] = [each async for each in manager._queue.jobs()]
    assert manager._extraction.seconds_for(roles_and_texts(job.messages)) >= 0.3 * 8
    assert await manager.sync_now() == 0
    assert 0.3 / 0.05 < model.calls < 20
    await manager.close()


async def test_a_thread_is_waited_for_alone(either):
    """In a scope in which others have turns without end."""

    class Endless(Noting):
        async def __call__(self, messages):
            answer = await super().__call__(messages)
            if self.goes_on:
                turn = turns_of(f"Turn {self.calls} {LONG}")
                await manager.on_session_end(run_of(turn, f"other {self.calls}"))
            return answer

    model = Endless(0.05)
    model.goes_on = True
    manager = managed(either, model, session_idle=0.01)
    for number in range(4):
        await manager.on_session_end(run_of(turns_of(f"Turn {number} {LONG}"), f"first {number}"))
    async with asyncio.timeout(20):
        done = await manager.ingest("a", "mine", [{"user": LONG, "assistant": "All right."}])
    assert (done["episodes"], done["pending"]) == (1, 0)
    model.goes_on = False
    await manager.close()
