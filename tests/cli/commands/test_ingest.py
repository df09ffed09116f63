"""The command `ingest`, and `memories --origin`."""

from __future__ import annotations

import asyncio
import json

import pytest

from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.registry import get_store

SAID = "I am allergic to peanuts."
TURNS = [{"user": SAID, "assistant": "Noted."}, {"user": "Thank you."}]
NOOR = Scope(("locus_memory", "users", "noor"))


def transcript(thread):
    async def read():
        async with get_store("sqlite:./locus.db") as store:
            items = await store.scan(NOOR.transcript(thread), 100)
            return [item.value["text"] for item in items]

    return asyncio.run(read())


@pytest.mark.parametrize("is_lines", [False, True])
def test_turns_are_ingested_once(ok, empty_directory, is_lines):
    """JSON and JSON Lines; the second time, nothing is new."""
    path = empty_directory / "march.json"
    lines = "\n".join(map(json.dumps, TURNS))
    path.write_text(lines if is_lines else json.dumps(TURNS))
    call = ("ingest", path, "--user", "noor", "--date", "2026-03-01", "--json")
    document = ok(*call).json
    (row,) = document["conversations"]
    assert (row["conversation_id"], row["agent_id"], row["recorded"]) == ("march", "agent", 2)
    assert document["pending"] == 0
    (memory,) = ok("memories", "--user", "noor", "--json").json["memories"]
    assert (memory["key"], memory["since"][:10]) == ("allergy:peanuts", "2026-03-01")
    assert transcript("march") == [SAID, "Noted.", "Thank you."]
    again = ok(*call).json
    assert (again["recorded"], again["saved"], again["stored"]) == (0, 0, 0)


def test_a_file_may_hold_several_sessions(ok):
    """What an object says outranks the options."""
    sessions = [
        {"conversation_id": "a", "agent_id": "x", "session_date": "2026-01-01", "turns": TURNS},
        {"turns": TURNS[:1]},
    ]
    call = ("ingest", "-", "--memories", "--agent", "y", "--conversation")
    result = ok(*call, "b", stdin=json.dumps(sessions).encode())
    header, first, second = (line.split() for line in result.out.splitlines())
    assert header == ["thread", "recorded", "episodes", "facts", "pending"]
    assert (first[:2], second[:2]) == (["a", "2"], ["b", "1"])
    again = ok(*call, "c", "--json", stdin=json.dumps(sessions).encode())
    rows = again.json["conversations"]
    assert [(row["conversation_id"], row["recorded"]) for row in rows] == [("a", 0), ("c", 1)]


def test_sessions_of_a_conversation_stay_sessions(ok, monkeypatch):
    """Each has its own date and agent, and what the library ingested is not recorded again."""
    said = [[{"user": text}] for text in ("One.", "Two.", "Three.", "Four.")]
    dates, agents = (None, None, "2020-01-01", None), ("a", "b", "c", "d")

    async def ingest_each():
        async with LLMMemoryManager("sqlite:./locus.db") as manager:
            for agent, date, turns in zip(agents, dates, said, strict=True):
                await manager.for_user("noor").ingest(agent, "x", turns, session_date=date)

    asyncio.run(ingest_each())
    sessions = [
        ({"agent_id": agent} if agent != "a" else {})
        | {"turns": turns}
        | ({"session_date": date} if date else {})
        for agent, date, turns in zip(agents, dates, said, strict=True)
    ]
    call = ("ingest", "-", "--user", "noor", "--memories", "--conversation", "x", "--json")
    assert ok(*call, stdin=json.dumps(sessions).encode()).json["recorded"] == 0
    given = []
    whole = LLMMemoryManager.ingest

    async def seen(self, agent, *rest, **options):
        given.append((agent, (options["session_date"] or "")[:10]))
        return await whole(self, agent, *rest, **options)

    monkeypatch.setattr(LLMMemoryManager, "ingest", seen)
    ok(*call, stdin=json.dumps(sessions).encode())
    assert given == [("agent", ""), ("b", ""), ("c", "2020-01-01"), ("d", "")]


def test_a_session_without_a_date_has_the_date_of_the_option(ok):
    sessions = [{"turns": TURNS[:1], "session_date": "2020-01-01"}, {"turns": TURNS[1:]}]
    call = ("ingest", "-", "--user", "noor", "--memories", "--date", "2024-05-05")
    ok(*call, stdin=json.dumps(sessions).encode())

    async def days():
        async with get_store("sqlite:./locus.db") as store:
            found = await store.scan(NOOR.transcript("stdin"), 100)
            return [each.metadata["date"][:10] for each in found]

    assert asyncio.run(days()) == ["2020-01-01", "2020-01-01", "2024-05-05"]


def test_a_number_names_a_conversation(ok):
    sessions = [{"conversation_id": each, "turns": TURNS} for each in (1, 2)]
    rows = ok("ingest", "-", "--json", stdin=json.dumps(sessions).encode()).json["conversations"]
    assert [row["conversation_id"] for row in rows] == ["1", "2"]


def test_turns_can_be_recorded_only(ok):
    call = ("ingest", "-", "--user", "noor", "--skip-extraction", "--json")
    document = ok(*call, stdin=json.dumps(TURNS).encode()).json
    assert (document["recorded"], document["facts"]) == (2, 0)
    assert transcript("stdin") == [SAID, "Noted.", "Thank you."]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", 1),
        ("[]", 1),
        ("{", 1),
        ('[{"user": 3}]', 1),
        ('[{"text": "Hi"}]', 1),
        ('{"turns": [], "when": 1}', 1),
        ('{"turns": [{"user": "Hi"}], "agent_id": ""}', 1),
        ('[{"turns": [{"user": "Hi"}]}, {"turns": [{"user": 1}]}]', 1),
        ("null", 1),
    ],
)
def test_a_bad_file_is_refused_and_nothing_is_written(run, content, code):
    result = run("ingest", "-", "--user", "noor", stdin=content.encode())
    assert result.code in (code, 2)
    assert result.err.startswith("error: ")
    assert transcript("stdin") == []


def test_a_bad_date_is_refused(run):
    result = run("ingest", "-", "--date", "soon", stdin=json.dumps(TURNS).encode())
    assert result.code in (1, 2)
    assert "session_date" in result.err


@pytest.mark.slow
def test_a_model_that_does_not_answer_leaves_the_turns_waiting(run, monkeypatch):
    """The exit code says so, and the next call distils them."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    endpoint = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    walk = {"user": "We walked along the river to the new bridge, and it rained all the way back."}
    turns = json.dumps([*TURNS, walk]).encode()
    result = run("ingest", "-", *endpoint, "--json", stdin=turns)
    assert result.code == 1
    assert '"pending": 1' in result.out
    assert "run it again" in result.err
    again = run("ingest", "-", "--json", stdin=turns)
    assert (again.code, again.json["facts"], again.json["pending"]) == (0, 1, 0)


def test_an_endpoint_needs_a_model(fails):
    assert "--model" in fails(2, "ingest", "-", "--base-url", "http://x", stdin=b"[]")


def test_memories_are_listed_by_origin(ok):
    """What a tool said, and what a person wrote."""

    async def fill():
        async with LLMMemoryManager("sqlite:./locus.db") as manager:
            await manager.save(
                [
                    Memory("user", "home", "The user lives in Graz."),
                    Memory("reference", "wiki", "The wiki is down.", {"origin": "tool"}),
                ]
            )

    asyncio.run(fill())
    for origin, keys in (("tool", ["wiki"]), ("person", ["home"]), ("user", [])):
        found = ok("memories", "--origin", origin, "--json").json
        assert [each["key"] for each in found["memories"]] == keys
        assert found["total"] == len(keys)
