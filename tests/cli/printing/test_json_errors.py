"""With `--json`, stdout is one JSON document also where the command fails."""

from __future__ import annotations

import json

import pytest

from locus_memory.errors import ModelUnavailableError


@pytest.mark.parametrize(
    "case",
    [
        (1, "CommandError", ("threads",)),
        (1, "CommandError", ("get", "n", "k")),
        (2, "MissingParameter", ("diff", "a")),
        (2, "BadParameter", ("ls", "--limit", "many")),
        (2, "UsageError", ("get", "a//b", "k")),
        (2, "NoSuchOption", ("threads", "--nonsense")),
        (2, "UsageError", ("--url", "nosql:x", "threads")),
        (1, "BackendCorruptError", ("--url", "sqlite:./text.db", "threads")),
        (2, "UsageError", ("threads", "rm", "t")),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_error_is_a_document(run, write, case, first):
    code, kind, arguments = case
    write("text.db", "this is a text file, and far too long to be an empty database" * 20)
    if arguments == ("threads", "rm", "t"):
        assert run("import", write("t.json", [{"role": "user", "content": "hello"}])).code == 0
    plain = run(*arguments)
    done = run("--json", *arguments) if first else run(*arguments, "--json")
    assert done.code == plain.code == code
    assert plain.out == ""
    assert done.err == plain.err
    error = done.json["error"]
    assert set(error) == {"type", "message", "hint"}
    assert done.err == f"error: {error['message']}\n"
    assert error["type"] == kind
    assert (error["hint"] == "locus-memory COMMAND --help") == (code == 2)


def test_what_is_wrong_says_what_helps(run, ok):
    ok("put", "n", "k", "1")
    hints = {
        ("show", "nobody"): "locus-memory threads",
        ("search", "x", "--exact"): "locus-memory COMMAND --help",
        ("get", "n", "other"): None,
    }
    for arguments, hint in hints.items():
        assert run(*arguments, "--json").json["error"]["hint"] == hint


def test_a_bug_is_a_document_too(run, ok, monkeypatch):
    ok("put", "n", "k", "1")
    monkeypatch.setattr("locus_memory.cli.commands.items._get", None)
    error = run("get", "n", "k", "--json").json["error"]
    assert (error["type"], error["hint"]) == ("TypeError", None)


def test_json_that_is_an_argument_is_none(run, ok):
    """After `--`, all words are arguments."""
    ok("put", "n", "k", "1")
    done = run("get", "n", "--", "--json")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: no item '--json' in n\n"


def test_a_failed_check_is_in_its_document(run, write):
    """What `doctor` answers says so already: there is no second document."""
    write("locus.db", "this is a text file, and far too long to be an empty database" * 20)
    done = run("doctor", "--json")
    assert done.code == 1
    assert json.loads(done.out)["ok"] is False
    assert done.err.startswith("error: ")


def test_each_message_of_a_chat_has_a_line(run, monkeypatch):
    async def fail(*_, **__):
        raise ModelUnavailableError("the model does not answer")

    monkeypatch.setattr("locus_memory.chat.scripted.ScriptedModel.__call__", fail)
    done = run("chat", "t", "--scripted", "--json", stdin=b"one\ntwo\n")
    documents = [json.loads(line) for line in done.out.splitlines()]
    assert [each["error"]["type"] for each in documents] == ["ModelUnavailableError"] * 2
    assert done.code == 1
    assert done.err.splitlines()[-1] == "error: messages without an answer: 2"


def test_the_exit_codes_are_those_of_people(run):
    for arguments in (("threads",), ("nonsense",), ("ls", "--limit", "many")):
        assert run(*arguments).code == run(*arguments, "--json").code
