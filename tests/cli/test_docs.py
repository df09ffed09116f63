"""`docs/cli.md` shows what the commands are, and the transcripts what they print.

Run this file to write both anew: `PYTHONPATH=. python -m tests.cli.test_docs`. A transcript is
compared without numbers, names that are made up, folders and spaces: they differ from run to run.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from locus_memory import AgentState, LLMMemoryManager, Memory, Message, open_backend
from locus_memory.cli.app import run
from tests.cli.reference import PAGE, PART, TOUR, commands, page, shapes_of

TRANSCRIPTS = Path(__file__).parent / "transcripts"
WIDTHS = (80, 120)
JSON = "locus-memory --json "
SHIFTING = "locus-memory audit-deletion"
"""The places of a database differ with the state of its log."""

MOST = 5_000
"""The words of the page."""

TASK = re.compile(r"^\| .* \| `locus-memory (.+)` \|$", re.MULTILINE)
VARYING = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{12}\b|\b[0-9a-f]{8}\b|[0-9][0-9,.:-]*%?|\(/[^)]*exists\)|[ \n]+"
)
# The bar of a progress hides the cursor while it is there.
CODES = re.compile("\x1b\\[\\?25l.*?\x1b\\[\\?25h|\x1b\\[[0-9;]*[A-Za-z]|\r(?!\n)", re.DOTALL)


def output(command, folder, columns=80):
    """Return what a command prints on a terminal, also if a pipe ends it."""
    terminal = {"COLUMNS": str(columns), "LINES": "25", "TERM": "xterm", "NO_COLOR": "1"}
    if re.search("[|>;]", command):
        printed = in_shell(command, folder, terminal)
    else:
        printed = here(shlex.split(command)[1:], folder, {**terminal, "FORCE_COLOR": "1"})
    return "".join(f"{line.rstrip()}\n" for line in CODES.sub("", printed).splitlines())


def in_shell(command, folder, terminal):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), **terminal, **kept},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return done.stdout


def here(arguments, folder, terminal):
    """Run a command in this process, which is faster by seconds."""
    printed, before = io.StringIO(), Path.cwd()
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        patch.chdir(folder)
        for name, value in {"HOME": str(folder), **terminal}.items():
            patch.setenv(name, value)
        patch.delenv("LOCUS_MEMORY_URL", raising=False)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        run(arguments)
    assert Path.cwd() == before
    return printed.getvalue()


def fixed(text):
    # A kept block goes after five minutes without a run.
    return VARYING.sub("#", re.sub(r"^\S+/blocks\b.*\n", "", f"{text}\n", flags=re.MULTILINE))


def tour(folder, columns):
    """Return the calls of the tour, each with what it prints in a folder with the demo."""
    calls = TOUR.read_text().splitlines()
    return [(each, output(each, folder, columns)) for each in calls]


def asked_for_json(folder):
    """Return the same calls, each with the document that it prints."""
    calls = TOUR.read_text().splitlines()
    asked = [
        # A file that is written is that of the command itself.
        each if ">" in each.partition("|")[0] else re.sub(r"locus-memory (?=\w)", JSON, each)
        for each in calls
    ]
    return [(call, output(each, folder)) for call, each in zip(calls, asked, strict=True)]


def transcript(calls):
    return "\n".join(f"$ {call}\n{printed}" for call, printed in calls)


@pytest.mark.slow
@pytest.mark.parametrize("columns", WIDTHS)
def test_the_commands_print_what_the_transcripts_say(copied, empty_directory, columns):
    shown = (TRANSCRIPTS / f"tour-{columns}.txt").read_text()
    printed = transcript(tour(empty_directory, columns))
    pairs = [
        pair
        for pair in zip(printed.split("\n$ "), shown.split("\n$ "), strict=True)
        if not pair[0].startswith(SHIFTING)
    ]
    # The first call that prints something else, and no more: the diff of all takes minutes.
    assert [pair for pair in pairs if fixed(pair[0]) != fixed(pair[1])][:1] == []


@pytest.mark.slow
def test_the_page_says_what_the_commands_are(copied, empty_directory):
    assert PAGE.read_text() == page(PAGE.read_text(), shapes_of(asked_for_json(empty_directory)))


def test_the_page_has_a_part_of_each_command_and_is_short():
    text = PAGE.read_text()
    assert [name for _, name in PART.findall(text)] == ["shared", *commands()]
    assert len(text.split()) <= MOST


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
def test_the_commands_leave_what_else_there_is_alone(copied, empty_directory):
    sample = asyncio.run(contents())
    asyncio.run(write_own())
    own = {name: it for name, it in asyncio.run(contents()).items() if name not in sample}
    assert len(own) > 15
    tour(empty_directory, 80)
    after = asyncio.run(contents())
    assert after.keys() - sample.keys() - own.keys()
    assert {name: after.get(name) for name in own} == own


def rewrite():
    """Write the transcripts and the page anew."""
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "demo").mkdir()
        output("locus-memory demo", f"{root}/demo")
        folders = [shutil.copytree(f"{root}/demo", f"{root}/{name}") for name in (*WIDTHS, "json")]
        for columns, folder in zip(WIDTHS, folders, strict=False):
            printed = transcript(tour(folder, columns)).replace(str(folder), "/home/ines")
            (TRANSCRIPTS / f"tour-{columns}.txt").write_text(printed)
        PAGE.write_text(page(PAGE.read_text(), shapes_of(asked_for_json(folders[-1]))))


if __name__ == "__main__":
    rewrite()
