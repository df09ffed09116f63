"""The commands `identity` and `notes`."""

from __future__ import annotations

import asyncio

from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.registry import open_backend

RULE = "Always answer in English."


def test_a_sentence_is_fixed_listed_and_removed(ok):
    added = ok("identity", "add", RULE, "--user", "ada", "--json").json
    assert added["text"] == RULE
    lines = ok("identity", "--user", "ada").out.splitlines()
    assert lines[0].split() == ["id", "text", "since"]
    assert lines[1].split()[0] == added["id"][:8]
    assert ok("identity", "--user", "ada", "--json").json["overrides"] == [
        {"id": added["id"], "text": RULE, "created_at": added["created_at"]}
    ]
    assert RULE in ok("identity", "remove", added["id"][:6], "--user", "ada").out
    assert "nothing is fixed for user 'ada'" in ok("identity", "--user", "ada").out


def test_nobody_else_has_the_sentence(ok):
    ok("identity", "add", RULE, "--user", "ada")
    assert ok("identity", "--user", "bob", "--json").json["overrides"] == []
    assert ok("identity", "--json").json["overrides"] == []


def test_an_unknown_id_removes_nothing(ok, run):
    ok("identity", "add", RULE)
    refused = run("identity", "remove", "zz")
    assert refused.code == 2
    assert "no fixed sentence has the id 'zz'" in refused.err
    assert len(ok("identity", "--json").json["overrides"]) == 1


def test_options_before_the_subcommand_are_refused(run):
    """They would be ignored, and the sentence would be nobody's."""
    refused = run("identity", "--user", "ada", "add", RULE)
    assert refused.code == 2
    assert "--user stands after 'identity add'" in refused.err


def test_an_empty_and_a_long_sentence_are_refused(run):
    for text in ("  ", "x" * 301):
        assert "1 to 300 characters" in run("identity", "add", text).err


def test_a_sentence_that_does_not_fit_is_refused(run, ok):
    """It would be silent, and the person would trust that it holds."""
    for number in range(15):
        ok("identity", "add", f"{number}: {'Say it in short words. ' * 12}")
    refused = run("identity", "add", "\u5b57" * 290)
    assert refused.code == 2
    assert "tokens, and 55 of 1000 are left" in refused.err
    assert len(ok("identity", "--json").json["overrides"]) == 15


def test_a_fixed_sentence_is_a_memory(ok):
    name = ok("identity", "add", RULE, "--user", "ada", "--json").json["id"]
    [row] = ok("memories", "--user", "ada", "--json").json["memories"]
    assert (row["id"], row["content"]) == (name, RULE)
    ok("identity", "remove", name, "--user", "ada")
    ok("undo", row["key"], "--user", "ada")
    assert ok("identity", "--user", "ada", "--json").json["overrides"][0]["id"] == name
    ok("forget", row["key"], "--user", "ada", "--yes")
    assert ok("identity", "--user", "ada", "--json").json["overrides"] == []


def test_episodes_come_newest_first(ok, empty_directory):
    scope = Scope(("locus_memory", "users", "ada"))

    def episode(day: int, summary: str) -> Episode:
        moment = f"2026-03-0{day}T10:00:00.000000+00:00"
        return Episode(
            session_id="trip",
            started_at=moment,
            ended_at=moment,
            notes=(Note(summary), Note("The boat leaves in May.", "decision")),
        )

    async def save() -> None:
        async with open_backend("sqlite:./locus.db") as backend:
            found = [episode(1, "Ada planned a trip."), episode(2, "Ada bought a map.")]
            await backend.store.put_batch([episode_put(scope, each) for each in found])

    asyncio.run(save())
    lines = ok("notes", "--user", "ada").out.splitlines()
    assert lines[0].split() == ["day", "thread", "notes", "salience"]
    assert "Ada bought a map. The boat leaves in May." in " ".join(lines[1].split())
    found = ok("notes", "--user", "ada", "--limit", "1", "--json").json["episodes"]
    assert [each["notes"][0]["text"] for each in found] == ["Ada bought a map."]
    assert len(ok("notes", "--user", "ada", "--origin", "user", "--json").json["episodes"]) == 2
    assert "no notes" in ok("notes", "--user", "ada", "--origin", "tool").out
    assert "no notes" in ok("notes").out


def test_memories_shows_ids_and_use_and_past_moments(ok):
    ok("remember", "Ada lives in Brest.", "--key", "home")
    row = ok("memories", "--json").json["memories"][0]
    assert (row["salience"], row["trust"], row["uses"]) == (0.5, 0.5, 0)
    assert len(row["id"]) == 8
    assert ok("memories", "--at", "2020-01-01", "--json").json["total"] == 0
    assert ok("memories", "--at", "2999-01-01", "--json").json["total"] == 1


def test_a_moment_is_checked(ok, run):
    ok("remember", "Ada lives in Brest.")
    assert (
        "a moment is a datetime, ISO 8601 such as 2026-05-12" in run("memories", "--at", "noon").err
    )


def test_the_memories_of_a_moment_are_searched(ok):
    for city in ("Brest", "Lyon"):
        ok("remember", f"Ada lives in {city}.", "--key", "home")
    first = ok("history", "home", "--json").json["versions"][1]["since"]

    def found(words, at):
        rows = ok("memories", "--at", at, "--query", words, "--json").json["memories"]
        return [row["content"] for row in rows]

    assert found("Lyon", "2999-01-01") == found("Brest", "2999-01-01") == ["Ada lives in Lyon."]
    assert found("Brest", first) == ["Ada lives in Brest."]
    assert found("Lyon", first) == found("Brest", "2020-01-01") == []


def test_memories_shows_trust_and_hits(ok):
    ok("remember", "Ada lives in Brest.", "--key", "home")

    async def recall() -> None:
        async with LLMMemoryManager("sqlite:./locus.db", blend="trust") as manager:
            assert len(await manager.retrieve("Brest")) == 1
            await manager.drain()
            assert await manager.feedback("home", helpful=True)

    asyncio.run(recall())
    row = ok("memories", "--json").json["memories"][0]
    assert (row["trust"], row["hits"], row["uses"]) == (0.62, 1, 1)
