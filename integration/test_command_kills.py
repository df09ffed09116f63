"""Commands of several writes that die between two of them: repeated, they end as if undisturbed.

The commands that copy, delete for good, encrypt or import have tests of their own.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys

import pytest

from integration.killing import killed_at
from locus_memory import LLMMemoryManager, Memory, MemoryType
from locus_memory.integrity import verify
from locus_memory.registry import open_backend

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

WRITE = "locus_memory.backends.sqlite.connection.connection:SQLiteDatabase.write"
TRANSACTION = "locus_memory.backends.sqlite.items:write"
THREADS, TURNS = 6, 8


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with a database and the files that the commands read; no test changes it."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(fill(f"sqlite:{folder / 'agent.db'}"))
    (folder / "handbook").mkdir()
    for name in ("pay", "leave", "travel"):
        (folder / "handbook" / f"{name}.md").write_text(f"# {name}\n\nThe rules of {name}.\n")
    (folder / "manual.md").write_text("# Manual\n\nTurn it on.\n")
    completed(folder, ["docs", "add", "manual.md"])
    said = [{"user": f"My cousin is called Ada{n}.", "assistant": "Noted."} for n in range(12)]
    (folder / "past.json").write_text(json.dumps(said))
    lines = [
        {"type": "entity", "name": f"e{n}", "entityType": "thing", "observations": [f"o{n}"]}
        for n in range(5)
    ]
    (folder / "graph.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


async def fill(url):
    async with open_backend(url, state_type=None) as backend:
        for thread in range(THREADS):
            state = {"messages": []}
            for turn in range(TURNS):
                state["messages"].append({"role": "user", "content": f"{thread} {turn}"})
                await backend.checkpointer.save(state, f"t{thread}", f"c{turn}")
        rows = [(("notes", f"n{n % 5}"), f"k{n}", {"n": n}) for n in range(100)]
        await backend.store.put_batch(rows)
        manager = LLMMemoryManager(backend.store, clock=lambda: 1_600_000_000.0)
        facts = [Memory(MemoryType.USER, f"k{n}", f"Fact{n} is thing{n}.") for n in range(6)]
        await manager.save(facts)


async def counts(path):
    """Return the number of items by namespace, and of checkpoints by thread; all are intact."""
    async with open_backend(f"sqlite:{path}", state_type=None) as backend:
        assert [each async for each in verify(backend) if each.reason is not None] == []
        spaces = await backend.store.list_namespaces(limit=1_000)
        items = {each: len(await backend.store.list_keys(each, 1_000)) for each in spaces}
        names = await backend.checkpointer.list_threads()
        ids = {each: len(await backend.checkpointer.list_checkpoints(each, 99)) for each in names}
    return items, ids


COMMANDS = {
    "vacuum": (WRITE, 2, ["vacuum", "--older-than-days", "0", "--yes"]),
    "threads rm": (WRITE, 2, ["threads", "rm", "--yes", "t1", "t2", "t3"]),
    "consolidate": (WRITE, 2, ["consolidate"]),
    "ingest": (WRITE, 2, ["ingest", "past.json"]),
    "docs add": (WRITE, 2, ["docs", "add", "handbook"]),
    "docs rm": (WRITE, 2, ["docs", "rm", "manual.md"]),
    # One transaction, on the writing thread.
    "mcp import": (TRANSACTION, 1, ["mcp", "import", "graph.jsonl"]),
}
LEFT = {"threads rm": ["threads", "rm", "--yes", "t2", "t3"]}
"""Commands that name what is left when they are repeated."""


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_between_two_writes(name, filled, tmp_path):
    place, call, command = COMMANDS[name]
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    before = asyncio.run(counts(filled / "agent.db"))
    for folder in (disturbed, undisturbed):
        shutil.copytree(filled, folder)
        (folder / "pyproject.toml").touch()
    killed_at(place, call, *command, "--url", "sqlite:agent.db", cwd=disturbed)
    asyncio.run(counts(disturbed / "agent.db"))
    completed(disturbed, LEFT.get(name, command))
    completed(undisturbed, command)
    after = asyncio.run(counts(undisturbed / "agent.db"))
    assert after != before
    assert asyncio.run(counts(disturbed / "agent.db")) == after


def completed(folder, command):
    """Run a command to its end."""
    call = [sys.executable, "-m", "locus_memory.cli", *command, "--url", "sqlite:agent.db"]
    done = subprocess.run(call, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
