from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from locus_memory.cli.app import app
from locus_memory.cli.printing.examples import EXAMPLES


def commands():
    """Yield the words of each command and the command."""
    top = get_command(app)
    yield "", top
    for name, command in top.commands.items():
        yield name, command
        for below, inner in getattr(command, "commands", {}).items():
            yield f"{name} {below}", inner


COMMANDS = dict(commands())


def test_every_command_has_examples():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples(ok, name):
    text = ok(*name.split(), "--help").out
    shown = text.partition("\nExamples:\n")[2].splitlines()
    assert [line.strip() for line in shown] == list(EXAMPLES[name])
    assert ok(*name.split(), "-h").out == text


@pytest.mark.parametrize("example", [each for group in EXAMPLES.values() for each in group])
def test_an_example_is_understood(example):
    """Its options exist, and its arguments are as many as the command takes."""
    line = re.search(r"locus-memory ([^|<>]*)", example)[1]
    words = shlex.split(line)
    command, context = COMMANDS[""], None
    while True:
        context = command.make_context("x", words, parent=context)
        words = [*context._protected_args, *context.args]
        if not hasattr(command, "commands") or not words:
            break
        command, words = command.commands[words[0]], words[1:]
    assert not words


@pytest.mark.slow
def test_examples_work_on_the_database_of_the_demo(copied, run):
    """They name what `locus-memory demo` leaves, so they can be pasted."""
    for example in (each for group in EXAMPLES.values() for each in group):
        words = shlex.split(example)[1:]
        needs = {
            "--url",
            "--model",
            "--embedder",
            "chats.json",
            "conversations.json",
            "WhatsApp Chat with Bo.txt",
            "one.jsonl",
            "march.jsonl",
            "facts.jsonl",
            "demo",
            "locomo10.json",
            "./handbook",
            "guide.pdf",
            "mcp",
            "serve",
            "ui",
            "langgraph",
            "mem0",
            "memory://notes/boat",
            "memory://notes",
            "rotate",
            "postgresql://localhost/memory",
            "everything.zip",
            "./locus-backup.db",
        }
        if needs.intersection(words) or set(words) & {"|", "<", ">", "eval", "chat"}:
            continue
        done = run(*words)
        asks = words[0] in ("forget", "rm", "undo") or words[1:2] in (["rm"], ["remove"])
        assert done.code == 0 or asks, (example, done)


def test_commands_come_in_groups(ok):
    text = ok("--help").out
    titles = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert titles == [
        "Options", "Getting started", "Memories", "Threads and checkpoints",
        "Store items", "Copies and backups", "Documents", "Resources",
        "Encryption, retention and deletion", "Local models", "Examples",
    ]  # fmt: skip


def complete(words):
    """Return what bash is told that the last word may be."""
    line = ["locus-memory", *words]
    environment = {
        **os.environ,
        "_LOCUS_MEMORY_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(line),
        "COMP_CWORD": str(len(line) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "locus_memory"],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
def test_bash_completes_commands_and_options():
    assert complete(["thr"]) == ["threads"]
    assert complete(["threads", "r"]) == ["rm"]
    assert complete(["fork", "--u"]) == ["--url"]
    assert set(complete([""])) >= {"demo", "vacuum", "import"}


@pytest.mark.slow
def test_the_script_for_the_shell_names_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "locus_memory", "--show-completion", "bash"],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "_LOCUS_MEMORY_COMPLETE=complete_bash" in done.stdout
    assert "complete -o default -F" in done.stdout
    assert " locus-memory" in done.stdout


@pytest.mark.slow
def test_the_package_is_the_command():
    for module in ("locus_memory", "locus_memory.cli"):
        done = subprocess.run(
            [sys.executable, "-m", module, "--version"], capture_output=True, check=False, text=True
        )
        assert done.stdout.startswith("locus-memory "), done


def test_the_package_without_the_extra_says_what_to_install():
    code = """
import runpy, sys
sys.modules["typer"] = None
sys.argv = ["locus_memory", "threads"]
runpy.run_module("locus_memory", run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("locus-memory: needs the 'cli' extra: pip install ")
    assert done.stderr.count("\n") == 1
