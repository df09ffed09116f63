from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.messages import Message
from locus_memory.registry import open_backend
from locus_memory.state import AgentState

# Each might be taken for "ada" by a database that is careless.
NEIGHBOURS = ["ada2", "Ada", "*", "a/da", "ada\x01", "%", "users"]


def tell(ok, user):
    """Let a user tell the scripted agent where they live, twice."""
    lines = b"I live in Lyon.\nI live in Paris now. My name is Kim.\n"
    ok("chat", f"thread of {user}", "--user", user, "--scripted", stdin=lines)
    ok("put", json.dumps(["users", user, "memories"]), "tea", "green")


@pytest.fixture
def told(ok):
    for user in ("ada", "ada2"):
        tell(ok, user)


async def saved(thread, state, user):
    async with open_backend("sqlite:./locus.db") as backend:
        await backend.checkpointer.save(state, thread, metadata={"user_id": user})


def rows():
    """Return everything that the database holds, the indexes of its searches included."""
    with closing(sqlite3.connect("locus.db")) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            name: sorted(map(repr, connection.execute(f'SELECT * FROM "{name}"')))
            for (name,) in tables.fetchall()
        }


def what(ok, user):
    """Return what there is of a user."""
    named = ("--user", user, "--json")
    return (
        ok("memories", *named).json["memories"],
        ok("get", json.dumps(["users", user, "memories"]), "tea", "--json").json,
        ok("show", f"thread of {user}", "--json").json,
        ok("checkpoints", f"thread of {user}", "--json").json,
    )


@pytest.mark.slow
def test_everything_of_a_user(ok, fails):
    for user in ("ada", *NEIGHBOURS):
        tell(ok, user)
    neighbours = {user: what(ok, user) for user in NEIGHBOURS}
    report = ok("forget", "--user", "ada", "--yes", "--json").json
    assert report["dry_run"] is False
    assert [(m["type"], m["key"], m["past"]) for m in report["memories"]] == [
        ("user", "home", [1]),
        ("user", "name", []),
    ]
    assert report["items"] == [{"namespace": ["users", "ada", "memories"], "key": "tea"}]
    assert (report["threads"], report["checkpoints"]) == (["thread of ada"], 6)
    assert {user: what(ok, user) for user in NEIGHBOURS} == neighbours
    assert ok("memories", "--user", "ada").out.startswith("no memories\n")
    fails(1, "show", "thread of ada")
    told = fails(1, "forget", "--user", "ada", "--yes")
    assert told == "error: no data of user 'ada': did you mean 'Ada'?\n"


def test_threads_of_several_users_are_named_before_they_go(ok):
    for number, user in enumerate(("bob", "ada", "bob")):
        asyncio.run(saved("shared", {"turn": number}, user))
    report = ok("forget", "--user", "ada", "--dry-run", "--json").json
    assert (report["threads"], report["shared"]) == (["shared"], [["shared", ["bob"]]])
    told = ok("forget", "--user", "ada", "--dry-run").out
    assert "thread 'shared' goes as a whole, with checkpoints of 'bob'" in told


@pytest.mark.parametrize(
    "asked",
    [
        ("--user", "ada"),
        ("home", "--user", "ada"),
        ("home", "--user", "ada", "--threads"),
        ("--user", "ada", "--query", "Lyon"),
    ],
)
def test_a_dry_run_says_what_a_real_one_does_and_changes_nothing(ok, told, asked):
    before = rows()
    printed = ok("forget", *asked, "--dry-run").out
    planned = ok("forget", *asked, "--dry-run", "--json").json
    assert rows() == before
    done = ok("forget", *asked, "--yes", "--json").json
    assert rows() != before
    assert "would erase" in printed
    for memory in planned["memories"]:
        assert "The user lives in Lyon." in memory.pop("contents") or memory["key"] == "name"
    assert all(item.pop("value") == "green" for item in planned["items"])
    assert {**planned, "dry_run": False} == done


@pytest.mark.slow
def test_a_dry_run_shows_what_it_says_and_a_real_one_does_not(ok, told):
    planned = ok("forget", "--user", "ada", "--dry-run").out
    assert "  user home: The user lives in Paris.\n" in planned
    assert "  user home: The user lives in Lyon.\n" in planned
    assert "  users/ada/memories tea: green\n" in planned
    assert max(map(len, planned.splitlines())) <= 80
    done = ok("forget", "--user", "ada", "--yes").out
    assert "erased  which" in done
    assert not [word for word in ("Lyon", "Paris", "green") if word in done]


@pytest.mark.slow
def test_a_key(ok, fails, told):
    out = ok("forget", "home", "--user", "ada").out
    assert re.search(r"^memories +1  user home", out, re.MULTILINE)
    assert re.search(r"^past versions +1  user home", out, re.MULTILINE)
    assert out.endswith(
        "thread 'thread of ada' still holds the source messages; --threads erases it too\n"
    )
    assert [m["key"] for m in ok("memories", "--user", "ada", "--json").json["memories"]] == [
        "name"
    ]
    fails(1, "history", "home", "--user", "ada")
    fails(1, "undo", "home", "--user", "ada")
    assert fails(1, "forget", "home", "--user", "ada") == (
        "error: no memory 'home' for user 'ada'\n"
    )


def test_a_key_with_its_threads(ok, fails, told):
    ok("fork", "thread of ada", "copy")
    report = ok("forget", "home", "--user", "ada", "--threads", "--yes", "--json").json
    assert report["threads"] == ["copy", "thread of ada"]
    assert [m["key"] for m in report["memories"]] == ["home"]
    fails(1, "show", "copy")


def test_a_query(ok, fails, told):
    assert fails(1, "forget", "--query", "Lyon and Rome", "--user", "ada", "--yes")
    report = ok("forget", "--query", "in Paris?", "--user", "ada", "--yes", "--json").json
    assert [(m["key"], m["is_current"], m["past"]) for m in report["memories"]] == [
        ("home", True, [1])
    ]
    assert len(ok("memories", "--user", "ada2", "--json").json["memories"]) == 2


def test_imported_turns_go_with_their_thread(ok, fails, write):
    for user in ("ada", "bob"):
        said = [{"role": "user", "content": "I live in Lyon."}]
        document = {"id": f"of {user}", "messages": said, "metadata": {"user_id": user}}
        ok("import", write(f"{user}.json", document))
    report = ok("forget", "--user", "ada", "--yes", "--json").json
    assert report["threads"] == ["of ada"]
    assert report["items"] == [{"namespace": ["turns", "of ada"], "key": "000001"}]
    left = [i["namespace"] for i in ok("search", "Lyon", "--json").json["items"]]
    bob = ["locus_memory", "users", "bob"]
    assert sorted(left) == [
        [*bob, "current"],
        [*bob, "transcript", "of bob"],
        ["turns", "of bob"],
    ]


def test_a_key_that_is_not_there_may_be_somebody_elses_or_somebody(fails, told):
    line = fails(1, "forget", "home")
    assert line == ("error: no memory 'home'; user 'ada' has one: pass --user 'ada'\n")
    line = fails(1, "forget", "ada2", "--dry-run")
    assert "to erase all data of the user of that name: forget --user 'ada2'" in line
    assert fails(1, "forget", "--query", "home sweet home", "--dry-run").endswith(
        "with the words 'home sweet home'\n"
    )


@pytest.mark.parametrize(
    "asked", [("--user", "ada"), ("--query", "Lyon"), ("home", "--user", "ada", "--threads")]
)
def test_more_than_a_key_needs_a_yes_where_nobody_can_be_asked(fails, ok, told, asked):
    before = rows()
    line = fails(2, "forget", *asked)
    assert line == (
        "error: stdin is not a terminal, so confirmation is impossible: "
        "pass --yes to erase, or --dry-run to look\n"
    )
    assert rows() == before


@pytest.mark.parametrize(
    "asked",
    [(), ("k", "--query", "w"), ("--user", "ada", "--type", "user"), ("--query", "?", "--yes")],
)
def test_a_wrong_call(fails, ok, told, asked):
    fails(2, "forget", *asked)


ASKED = """
import os, pty, sys
answer = sys.argv.pop(1)
pid, terminal = pty.fork()
if not pid:
    os.execv(sys.executable, [sys.executable, "-m", "locus_memory.cli", *sys.argv[1:]])
shown = b""
while b"[y/N]:" not in shown:
    shown += os.read(terminal, 4096)
os.write(terminal, answer.encode() + b"\\n")
try:
    while piece := os.read(terminal, 4096):
        shown += piece
except OSError:
    pass  # On Linux, a terminal that nobody holds any more ends so.
print(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX terminal")
@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_on_a_terminal_it_shows_what_would_go_and_asks(ok, told, answer, code):
    before = rows()
    done = subprocess.run(
        [sys.executable, "-c", ASKED, answer, "forget", "--user", "ada"],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == code
    assert "would erase" in done.stdout
    assert "user home: The user lives in Paris." in done.stdout
    assert "erase ALL data of user 'ada' permanently? [y/N]:" in done.stdout
    assert (rows() == before) == (answer == "n")
    assert ("nothing was erased" in done.stdout) == (answer == "n")


async def save_in_files(*users):
    async with open_backend("file:./threads") as backend:
        for user in users:
            state = AgentState(metadata={"user_id": user})
            await backend.checkpointer.save(state, f"of {user}")


def test_threads_without_a_store(ok, fails):
    asyncio.run(save_in_files("ada", "bob"))
    url = ("--url", "file:./threads")
    told = "the database has no store: only threads were searched\n"
    assert ok("forget", "--user", "ada", "--dry-run", *url).out.endswith(told)
    out = ok("forget", "--user", "ada", "--yes", *url).out
    assert "threads           1  of ada" in out
    assert out.endswith(told)
    assert fails(1, "forget", "--user", "ada", "--yes", *url) == (
        "error: no data of user 'ada' (the database has no store: only threads were searched)\n"
    )
    report = ok("forget", "--user", "bob", "--yes", "--json", *url).json
    assert (report["has_store"], report["threads"]) == (False, ["of bob"])
    assert "has no store" in fails(1, "forget", "home", *url)


def test_summaries_that_are_elsewhere(ok):
    asyncio.run(summarise("t", ("mine", "sums")))
    assert ok("forget", "--user", "ada", "--dry-run", "--json").json["summaries"] == 0
    elsewhere = ("--summaries", "other", "--summaries", "mine/sums")
    report = ok("forget", "--user", "ada", "--yes", "--json", *elsewhere).json
    assert report["summaries"] == 1
    assert ok("ls").out == "no items\n"


async def summarise(thread, namespace):
    """Save a conversation of ada, and its summary."""
    messages = [Message.user(f"I live in Lyon {number}") for number in range(6)]
    async with open_backend("sqlite:./locus.db") as backend:
        manager = SummarizingManager(4, 2, store=backend, namespace=namespace)
        await manager.async_apply(messages)
        state = AgentState(messages=tuple(messages), metadata={"user_id": "ada"})
        await backend.checkpointer.save(state, thread)


def test_a_report_of_many(ok):
    for number in range(15):
        ok("put", "users/ada", f"k{number:02}\x1b[31m", "1")
    out = ok("forget", "--user", "ada", "--yes").out
    assert "and 3 more" in " ".join(out.split())
    assert "\x1b" not in out
