"""Each command has `--json`, and a test with SIGKILL in its middle."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest
import typer

from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.cli.app import app
from locus_memory.registry import open_backend

ROOT = Path(__file__).parents[2]

WITHOUT_JSON = {
    "serve": "it serves until it is stopped, and prints its address",
    "ui": "it serves until it is stopped, and prints its address",
}

READS = "it reads, and writes nothing of the user's"
ONE_WRITE = "its change is one transaction of the database"
KILLS = {
    # It kills its own processes.
    "demo": "tests/cli/test_demo.py::test_every_check_holds",
    "doctor": READS,
    "verify": READS,
    "chat": "tests/agent/test_killed.py::test_finished_tools_are_never_run_again",
    "mcp": "integration/test_mcp_processes.py::test_a_killed_host_loses_nothing_that_was_confirmed",
    "mcp import": "integration/test_command_kills.py::test_killed_between_two_writes",
    "serve": "each request is a call of the library, whose kills are those of the databases",
    "ui": "each request is a call of the library, whose kills are those of the databases",
    "plug": "each file is replaced at once; a kill between two leaves the others to the next call",
    "presets": READS,
    "memories": READS,
    "remember": ONE_WRITE,
    "history": READS,
    "undo": ONE_WRITE,
    "forget": "integration/test_deletion_kills.py"
    "::test_forgetting_a_user_is_completed_by_the_next_run",
    "identity": READS,
    "identity add": ONE_WRITE,
    "identity remove": ONE_WRITE,
    "notes": READS,
    "episodes": READS,
    "recall": READS,
    "why": READS,
    "ingest": "integration/test_command_kills.py::test_killed_between_two_writes",
    "consolidate": "integration/test_command_kills.py::test_killed_between_two_writes",
    "threads": READS,
    "threads rm": "integration/test_command_kills.py::test_killed_between_two_writes",
    "checkpoints": READS,
    "show": READS,
    "diff": READS,
    "fork": ONE_WRITE,
    "prune": "integration/test_kills.py::test_a_removal_is_all_or_nothing",
    "vacuum": "integration/test_command_kills.py::test_killed_between_two_writes",
    "stats": READS,
    "import": "tests/cli/commands/test_transfer.py"
    "::test_killed_by_sigkill_it_goes_on_where_it_stopped",
    "export": "integration/test_copy_kills.py::test_an_archive_has_its_name_once_it_is_whole",
    "ls": READS,
    "get": READS,
    "put": ONE_WRITE,
    "rm": ONE_WRITE,
    "search": READS,
    "reembed": "integration/test_copy_kills.py::test_new_vectors_go_on_where_they_stopped",
    "eval": READS,
    "migrate": "integration/test_transfer_kills.py::test_a_migration_survives_sigkill",
    "backup": "integration/test_copy_kills.py::test_a_backup_has_its_name_once_it_is_whole",
    "restore": "integration/test_copy_kills.py::test_a_restoration_is_all_or_nothing",
    "docs": READS,
    "docs add": "integration/test_command_kills.py::test_killed_between_two_writes",
    "docs search": READS,
    "docs ls": READS,
    "docs rm": "integration/test_command_kills.py::test_killed_between_two_writes",
    "tree": READS,
    "cat": READS,
    "find": READS,
    "compact": "integration/test_deletion_kills.py::test_compacting_loses_nothing",
    "audit-deletion": "integration/test_deletion_kills.py::test_an_audit_changes_nothing",
    "retain": "integration/test_retention_kills.py::test_killed_anywhere",
    "rotate": "integration/test_rotation_kills.py::test_killed_anywhere",
    "models": READS,
    "models list": READS,
    "models fetch": "the folder of a model has its name once it is whole and checked",
    "models path": READS,
}
"""The test of each command that is killed, or why there is none."""

FORMATS = {
    "archive": "integration/test_copy_kills.py"
    "::test_an_import_that_is_repeated_is_the_same_database",
    "langgraph": "tests/integrations/langgraph/test_importing.py::test_a_kill_loses_nothing",
    "langgraph-store": "integration/test_import_kills.py::test_items_of_a_store_of_langgraph",
    "openai-agents": "integration/test_import_kills.py::test_sessions_of_openai_agents",
    "adk": "integration/test_import_kills.py::test_sessions_of_adk",
    "mem0": "integration/test_import_kills.py::test_memories_of_mem0",
    "osaurus": "integration/test_import_kills.py::test_memories_of_mem0",
}
"""The same of each format of `import` that has code of its own."""


def found(command, path=()):
    """Return the commands of a group by their names, those below it included."""
    below = getattr(command, "commands", {})
    own = {" ".join(path): command} if path else {}
    for name in below:
        own |= found(below[name], (*path, name))
    return own


COMMANDS = found(typer.main.get_command(app))


def test_every_command_is_in_the_table():
    assert list(KILLS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_json(name):
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert ("--json" in options) is (name not in WITHOUT_JSON)


@pytest.mark.parametrize("name", [*KILLS, *FORMATS])
def test_the_killed_test_is_there(name):
    told = KILLS.get(name) or FORMATS[name]
    if told in (READS, ONE_WRITE) or "::" not in told:
        return
    file, _, test = told.partition("::")
    text = (ROOT / file).read_text("utf-8")
    assert re.search(rf"def {test}\(", text)
    assert "kill" in text.lower()


CALLS = {
    "remember": ["remember", "Noor likes oolong tea.", "--key", "tea"],
    "undo": ["undo", "boat"],
    "identity add": ["identity", "add", "Always answer in English."],
    "identity remove": ["identity", "remove", "{identity}"],
    "fork": ["fork", "t", "copy"],
    "put": ["put", "notes", "k", "1"],
    "rm": ["rm", "notes", "--yes"],
}


def test_there_is_a_call_of_each_command_of_one_write():
    assert set(CALLS) == {name for name, told in KILLS.items() if told == ONE_WRITE}


@pytest.fixture
def filled(ok, empty_directory):
    """A database with something to change; the id of a sentence of the identity."""

    async def fill():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            for turn in range(3):
                await backend.checkpointer.save({"turn": turn}, "t", f"c{turn}")

    asyncio.run(fill())
    for key in ("a", "b"):
        ok("put", "notes", key, "1")
    for text in ("The boat is red.", "The boat is blue."):
        ok("remember", text, "--key", "boat")
    ok("identity", "add", "Never use emoji.")
    return ok("identity", "--json").json["overrides"][0]["id"]


@pytest.mark.parametrize("name", CALLS)
def test_a_command_of_one_write(name, filled, ok, monkeypatch):
    calls = Counter()
    for owner, verb in ((SQLiteDatabase, "write"), (SQLiteStore, "clear_namespace")):
        monkeypatch.setattr(owner, verb, counting(calls, getattr(owner, verb)))
    ok(*(each.format(identity=filled) for each in CALLS[name]))
    # What runs were shown is dropped before and after: without it, they read what is there.
    dropped = 0 if name == "rm" else calls["clear_namespace"]
    assert calls["write"] - dropped == 1


def counting(calls, verb):
    """Return a method that counts its calls."""

    async def counted(*arguments, **options):
        calls[verb.__name__] += 1
        return await verb(*arguments, **options)

    return counted
