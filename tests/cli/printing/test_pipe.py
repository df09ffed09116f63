"""On a pipe, one record a line; on a narrow terminal, nothing cut that is needed."""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest

from locus_memory.cli import app
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.registry import open_backend

LONG = "a rather long text about boats and planks " * 20
ODD = "tab\there\nand a line\x1b[31m"


@pytest.fixture
def odd(empty_directory):
    """Store long and odd texts everywhere."""

    async def work():
        messages = [
            {"role": "user", "content": LONG + ODD, "id": "m1"},
            {"role": "assistant", "tool_calls": [{"name": "look", "arguments": {"where": LONG}}]},
        ]
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            for number in (1, 2):
                state = {"messages": messages[:number]}
                await backend.checkpointer.save(state, "t", f"c{number}", {"note": LONG})
            await backend.store.put(("n",), "k", {"text": LONG + ODD})
            manager = LLMMemoryManager(backend.store)
            origin = {"thread_id": "t", "message_ids": ["m1"]}
            await manager.save([Memory("user", "home", "Before. " + LONG)])
            await manager.save([Memory("user", "home", LONG + ODD, origin)])

    asyncio.run(work())


RECORDS = [
    (("threads",), 1, 5),
    (("ls",), 3, 1),
    (("ls", "n"), 1, 4),
    (("checkpoints", "t"), 2, 6),
    (("show", "t"), 2, 3),
    (("memories",), 1, 6),
    (("memories", "--sources"), 1, 7),
    (("history", "home"), 2, 5),
    (("search", "planks", "-n", "n"), 1, 6),
    (("search", "planks", "-n", "n", "--explain"), 1, 7),
    (("stats",), 1, 5),
    (("stats", "--deep"), 1, 7),
    (("threads", "rm", "t", "--dry-run"), 1, 3),
    (("eval",), 6, 12),
]


@pytest.mark.parametrize("columns", ["20", "80"])
@pytest.mark.parametrize(("arguments", "lines", "fields"), RECORDS)
def test_a_record_is_a_line(run, odd, on_a_pipe, monkeypatch, arguments, lines, fields, columns):  # noqa: PLR0917 - fixtures
    """Whatever is in it, and however narrow some terminal may be."""
    monkeypatch.setenv("COLUMNS", columns)
    done = run(*arguments)
    assert done.code == 0
    records = [line.split("\t") for line in done.out.splitlines()]
    assert [len(record) for record in records] == [fields] * lines
    assert not set(done.out) & {"\x1b", "…"}


@pytest.mark.parametrize(
    "arguments", [("show", "t"), ("ls", "n"), ("memories",), ("search", "planks", "-n", "n")]
)
def test_a_pipe_gets_all_of_a_text(ok, odd, on_a_pipe, arguments):
    out = ok(*arguments).out
    assert LONG in out
    assert "tab" in out
    assert "here" in out


@pytest.mark.parametrize("arguments", [("memories",), ("history", "home")])
def test_a_pipe_gets_all_of_the_name_of_a_source(ok, empty_directory, on_a_pipe, arguments):
    thread = "support-conversation-with-the-harbour-office"

    async def work():
        async with open_backend("sqlite:./locus.db") as backend:
            source = {"thread_id": thread, "message_ids": ["m1"]}
            await LLMMemoryManager(backend.store).save([Memory("user", "home", "Rome.", source)])

    asyncio.run(work())
    assert thread in ok(*arguments).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("threads", "--prefix", "nobody"), "(no threads)\n"),
        (("ls", "n", "--after", "z"), "(no items)\n"),
        (("memories", "--user", "nobody"), "(no memories)\n"),
        (("search", "unheard"), "(nothing found)\n"),
        (("checkpoints", "t", "--before", "1"), "(no checkpoints found)\n"),
    ],
)
def test_nothing_is_no_line(run, odd, on_a_pipe, arguments, says):
    done = run(*arguments)
    assert (done.code, done.out, done.err) == (0, "", says)


def test_numbers_can_be_reckoned_with(ok, empty_directory, on_a_pipe):
    async def work():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            await backend.checkpointer.save({"text": os.urandom(20_000).hex()}, "big")

    asyncio.run(work())
    assert int(ok("threads").out.split("\t")[2]) > 10_000


def test_where_a_fork_comes_from_is_the_last_field(ok, odd, on_a_pipe):
    ok("fork", "t@1", "u")
    assert [line.split("\t")[-1] for line in ok("threads").out.splitlines()] == ["", "t@c1"]
    assert [line.split("\t")[-1] for line in ok("checkpoints", "u").out.splitlines()] == ["t@c1"]


def test_what_forget_would_erase_is_records(run, odd, on_a_pipe):
    done = run("forget", "home", "--dry-run")
    assert done.err.startswith("(thread 't' still holds ")
    lines = [line.split("\t") for line in done.out.splitlines()]
    assert lines[:2] == [["memories", "1", "user home"], ["past versions", "1", "user home"]]
    assert [line[:2] for line in lines[2:]] == [["content", "user home"]] * 2


def read_all(descriptor):
    """Return all that is written to a terminal until its last writer is gone."""
    printed = b""
    while True:
        try:
            block = os.read(descriptor, 65536)
        except OSError:
            # Linux says so when the last writer is gone.
            return printed
        if not block:
            return printed
        printed += block


@pytest.fixture
def on_a_terminal(monkeypatch):
    """Runs a command in a terminal of so many columns; returns what it prints there."""
    pty = pytest.importorskip("pty")

    def run(columns, *arguments):
        primary, secondary = pty.openpty()
        with ThreadPoolExecutor(1) as thread:
            printed = thread.submit(read_all, primary)
            with monkeypatch.context() as patch, os.fdopen(secondary, "w") as terminal:
                patch.delenv("FORCE_COLOR", raising=False)
                for name, value in (("TERM", "dumb"), ("COLUMNS", columns), ("LINES", 25)):
                    patch.setenv(name, str(value))
                for name in ("stdout", "stderr"):
                    patch.setattr(sys, name, terminal)
                patch.setattr(sys, "stdin", StringIO())
                app.run(arguments)
        os.close(primary)
        return printed.result().decode().replace("\r\n", "\n")

    return run


TABLES = [
    (("threads",), ("second-wind-by-the-isles-of-scilly", "2")),
    (("stats", "--deep"), ("second-wind-by-the-isles-of-scilly", "full 2", "stored")),
    (("checkpoints", "second-wind-by-the-isles-of-scilly"), ("c1", "c2", "full")),
    (("memories", "--all-users"), ("allergy:walnuts", "The user is allergic to walnuts.")),
    (("history", "allergy:walnuts"), ("The user is allergic to walnuts.", "now")),
    (("ls", "n"), ("a-key-of-some-length",)),
    (("search", "boat"), ("a-key-of-some-length",)),
    (("doctor",), ("save, load and delete work", "store can")),
    (("--help",), ("Print the conversation at a checkpoint.",)),
    (("search", "--help"), ("Filter on the items, a JSON object.", "Examples:")),
]


@pytest.fixture
def small(empty_directory):
    async def work():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            for number in (1, 2):
                state = {"text": "words and words"[: number * 6]}
                name = "second-wind-by-the-isles-of-scilly"
                await backend.checkpointer.save(state, name, f"c{number}", {"turn": number})
            await backend.store.put(("n",), "a-key-of-some-length", "A boat, a boat, a boat.")
            fact = Memory("user", "allergy:walnuts", "The user is allergic to walnuts.")
            await LLMMemoryManager(backend.store).save([fact])

    asyncio.run(work())


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize(("arguments", "shown"), TABLES)
def test_a_terminal_can_be_read(small, on_a_terminal, columns, arguments, shown):
    """No name is broken, and no line is longer than the terminal is wide."""
    printed = on_a_terminal(columns, *arguments)
    told = " ".join(printed.split())
    if columns == 60:
        assert all(words in told for words in shown), printed
    lines = [line.rstrip() for line in printed.splitlines() if "locus-memory" not in line]
    assert max(map(len, lines)) <= columns, printed


def test_a_message_is_wrapped_below_itself(small, chat, ok, write, on_a_terminal):
    text = "Four thousand pounds for everything, and I want to sail her to Brittany this summer."
    ok("import", write("long.json", [{"role": "user", "content": f"{text}\nA second line."}]))
    printed = on_a_terminal(40, "show", "long")
    first, *others = printed.splitlines()[1:]
    assert first.rstrip() == "   1  user: Four thousand pounds for"
    assert all(line.startswith("      ") for line in others)
    assert others[-1] == "      A second line."
    assert " ".join(printed.split()).endswith(f"user: {text} A second line.")


def test_a_difference_is_one_line_a_message_on_a_pipe(run, odd, on_a_pipe):
    lines = run("diff", "t@1", "t").out.splitlines()
    assert lines[2] == "  1 messages in common"
    assert len(lines) == 4
