"""Marks that reorder, break or hide text reach files and pipes as they are, and no terminal."""

from __future__ import annotations

import asyncio
import json

import pytest
from rich.text import Text

from locus_memory.cli.printing.output import marked
from locus_memory.cli.printing.progress import shown_progress
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.registry import open_backend

MARKS = (
    "\u202e\u202a\u202c\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029"
    "\u200b\u2060\u206a\ufeff\x85\x9b\x9d\x90\x7f"
)
CONTROLS = "\x85\x9b\x9d\x90\x7f"
SPELLED = "می\u200cخواهم שלום 👩\u200d💻 क्\u200dष résumé"  # noqa: RUF001 - Persian, not Latin
"""Words and emoji that are spelled with joiners."""
TEXT = f"pay {MARKS} {SPELLED} later"


@pytest.fixture
def stored(empty_directory):
    """Store the marks in names, values, metadata, messages and memories."""

    async def work():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            messages = [
                {"role": "user", "content": TEXT, "id": "m1", "name": f"a{MARKS}"},
                {"role": "assistant", "tool_calls": [{"name": f"t{MARKS}", "arguments": {}}]},
            ]
            for number in (1, 2):
                state = {"messages": messages[:number], "note": TEXT}
                await backend.checkpointer.save(state, f"t{MARKS}", f"c{number}", {"n": TEXT})
            await backend.store.put((f"n{MARKS}",), f"k{MARKS}", {"text": TEXT}, {"m": TEXT})
            await LLMMemoryManager(backend.store).save([Memory("user", f"h{MARKS}", TEXT)])

    asyncio.run(work())


COMMANDS = (
    ("threads",),
    ("ls",),
    ("ls", f"n{MARKS}"),
    ("get", f"n{MARKS}", f"k{MARKS}"),
    ("get", f"n{MARKS}", f"k{MARKS}", "--json"),
    ("checkpoints", f"t{MARKS}"),
    ("show", f"t{MARKS}"),
    ("show", f"t{MARKS}", "--json"),
    ("diff", f"t{MARKS}@c1", f"t{MARKS}@c2"),
    ("memories",),
    ("memories", "--json"),
    ("history", f"h{MARKS}"),
    ("why", f"h{MARKS}"),
    ("search", "later", "-n", f"n{MARKS}", "--explain"),
    ("stats",),
    ("stats", "--deep"),
    ("export", f"t{MARKS}"),
    ("export", f"t{MARKS}", "--format", "jsonl"),
    ("export", "--facts"),
    ("threads", "rm", f"t{MARKS}", "--dry-run"),
    ("forget", f"h{MARKS}", "--dry-run"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_a_mark_on_a_terminal(run, stored, command):
    result = run(*command)
    assert result.code == 0, result
    assert not set(MARKS) & set(result.out + result.err)


@pytest.mark.parametrize("reference", ["none", f"none{MARKS}"])
def test_no_error_prints_a_mark_on_a_terminal(run, stored, reference):
    result = run("show", reference)
    assert result.code == 1
    assert not set(MARKS) & set(result.out + result.err)


@pytest.mark.parametrize("kind", ["openai", "jsonl"])
def test_an_export_on_a_terminal_is_the_same_document(run, stored, monkeypatch, kind):
    shown = run("export", f"t{MARKS}", "--format", kind).out
    monkeypatch.delenv("FORCE_COLOR")
    piped = run("export", f"t{MARKS}", "--format", kind).out
    lines = [shown], [piped]
    if kind == "jsonl":
        lines = shown.splitlines(), piped.split("\n")[:-1]
    assert [json.loads(line) for line in lines[0]] == [json.loads(line) for line in lines[1]]
    assert TEXT in piped
    assert SPELLED in shown


@pytest.mark.parametrize("command", [("export", "--facts"), ("memories",), ("get",)])
def test_a_pipe_gets_marks_as_they_are(run, stored, on_a_pipe, command):
    names = (f"n{MARKS}", f"k{MARKS}") if command == ("get",) else ()
    out = run(*command, *names).out
    assert set(MARKS) - set(CONTROLS) <= set(out)
    assert SPELLED in out


def test_a_text_keeps_its_styles_unless_it_has_a_mark():
    styled = Text("plain", style="bold").append(" red", style="red")
    assert marked(styled) is styled
    assert marked(Text("a\u202eb", style="bold")) == Text(r"a\u202eb", style="bold")
    assert marked(3) == 3
    assert marked(SPELLED) == SPELLED


def test_a_progress_bar_shows_no_mark(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with shown_progress() as progress:
        progress.add_task(f"t{MARKS}\x1b[31m{SPELLED}")
        shown = progress.columns[0].render(progress.tasks[0]).plain
    assert not (set(MARKS) | {"\x1b"}) & set(shown)
    assert SPELLED in shown
