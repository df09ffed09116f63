"""The command `mcp` as a host starts it, and several of them on one SQLite file."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from locus_memory import open_backend
from locus_memory.integrations.mcp import KnowledgeGraph
from locus_memory.memory import LLMMemoryManager
from tests.integrations.mcp.conftest import call

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "locus_memory", "mcp"]


def host(url, *arguments):
    """A client that starts the command as a host does."""
    return Client(
        StdioServerParameters(
            command=COMMAND[0],
            args=[*COMMAND[1:], "--url", url, *arguments],
            env={"PYTHONPATH": str(ROOT)},
        ),
        read_timeout_seconds=120,
    )


@asynccontextmanager
async def started(*arguments):
    """The command with its protocol on pipes, for a test that kills it."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def write(number, url, rounds):
    """Write facts, nodes and observations, one after another, as one of several hosts."""
    async with host(url, "--user", "ada", "--tools", "memory", "--tools", "knowledge-graph") as one:
        for turn in range(rounds):
            name = f"w{number}t{turn}"
            await call(one, "remember", content=f"Fact {name} holds.", key=name)
            entity = {"name": name, "entityType": "t", "observations": []}
            shared = {"name": "shared", "entityType": "t", "observations": []}
            await call(one, "create_entities", entities=[entity, shared])
            await call(
                one,
                "add_observations",
                observations=[{"entityName": "shared", "contents": [name]}],
            )


async def assert_whole(url, expected):
    """Check that every write is there once."""
    async with open_backend(url) as backend:
        manager = LLMMemoryManager(backend).for_user("ada")
        assert {each.key async for each in manager.memories()} == expected
        graph = await KnowledgeGraph(backend.store, manager.namespace).read()
        names = [each.name for each in graph.entities]
        assert sorted(names) == sorted({*expected, "shared"})
        [shared] = [each for each in graph.entities if each.name == "shared"]
        assert sorted(shared.observations) == sorted(expected)


@pytest.mark.slow
async def test_two_hosts_on_one_file_lose_nothing(tmp_path):
    url = f"sqlite:{tmp_path / 'test.db'}"
    await asyncio.gather(write(0, url, 3), write(1, url, 3))
    await assert_whole(url, {f"w{number}t{turn}" for number in range(2) for turn in range(3)})


@pytest.mark.slow
async def test_the_command_serves_http(tmp_path):
    arguments = ["--url", f"sqlite:{tmp_path / 'test.db'}", "--http", "--port", "0"]
    async with started(*arguments, "--user", "ada") as process:
        line = (await process.stderr.readline()).decode()
        url = re.search(r"listening at (http://127\.0\.0\.1:\d+/mcp)", line)[1]
        async with (
            httpx2.AsyncClient(timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await call(client, "remember", content="I live in Berlin.")
        process.send_signal(signal.SIGINT)
        await process.wait()
    async with open_backend(f"sqlite:{tmp_path / 'test.db'}") as backend:
        [memory] = await LLMMemoryManager(backend).for_user("ada").retrieve()
    assert memory.content == "I live in Berlin."


@pytest.mark.slow
async def test_the_command_ends_when_the_host_closes_its_input(tmp_path):
    async with started("--url", f"sqlite:{tmp_path / 'test.db'}") as process:
        process.stdin.close()
        out, error = await process.stdout.read(), await process.stderr.read()
        assert (await process.wait(), out, error) == (0, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--http", "--host", "0.0.0.0"], "needs tokens"),
        (["--port", "1"], "--port needs --http"),
        (["--tokens", "a.toml", "--http", "--user", "ada"], "give --tokens, or --user"),
        (["--tokens", "none.toml", "--http"], "cannot be read"),
        (["--tools", "nonsense"], "nonsense"),
        (["--user", ""], "namespace"),
        (["--json"], "--json needs --http"),
    ],
)
async def test_what_cannot_work_is_one_line(tmp_path, arguments, message):
    async with started("--url", f"sqlite:{tmp_path / 'test.db'}", *arguments) as process:
        process.stdin.close()
        error = (await process.stderr.read()).decode()
        assert await process.wait() in (1, 2)
    assert message in error
    assert "Traceback" not in error
