"""Every list that is cut says how much it left out, and the command that shows it."""

from __future__ import annotations

import asyncio
import re
import shlex

import pytest

from locus_memory.cli.printing import paging
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.registry import open_backend

NOTE = re.compile(
    r"\((?:[\d,]+ |at least [\d,]+ )?more(?: keys| namespaces)?: locus-memory (.+)\)\n"
)


@pytest.fixture
def filled(empty_directory):
    """Store 251 threads, 300 keys, 120 namespaces, 30 checkpoints and 105 memories."""

    async def work():
        async with open_backend("sqlite:./locus.db", state_type=None) as backend:
            for number in range(251):
                await backend.checkpointer.save({"n": number}, f"t{number:03}")
            for number in range(30):
                await backend.checkpointer.save({"n": number}, "long", f"c{number:02}")
            puts = [(("n", "x"), f"k{number:03}", f"boat {number}") for number in range(300)]
            puts += [(("n", f"y{number:03}"), "k", 1) for number in range(119)]
            await backend.store.put_batch(puts)
            manager = LLMMemoryManager(backend.store, max_memories=1_000)
            await manager.save(
                [Memory("user", f"m{n:03}", f"Fact {n} of many.") for n in range(105)]
            )

    asyncio.run(work())


LISTS = [
    (("threads",), "152 more", "threads", "thread_id", 252),
    (("threads", "--prefix", "t1", "--limit", "30"), "70 more", "threads", "thread_id", 100),
    (("ls", "n/x"), "200 more keys", "items", "key", 300),
    (("ls", "n/x", "--limit", "150"), "150 more keys", "items", "key", 300),
    (("checkpoints", "long"), "10 more", "checkpoints", "checkpoint_id", 30),
    (("memories",), "5 more", "memories", "key", 105),
    (("search", "boat", "-n", "n/x", "--limit", "120"), "more", "items", "key", 300),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", LISTS)
def test_a_list_that_is_cut_leads_to_its_end(run, filled, case):
    """The command that each note names shows the next page, until all rows were seen once."""
    arguments, says, rows, name, total = case
    seen, notes = [], []
    while True:
        page = run(*arguments, "--json")
        assert (page.code, page.err) == (0, "")
        seen += [row[name] for row in page.json[rows]]
        told = run(*arguments)
        assert "more" not in told.out
        assert (page.json["next"] is None) == (told.err == "")
        if not told.err:
            break
        assert NOTE.fullmatch(told.err), told.err
        notes.append(told.err)
        arguments = shlex.split(NOTE.fullmatch(told.err)[1])
    assert notes[0].startswith(f"({says}: locus-memory ")
    assert len(seen) == len(set(seen)) == total


@pytest.mark.slow
def test_namespaces_are_told_of_too(run, ok, filled):
    page = ok("ls", "--json").json
    assert (len(page["namespaces"]), page["more_namespaces"]) == (100, 121 - 100)
    told = run("ls", "n", "--limit", "20")
    assert told.err == "(100 more namespaces: locus-memory ls --limit 120 n)\n"
    assert len(ok("ls", "n", "--limit", "120", "--json").json["namespaces"]) == 120
    told = run("ls")
    after = page["next"]
    assert told.err == f"(21 more namespaces: locus-memory ls --after {after})\n"
    rest = ok("ls", "--after", after, "--json").json
    assert (len(rest["namespaces"]), rest["next"]) == (21, None)


@pytest.mark.slow
def test_a_cut_list_says_so_on_stderr_only(run, filled, on_a_pipe):
    """What reads a pipe gets rows, and nothing else."""
    for arguments in (*(each[0] for each in LISTS), ("ls",), ("ls", "n", "--limit", "20")):
        done = run(*arguments)
        assert NOTE.fullmatch(done.err), arguments
        assert "more" not in done.out


@pytest.mark.slow
def test_what_is_counted_has_an_end(run, filled, monkeypatch):
    monkeypatch.setattr("locus_memory.cli.printing.paging.COUNTED", 50)
    monkeypatch.setattr("locus_memory.cli.commands.threads.threads.COUNTED", 50)
    monkeypatch.setattr("locus_memory.cli.commands.items.COUNTED", 50)
    assert run("threads").err.startswith("(at least 50 more: locus-memory threads --")
    assert run("ls", "n/x").err.startswith("(at least 50 more keys: locus-memory ls --")


@pytest.mark.slow
def test_the_smallest_limit_leads_on(run, filled):
    told = run("threads", "--limit", "1", "--prefix", "t")
    assert told.err.startswith("(250 more: locus-memory threads ")
    following = shlex.split(NOTE.fullmatch(told.err)[1])
    assert run(*following, "--json").json["threads"][0]["thread_id"] == "t001"


@pytest.mark.parametrize("key", ["it's", "two  spaces", "-dash", "é ☃", "a\tb", "back\\slash\n'x'"])
def test_the_command_is_one_that_a_shell_reads(run, ok, key):
    """Names come back from the shell as they are, whatever is in them."""
    for name in (key, f"{key}z"):
        ok("put", "--", "n", name, "1")
    told = run("ls", "n", "--limit", "1").err
    command = NOTE.fullmatch(told)[1]
    if key == paging.visible_name(key):
        assert ok(*shlex.split(command), "--json").json["items"][0]["key"] == f"{key}z"
    else:
        assert "$'" in command
        assert not set(command) & {"\t", "\n"}


def test_a_namespace_that_looks_like_an_option(run, ok):
    for key in ("a", "b"):
        ok("put", "--", "-n", key, "1")
    told = run("ls", "--limit", "1", "--", "-n").err
    assert told == "(1 more keys: locus-memory ls --limit 1 --after a -- -n)\n"
    arguments = shlex.split(NOTE.fullmatch(told)[1])
    assert [item["key"] for item in ok("--json", *arguments).json["items"]] == ["b"]


def test_the_command_names_the_database_without_its_password(run, ok):
    for key in ("a", "b"):
        ok("--url", "sqlite:./x.db", "put", "n", key, "1")
    told = run("--url", "sqlite:./x.db", "ls", "n", "--limit", "1").err
    assert told == "(1 more keys: locus-memory --url sqlite:./x.db ls --limit 1 --after a n)\n"
    assert list(paging._values("url", "redis://ada:s3cret@host/0")) == ["redis://***@host/0"]
