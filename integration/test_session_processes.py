"""One process a turn: each turn is read before its process ends."""

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

async def model(messages):
    with Path(sys.argv[2]).open("a") as calls:
        calls.write(json.dumps([message.content for message in messages]) + "\\n")
    return Message.assistant(json.dumps({"changes": [], "notes": ["They packed."]}))

async def answer(messages):
    return Message.assistant("Ok.")

async def main(path, text):
    async with LLMMemoryManager(
        get_store("sqlite:" + path), extract_fn=LLMExtractor(model), extract_mode="session_end"
    ) as memory:
        async with Agent(answer, checkpointer="sqlite:" + path, memory_manager=memory) as agent:
            await agent.run(text, "t")
    await memory._store.close()

asyncio.run(main(sys.argv[1], sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the paths are those of Unix")
def test_each_process_has_its_turn_read(tmp_path):
    """Five processes, five turns: the model reads each once, before its process ends."""
    path, calls = str(tmp_path / "m.db"), tmp_path / "calls"
    for number in range(5):
        command = [sys.executable, "-c", ONE_TURN, path, str(calls), f"Box {number}"]
        subprocess.run(command, check=True, timeout=60)
    shown = [json.loads(line)[-1] for line in calls.read_text().splitlines()]
    for number, call in enumerate(shown):
        assert [f"Box {n}" for n in range(5) if f"Box {n}" in call] == [f"Box {number}"]
        assert ("1. (before) (" in call) == (number > 0)
    assert len(shown) == 5

    async def check():
        async with SQLiteStore(path) as store:
            turns = [episode.turns for episode in await episodes_of(store)]
            assert turns == [(2 * n + 1, 2 * n + 2) for n in range(5)]
            assert await store.list_keys(SCOPE.queue) == []

    asyncio.run(check())
