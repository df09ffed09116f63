"""The command `why`."""

from __future__ import annotations

import asyncio

from locus_memory import Agent, ScriptedModel, open_backend
from locus_memory.memory import LLMMemoryManager


async def talk(*texts, user=None):
    async with (
        open_backend("sqlite:./locus.db") as backend,
        LLMMemoryManager(backend.store) as memory,
        Agent(ScriptedModel(), checkpointer=backend.checkpointer, memory_manager=memory) as agent,
    ):
        for text in texts:
            await agent.run(text, "trip", user_id=user)


def test_the_newest_run_of_a_thread_of_any_user(ok):
    asyncio.run(talk("I live in Graz.", "Where do I live?", user="ada"))
    lines = ok("why", "trip").out.splitlines()
    assert lines[1:3] == ["message: Where do I live?", "at the end of the system prompt: nothing"]
    assert lines[3:5] == ["in front of the message:", "<memory>"]
    assert any("lives in Graz" in line for line in lines)
    assert lines[0].split("  ")[1].startswith("1 lines, ")


def test_earlier_runs_and_json(ok):
    asyncio.run(talk("I live in Graz.", "Where do I live?", "Thank you!"))
    document = ok("why", "trip", "--limit", "2", "--json").json
    assert (document["user"], document["thread"]) == (None, "trip")
    assert [run["message"] for run in document["runs"]] == ["Thank you!", "Where do I live?"]
    assert "Graz" in document["runs"][1]["tail"]
    [first] = ok("why", "trip", "--offset", "2", "--json").json["runs"]
    assert (first["message"], first["stable"], first["tail"]) == ("I live in Graz.", None, None)


def test_a_message_with_a_secret_is_withheld_and_a_long_one_is_cut(ok):
    asyncio.run(talk("My password is hunter2-Xy9!q.", f"Read \x1b[31m{'this ' * 5_000}."))
    out = ok("why", "trip", "--limit", "2").out
    assert "message: withheld, since it may hold a secret" in out
    assert "hunter2" not in out
    assert "cut here: 15,0" in out
    assert "\\x1b[31m" in out


def test_a_thread_without_a_record(ok):
    asyncio.run(talk("Hello!", user="ada"))
    assert "no record of a run of the thread 'nothing'" in ok("why", "nothing").out
    assert ok("why", "trip", "--user", "bob", "--json").json["runs"] == []


def test_where_nothing_is_it_says_whose_data_there_is(ok):
    asyncio.run(talk("I live in Graz.", user="noor"))
    assert "run; users with data are noor: pass --user" in ok("why").out
    assert "run: did you mean 'noor'?" in ok("why", "--user", "nour").out
    assert "thread 'tirp': did you mean 'trip'?" in ok("why", "tirp").out
    assert "known; users with data are noor: pass --user" in ok("recall", "home?").out
    assert "known: did you mean 'noor'?" in ok("recall", "home?", "--user", "nour").out
    ok("forget", "home", "--user", "noor")
    assert "mean" not in ok("why", "trip").out
    assert "thread 'trip'; users with data are noor" in ok("why", "trip", "--user", "xyz").out
