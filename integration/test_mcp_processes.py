"""Two hosts on one SQLite file, one of which is killed in each of 20 rounds: nothing is lost."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from itertools import count

import pytest

pytest.importorskip("mcp.server.lowlevel")

from mcp import Client, StdioServerParameters

from locus_memory import open_backend
from locus_memory.integrations.mcp import KnowledgeGraph
from locus_memory.memory import LLMMemoryManager
from tests.integrations.mcp.conftest import call
from tests.integrations.mcp.test_processes import COMMAND, ROOT

ROUNDS = 20
SETS = ["--user", "ada", "--tools", "memory", "--tools", "knowledge-graph", "--calls", "100000"]


def host(url, file):
    """A client that starts the command, whose process id is written to a file."""
    command = f"echo $$ > {shlex.quote(str(file))}; exec {shlex.join([*COMMAND, *SETS])}"
    return Client(
        StdioServerParameters(
            command="sh",
            args=["-c", f"{command} --url {shlex.quote(url)}"],
            env={"PYTHONPATH": str(ROOT)},
        ),
        read_timeout_seconds=120,
    )


async def write(client, name):
    """Write a fact, a node and an observation of a node that both hosts change."""
    await call(client, "remember", content=f"Fact {name} holds.", key=name)
    nodes = [{"name": each, "entityType": "t", "observations": []} for each in (name, "shared")]
    await call(client, "create_entities", entities=nodes)
    added = [{"entityName": "shared", "contents": [name]}]
    await call(client, "add_observations", observations=added)


async def write_until_killed(url, number, file):
    """Write until the server is killed in a call; return what it has confirmed."""
    confirmed = []
    try:
        async with host(url, file) as client:
            for turn in count():
                writing = asyncio.create_task(write(client, f"k{number}t{turn}"))
                if turn == 2:
                    await asyncio.wait([writing], timeout=0.01 * (number % 10))
                    os.kill(int(file.read_text()), signal.SIGKILL)
                await writing
                confirmed.append(f"k{number}t{turn}")
                if turn == 2:
                    break
    except* Exception:  # noqa: BLE001 - the server is gone
        pass
    return confirmed


@pytest.mark.slow
async def test_a_killed_host_loses_nothing_that_was_confirmed(tmp_path):
    url = f"sqlite:{tmp_path / 'test.db'}"
    survivor, confirmed = [], []
    done = asyncio.Event()

    async def survive():
        async with host(url, tmp_path / "survivor") as client:
            for turn in count():
                await write(client, f"s{turn}")
                survivor.append(f"s{turn}")
                if done.is_set():
                    return

    writing = asyncio.create_task(survive())
    for number in range(ROUNDS):
        confirmed += await write_until_killed(url, number, tmp_path / "victim")
    done.set()
    await writing
    assert len(confirmed) >= 2 * ROUNDS
    async with open_backend(url) as backend:
        manager = LLMMemoryManager(backend).for_user("ada")
        keys = [each.key async for each in manager.memories()]
        graph = await KnowledgeGraph(backend.store, manager.namespace).read()
    names = [each.name for each in graph.entities]
    [shared] = [each for each in graph.entities if each.name == "shared"]
    for found in (keys, names, list(shared.observations)):
        assert set(found) >= {*survivor, *confirmed}
        assert len(found) == len(set(found))
    # Order: what one host wrote is in the order of its calls.
    assert [each for each in shared.observations if each.startswith("s")] == survivor
