"""Searches of notes and turns: by origin, and with the relevance of a search of memories."""

from __future__ import annotations

import json

import pytest

from locus_memory.agent.toolkit.search_tool import memory_tools
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message, ToolCall
from locus_memory.testing import FakeEmbedder
from tests.memory.transcripts import transcript_puts

DAY = "2026-03-01T10:00:00.000000+00:00"
SAID = [
    Message.user("Hello there, how are things?"),
    Message.assistant("Fine. What are you up to?"),
    Message.user("I planted a walnut tree in Graz."),
    Message.assistant("A walnut needs much room."),
    Message.user("There is a meadow behind the house."),
    Message.assistant("Then it will do well."),
    Message.user("I will water it every morning."),
    Message.assistant("Good luck with that."),
]
NOTES = [
    ("trees", [("The user planted a walnut tree.", ""), ("Walnuts cost 9 euros.", "tool")]),
    ("prices", [("A page says that walnuts are dear.", "tool"), ("The user likes tea.", "")]),
    ("advice", [("The assistant advised against walnuts.", "assistant")]),
    ("boats", [("The user bought a boat.", "")]),
]


@pytest.fixture(params=["memory", "sqlite", "vectors"])
async def manager(request, tmp_path):
    embedder = FakeEmbedder() if request.param == "vectors" else None
    store = SQLiteStore(tmp_path / "a.db") if request.param == "sqlite" else InMemoryStore()
    async with LLMMemoryManager(store, embedder=embedder) as made:
        scope = Scope(made.namespace)
        episodes = [
            Episode(
                session_id=name,
                started_at=DAY,
                ended_at=DAY,
                notes=tuple(Note(text, origin=origin) for text, origin in notes),
            )
            for name, notes in NOTES
        ]
        await store.put_batch([episode_put(scope, each) for each in episodes])
        await store.put_batch(transcript_puts(scope, "trees", SAID, 1, DAY))
        await made.save(Memory("user", "tree", "The user has a walnut tree.", {"origin": "user"}))
        yield made
    await store.close()


async def test_a_turn_beside_one_that_matches_is_not_found(manager):
    hits = await manager.search_transcript("walnut", 8)
    assert {hit.item.metadata["number"] for hit in hits} == {3, 4}
    assert all(hit.relevance > 0.5 for hit in hits)
    assert not await manager.search_transcript("zebra", 8)


async def test_turns_are_found_by_their_speaker(manager):
    for origin, number in (("user", 3), ("assistant", 4)):
        (hit,) = await manager.search_transcript("walnut", 8, origins=[origin])
        assert hit.item.metadata["number"] == number
    assert len(await manager.search_transcript("walnut", origins=["user", "assistant"])) == 2
    assert not await manager.search_transcript("walnut", origins=["tool", "person"])


async def test_notes_are_found_by_their_origin(manager):
    found = await manager.search_episodes("walnuts", 8)
    assert {each.session_id for each, _ in found} == {"trees", "prices", "advice"}
    assert all(0.5 < score <= 1 for _, score in found)
    # Of the prices, only the note of a tool matches.
    ((mine, _),) = await manager.search_episodes("walnuts", 8, origins=["user"])
    assert [note.text for note in mine.notes] == ["The user planted a walnut tree."]
    told = await manager.search_episodes("walnuts", 1, origins=["tool"])
    assert [note.origin for each, _ in told for note in each.notes] == ["tool"]
    assert len(told) == 1
    assert not await manager.search_episodes("walnuts", 8, origins=["person"])
    assert not await manager.search_episodes("event", 8)
    # One word of very many, in a text about something else.
    assert not await manager.search_episodes(" ".join(f"zork{n}" for n in range(60)) + " walnut")


async def test_episodes_are_listed_by_origin(manager):
    listed = await manager.episodes(origins=["assistant"])
    assert [each.session_id for each in listed] == ["advice"]
    assert len(await manager.episodes()) == len(NOTES)


async def test_a_wrong_origin_is_refused_everywhere(manager):
    for search in (manager.search, manager.search_episodes, manager.search_transcript):
        with pytest.raises(InvalidArgumentError, match="origin is one of"):
            await search("walnut", origins=["friend"])
    with pytest.raises(InvalidArgumentError, match="origin is one of"):
        await manager.episodes(origins="user")


async def test_a_tool_searches_each_layer_by_origin_on_one_scale(manager):
    (tool,) = memory_tools(manager)

    async def found(scope, **more):
        arguments = {"scope": scope, "query": "walnut", **more}
        result = await tool.run(ToolCall(name=tool.spec.name, arguments=arguments))
        assert result.error is None
        return json.loads(result.content)

    for scope, count in (("facts", 1), ("notes", 3), ("transcript", 2)):
        rows = await found(scope)
        assert len(rows) == count
        assert all(0.5 < row["score"] <= 1 for row in rows)
        assert not await found(scope, origins=["import"])
    assert len(await found("transcript", origins=["assistant"])) == 1
    arguments = {"scope": "facts", "query": "walnut", "origins": ["friend"]}
    assert (await tool.run(ToolCall(name=tool.spec.name, arguments=arguments))).error
