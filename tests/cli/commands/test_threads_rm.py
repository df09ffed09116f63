from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from locus_memory.registry import open_backend
from locus_memory.testing.fakes import FakeClock


def names(result):
    return [row["thread_id"] for row in result.json["threads"]]


def test_rm_deletes_what_it_names_and_nothing_else(ok, fails, sessions, chat):
    done = ok("threads", "rm", "chat", "garden", "chat", "--yes", "--json").json
    assert done["dry_run"] is False
    assert [(row["thread_id"], row["checkpoints"]) for row in done["threads"]] == [
        ("chat", 5),
        ("garden", 3),
    ]
    assert names(ok("threads", "--json")) == ["kitchen"]
    assert fails(1, "show", "chat") == "error: no thread 'chat'\n"
    assert len(ok("ls", "turns/chat", "--json").json["items"]) == 5


def test_rm_deletes_the_records_of_runs(ok):
    for thread in ("a", "b"):
        ok("chat", thread, "--scripted", stdin=b"I live in Lyon.\nWhere do I live?\n")
    assert "Where do I live?" in ok("why", "a").out
    ok("threads", "rm", "a", "--yes")
    assert "no record of a run of the thread 'a'" in ok("why", "a").out
    assert "Where do I live?" in ok("why", "b").out
    assert "Lyon" in ok("recall", "Where do I live?").out


def test_rm_says_what_goes(ok, chat):
    before = ok("threads", "rm", "chat", "--dry-run").out.splitlines()
    assert before[0].split() == ["thread", "checkpoints", "bytes"]
    assert before[1].split()[:2] == ["chat", "5"]
    assert before[-1] == "would delete 1 thread"
    assert names(ok("threads", "--json")) == ["chat"]
    assert ok("threads", "rm", "chat", "--yes").out.splitlines()[-1] == "deleted 1 thread"


def test_rm_deletes_all_or_nothing_of_what_is_not_there(fails, ok, chat):
    assert fails(1, "threads", "rm", "chat", "nobody", "--yes") == "error: no thread 'nobody'\n"
    assert names(ok("threads", "--json")) == ["chat"]


def test_rm_asks_first(fails, ok, chat):
    assert "--yes" in fails(2, "threads", "rm", "chat")
    assert names(ok("threads", "--json")) == ["chat"]


def test_a_person_is_asked(run, ok, chat, old, monkeypatch):
    """The question comes after what goes, on stderr; anything but yes deletes nothing."""
    monkeypatch.setattr("locus_memory.cli.options.confirmation._is_interactive", lambda: True)
    for arguments in (("threads", "rm", "chat"), ("vacuum", "--older-than-days", "4.5")):
        no = run(*arguments, stdin=b"n\n")
        assert (no.code, no.out.strip()) == (1, "")
        assert no.err.endswith("error: nothing was deleted\n")
        assert "delete" in no.err
    assert len(ok("checkpoints", "chat", "--json").json["checkpoints"]) == 5
    assert "thread  checkpoints" in run("threads", "rm", "chat", stdin=b"n\n").err
    assert run("threads", "rm", "chat", stdin=b"y\n").out.endswith("deleted 1 thread\n")
    assert (
        run("vacuum", "--older-than-days", "4.5", stdin=b"y\n")
        .out.strip()
        .startswith("deleted 12 ")
    )


@pytest.mark.parametrize(
    "options", [("--prefix", "c"), ("--after", "c"), ("--all",), ("--limit", "3")]
)
def test_options_of_the_list_are_not_for_rm(run, ok, chat, options):
    done = run("threads", *options, "rm", "chat", "--yes")
    assert done.code == 2
    assert f"{options[0]}" in done.err
    assert names(ok("threads", "--json")) == ["chat"]


def test_the_url_and_json_may_stand_before_rm(ok, write):
    ok("--url", "sqlite:./a.db", "import", write("t.json", [{"role": "user", "content": "hi"}]))
    done = ok("threads", "--url", "sqlite:./a.db", "--json", "rm", "t", "--yes").json
    assert names(ok("--url", "sqlite:./a.db", "threads", "--json")) == []
    assert [row["thread_id"] for row in done["threads"]] == ["t"]


def test_a_thread_that_is_called_rm(ok, write):
    ok("import", write("rm.json", [{"role": "user", "content": "hi"}]))
    ok("threads", "rm", "rm", "--yes")
    assert names(ok("threads", "--json")) == []


@pytest.fixture
def old(empty_directory):
    """Save one checkpoint a day for ten days, until now, in two threads."""

    async def work():
        clock = FakeClock((datetime.now(UTC) - timedelta(days=10)).timestamp())
        async with open_backend("sqlite:./locus.db", state_type=None, clock=clock) as backend:
            for number in range(10):
                for thread in ("a", "b"):
                    await backend.checkpointer.save({"n": number}, thread, f"c{number}")
                clock.advance(timedelta(days=1).total_seconds())
            clock.advance(-timedelta(days=20).total_seconds())
            await backend.checkpointer.save({"n": 1}, "older", "only")

    asyncio.run(work())


def test_vacuum_takes_what_is_old_of_every_thread(ok, old):
    planned = ok("vacuum", "--older-than-days", "4.5", "--dry-run", "--json").json
    assert (planned["dry_run"], planned["deleted"], planned["damaged"]) == (True, 12, [])
    assert sum(row["checkpoints"] for row in ok("threads", "--json").json["threads"]) == 21
    done = ok("vacuum", "--older-than-days", "4.5", "--yes", "--json").json
    assert (done["dry_run"], done["deleted"]) == (False, 12)
    left = {row["thread_id"]: row["checkpoints"] for row in ok("threads", "--json").json["threads"]}
    assert left == {"a": 4, "b": 4, "older": 1}
    assert set(done["disk_bytes"]) == {"before", "after"}
    again = ok("vacuum", "--older-than-days", "4.5", "--yes").out.splitlines()
    assert again[0] == "deleted 0 checkpoints older than 4.5 days"
    assert again[1].startswith("on disk: ")


def test_vacuum_counts_the_pending_writes_of_checkpoints_that_go(ok, empty_directory):
    """Three of the first checkpoint, and one whose thread is gone; not those of the newest."""

    async def work():
        clock = FakeClock((datetime.now(UTC) - timedelta(days=10)).timestamp())
        async with open_backend("sqlite:./locus.db", state_type=None, clock=clock) as backend:
            for name in ("first", "newest"):
                await backend.checkpointer.save({}, 'langgraph:["t",""]', name)
                for number in range(3):
                    state, beside = {"n": number}, {"of": name}
                    thread = 'langgraph:["t","","writes"]'
                    await backend.checkpointer.save(state, thread, metadata=beside)
            await backend.checkpointer.save({}, 'langgraph:["u","","writes"]', metadata={"of": "c"})

    asyncio.run(work())
    for mode, count in (("--dry-run", 5), ("--yes", 5), ("--dry-run", 0), ("--yes", 0)):
        assert ok("vacuum", "--older-than-days", "4.5", mode, "--json").json["deleted"] == count


def test_vacuum_asks_first(fails, ok, old):
    assert "--yes" in fails(2, "vacuum")
    assert "--yes" in fails(2, "vacuum", "--older-than-days", "0")
    assert sum(row["checkpoints"] for row in ok("threads", "--json").json["threads"]) == 21


@pytest.mark.parametrize("days", ["-1", "nan", "many"])
def test_vacuum_takes_a_number_of_days(fails, ok, old, days):
    fails(2, "vacuum", "--older-than-days", days, "--dry-run")
    fails(2, "vacuum", "--older-than-days", days, "--yes")


def test_vacuum_of_an_age_beyond_all_time(ok, old):
    assert ok("vacuum", "--older-than-days", "1e9", "--dry-run", "--json").json["deleted"] == 0


def places(result):
    return [row["place"] for row in result.json["checkpoints"]]


def test_checkpoints_by_their_metadata(ok, fails, chat, sessions):
    def found(wanted, thread="chat"):
        return places(ok("checkpoints", thread, "--filter", wanted, "--json"))

    assert found('{"turn": 3}') == [3]
    assert found('{"turn": {"$gt": 3}}') == [5, 4]
    assert found('{"turn": {"$gt": 1, "$lt": 3}}') == [2]
    assert found('{"turn": "three"}') == []
    assert found('{"nobody": 1}') == []
    assert found("{}") == [5, 4, 3, 2, 1]
    assert found('{"turn_id": "D2:1"}', "garden") == [3]


def test_a_filter_pages(run, chat):
    done = run("checkpoints", "chat", "--filter", '{"turn": {"$lt": 5}}', "--limit", "1", "--json")
    assert (places(done), done.json["more"]) == ([4], 3)
    before = ("--before", done.json["next"])
    done = run("checkpoints", "chat", "--filter", '{"turn": 2}', *before, "--json")
    assert places(done) == [2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("turn", "--filter takes a JSON object: "),
        ("3", "--filter takes a JSON object, such as "),
        ("", "--filter takes a JSON object: "),
        ("{turn: 3}", "--filter takes a JSON object: "),
        ('{"turn": {"$near": 3}}', "unknown operator '$near'"),
        ('{"$turn": 3}', "unknown operator '$turn'"),
        ('{"turn": 123456789012345678901234567890}', "64 bits"),
    ],
)
def test_a_filter_that_cannot_be_understood(fails, chat, text, says):
    assert says in fails(2, "checkpoints", "chat", "--filter", text)
