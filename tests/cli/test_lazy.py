"""Commands are imported and built when they are called."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from locus_memory.cli.app import app
from locus_memory.cli.lazy import CommandEntry, LazyCommands

LOADED = """
import json, sys
from locus_memory.cli.app import run
code = run(sys.argv[1:])
loaded = [name for name in sys.modules if name.startswith("locus_memory.cli.commands.")]
print(json.dumps([code, sorted(loaded)]))
"""


def loaded(*arguments):
    """Return the exit code, and the modules of commands that were imported."""
    call = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(call, capture_output=True, check=True, text=True)
    code, names = json.loads(done.stdout.splitlines()[-1])
    return code, {name.rpartition(".")[2] for name in names}


@pytest.mark.slow
def test_a_command_imports_itself_alone(empty_directory):
    assert loaded("--version") == (0, set())
    assert loaded("put", "a", "k", "1") == (0, {"items"})
    assert loaded("models", "list") == (0, {"models"})
    assert loaded("nothing") == (2, set())


def test_a_command_is_built_once_and_a_name_needs_none():
    commands = LazyCommands(
        {"get": CommandEntry("commands.items", "get", "x"), "no": CommandEntry("x", "y", "z")}
    )
    assert list(commands) == ["get", "no"]
    assert ("get" in commands, "put" in commands, len(commands)) == (True, False, 2)
    assert commands["get"] is commands.get("get")
    assert (commands["get"].name, commands["get"].rich_help_panel) == ("get", "x")
    assert commands.get("put") is None
    commands["own"] = command = object()
    assert (list(commands), commands["own"]) == (["get", "no", "own"], command)
    with pytest.raises(TypeError, match="cannot be removed"):
        del commands["get"]
    with pytest.raises(ModuleNotFoundError):
        _ = commands["no"]


def test_the_app_has_no_command_of_its_own():
    """Typer would build it for every call."""
    assert (app.registered_commands, app.registered_groups) == ([], [])
