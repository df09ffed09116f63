"""The commands that `docs/cli.md` shows print what it says; run this file to write them anew.

A line `...` stands for any lines. Output that is shortened so stays as it is while it holds.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from locus_memory import AgentState, LLMMemoryManager, Memory, Message, open_backend

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"(?<=^```console\n)\$ (.+)\n((?:.*\n)*?)(?=^```$)", re.MULTILINE)
# Times, sizes, made-up ids and folders differ from run to run and from machine to machine.
TASK = re.compile(r"^\| .* \| `locus-memory (.+)` \|$", re.MULTILINE)
VARYING = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|[0-9][0-9,.:-]*%?|\(/[^)]*exists\)|[ \n]+"
)


def output(command, folder):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = {"COLUMNS": "80", "LINES": "25", "TERM": "dumb"}
    if not re.search("[|>]", command):
        terminal["FORCE_COLOR"] = "1"
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    environment = {"PATH": path, **terminal, **kept}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def fixed(text):
    return VARYING.sub("#", text)


def same(shown, printed):
    """Whether this was printed, but for what varies and for lines that are left out."""
    parts = re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)
    pattern = ".+?".join(re.escape(fixed(part)) for part in parts)
    return re.fullmatch(pattern, fixed(printed)) is not None


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\nd\n", "a\n b\n c\nd\n", True),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nd\n", "a\nd\n", False),
        ("a\n...\nd\n", "a\nb\nd\ne\n", False),
        ("a\n...\nd\n", "b\nc\nd\n", False),
    ],
)
def test_what_counts_as_the_same_output(shown, printed, expected):
    assert same(shown, printed) is expected


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(empty_directory, run):
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) > 20
    for command, shown in blocks:
        if re.search("[|>]", command):
            printed = output(command, empty_directory)
        else:
            result = run(*shlex.split(command)[1:])
            printed = result.out + result.err
        assert same(shown, printed), f"$ {command}\n{printed}"


@pytest.mark.slow
def test_the_tasks_at_the_top_work_on_the_demo(copied, ok):
    tasks = TASK.findall(PAGE.read_text())
    assert len(tasks) == 5
    for task in tasks:
        assert ok(*shlex.split(task)).out.strip(), task


async def write_own():
    """Write what a reader has in the default database: items, memories and threads."""
    async with open_backend("sqlite:./locus.db") as backend:
        for space in (("users", "ines"), ("users", "ada"), ("turns", "mine"), ("notes",)):
            for key in ("name", "000001", "home"):
                await backend.store.put(space, key, {"text": f"my {key}"})
        for user in ("ada", "bob"):
            manager = LLMMemoryManager(backend.store).for_user(user)
            await manager.save([Memory("user", "home", f"{user} lives in Rome.")])
        for thread in ("mine", "thread", "trip"):
            state = AgentState(metadata={"user_id": "ada"}).with_message(Message.user("hello"))
            await backend.checkpointer.save(state, thread, "only")


async def contents():
    """Return all items and states of the default database, by name."""
    async with open_backend("sqlite:./locus.db", state_type=None) as backend:
        store, checkpointer, every = backend.store, backend.checkpointer, 1_000_000
        found = {}
        for space in await store.list_namespaces(limit=every):
            found |= {(space, item.key): item for item in await store.scan(space, every)}
        for thread in await checkpointer.list_threads(every):
            for info in await checkpointer.list_with_metadata(thread, every):
                state = await checkpointer.load(thread, info.checkpoint_id)
                found[thread, info.checkpoint_id] = (info.created_at, info.metadata, state)
        return found


@pytest.mark.slow
def test_the_commands_leave_what_else_there_is_alone(copied, empty_directory, run):
    (demo, _), *others = BLOCK.findall(PAGE.read_text())
    assert demo == "locus-memory demo"
    sample = asyncio.run(contents())
    asyncio.run(write_own())
    own = {name: it for name, it in asyncio.run(contents()).items() if name not in sample}
    assert len(own) > 15
    for command, _ in others:
        if re.search("[|>]", command):
            output(command, empty_directory)
        else:
            run(*shlex.split(command)[1:])
    after = asyncio.run(contents())
    assert after.keys() - sample.keys() - own.keys()
    assert {name: after.get(name) for name in own} == own


def rewritten(block, folder):
    """Return a block with what its command prints today."""
    command, shown = block.groups()
    printed = output(command, folder).replace(folder, "/home/ines")
    kept = "\n...\n" in shown and same(shown, printed)
    return f"$ {command}\n{shown if kept else printed}"


def rewrite(text, folder):
    return BLOCK.sub(lambda block: rewritten(block, folder), text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(rewrite(PAGE.read_text(), folder))
