"""One process a turn: the parts of a session become one session."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from tests.memory.sessions.conftest import SCOPE, episodes_of

ONE_TURN = """
import asyncio, json, sys
from pathlib import Path
from locus_memory import Agent, LLMExtractor, LLMMemoryManager, Message, get_store
from locus_memory.memory import TendingOptions

async def model(messages):
    with Path(sys.argv[2]).open("a") as calls:
        calls.write(json.dumps([message.content for message in messages]) + "\\n")
    return Message.assistant(json.dumps({"changes": [], "episode": {"summary": "They packed."}}))

async def answer(messages):
    return Message.assistant("Ok.")

async def main(path, text):
    async with LLMMemoryManager(
        get_store("sqlite:" + path), extract_fn=LLMExtractor(model), tending=TendingOptions()
    ) as memory:
        async with Agent(answer, checkpointer="sqlite:" + path, memory_manager=memory) as agent:
            await agent.run(text, "t")
    await memory._store.close()

asyncio.run(main(sys.argv[1], sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of Unix")
def test_one_process_a_turn_costs_one_call(tmp_path):
    """Ten processes, ten turns, one call that sees them all."""
    path, calls = str(tmp_path / "m.db"), tmp_path / "calls"
    for number in range(10):
        said = f"Box {number}" if number < 9 else "Pack the boxes in the hall, please!"
        command = [sys.executable, "-c", ONE_TURN, path, str(calls), said]
        subprocess.run(command, check=True, timeout=60)
    (call,) = map(json.loads, calls.read_text().splitlines())
    assert all(f"Box {number}" in call[-1] for number in range(9))

    async def check():
        async with SQLiteStore(path) as store:
            (episode,) = await episodes_of(store)
            assert (episode.turns, episode.summary) == ((1, 20), "They packed.")
            assert await store.list_keys(SCOPE.queue) == []

    asyncio.run(check())
