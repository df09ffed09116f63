"""Memories, their layers and documents over HTTP, on each kind of backend."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory import LLMMemoryManager
from locus_memory.memory import Memory
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.scope import Scope

DIET = {"user": "ada", "type": "user", "key": "diet"}


async def remember(client, content, **fields):
    answer = await client.post("/memory/remember", json={"content": content, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_memory_is_saved_edited_and_taken_back(client):
    saved = await remember(client, "Ada is a vegetarian.", key="diet", user="ada")
    assert (saved["changed"], saved["replaced"]) == (True, None)
    found = await client.get("/memory/item", params=DIET)
    assert found.json()["content"] == "Ada is a vegetarian."
    tag = {"if-match": found.headers["etag"]}
    edited = await client.put(
        "/memory/item", json={**DIET, "content": "Ada is vegan."}, headers=tag
    )
    assert edited.json()["replaced"]["content"] == "Ada is a vegetarian."
    assert edited.headers["etag"] != found.headers["etag"]
    versions = (await client.get("/memory/history", params=DIET)).json()["versions"]
    assert [each["content"] for each in versions] == ["Ada is vegan.", "Ada is a vegetarian."]
    assert [each["until"] is None for each in versions] == [True, False]
    undone = (await client.post("/memory/undo", json=DIET)).json()
    assert undone["current"]["content"] == "Ada is a vegetarian."
    assert undone["taken_back"]["content"] == "Ada is vegan."
    assert (await client.delete("/memory/item", params=DIET)).json() == {"retired": True}
    assert (await client.get("/memory/item", params=DIET)).status_code == 404
    assert (await client.post("/memory/undo", json=DIET)).json()["current"] is not None
    assert (await client.get("/memory/item", params={**DIET, "user": "bob"})).status_code == 404


async def test_a_memory_without_authority_is_vouched_for(client, backend):
    told = Memory("user", "diet", "Ada is a vegetarian.", {"origin": "tool"})
    await LLMMemoryManager(backend.store).for_user("ada").save([told])
    trusted = (await client.post("/memory/trust", json=DIET)).json()
    assert trusted["metadata"]["origin"] == "person"
    undone = (await client.post("/memory/undo", json=DIET)).json()
    assert undone["current"]["metadata"]["origin"] == "tool"
    assert (await client.post("/memory/trust", json={**DIET, "key": "no"})).status_code == 404


async def test_two_users_at_once_lose_nothing(client):
    await remember(client, "old", key="diet", user="ada")
    tag = {"if-match": (await client.get("/memory/item", params=DIET)).headers["etag"]}
    writes = [
        client.put("/memory/item", json={**DIET, "content": f"by writer {n}"}, headers=tag)
        for n in range(5)
    ]
    answers = await asyncio.gather(*writes)
    codes = [answer.status_code for answer in answers]
    assert sorted(codes) == [200, 412, 412, 412, 412]
    won = f"by writer {codes.index(200)}"
    for number, answer in enumerate(answers):
        if answer.status_code == 412:
            assert answer.json()["current"]["content"] == won
            assert answer.json()["yours"]["content"] == f"by writer {number}"
    versions = (await client.get("/memory/history", params=DIET)).json()["versions"]
    assert [each["content"] for each in versions] == [won, "old"]


async def test_an_edit_without_a_tag_keeps_what_it_replaces(client):
    await remember(client, "one", key="diet", user="ada")
    for content in ("two", "three"):
        done = await client.put("/memory/item", json={**DIET, "content": content})
        assert done.status_code == 200
    versions = (await client.get("/memory/history", params=DIET)).json()["versions"]
    assert [each["content"] for each in versions] == ["three", "two", "one"]


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        ({}, {}, 400),
        ({"content": "  "}, {}, 400),
        ({"content": "x" * 20_001}, {}, 422),
        ({"content": "x", "key": "nothing"}, {}, 404),
        ({"content": "x", "key": "nothing"}, {"if-match": '"1"'}, 404),
        ({"content": "x"}, {"if-match": '"7"'}, 412),
        ({"content": "x"}, {"if-match": '"0"'}, 412),
        ({"content": "x"}, {"if-match": "seven"}, 400),
        ({"content": "x"}, {"if-none-match": "*"}, 400),
        ({"content": "x", "type": "nothing"}, {}, 422),
    ],
)
async def test_an_edit_that_cannot_be_changes_nothing(plain, serving, body, headers, code):
    async with serving(plain) as client:
        await remember(client, "old", key="diet", user="ada")
        answer = await client.put("/memory/item", json={**DIET, **body}, headers=headers)
        assert answer.status_code == code, answer.text
        assert (await client.get("/memory/item", params=DIET)).json()["content"] == "old"


async def test_lists_page_in_both_orders(client):
    for number in range(7):
        await remember(client, f"fact {number}", key=f"k{number}", user="ada")
    await remember(client, "a rule", key="rule", type="feedback", user="ada")
    for order, expected in (
        ("key", ["rule", *(f"k{number}" for number in range(7))]),
        ("newest", ["rule", *(f"k{number}" for number in range(6, -1, -1))]),
    ):
        for limit in (1, 3, 8, 100):
            keys, cursor = [], None
            while True:
                asked = {"user": "ada", "limit": limit, "order": order}
                asked |= {} if cursor is None else {"cursor": cursor}
                page = (await client.get("/memory/list", params=asked)).json()
                keys += [each["key"] for each in page["memories"]]
                if (cursor := page["next"]) is None:
                    break
            assert keys == expected
    only = (await client.get("/memory/list", params={"user": "ada", "type": "feedback"})).json()
    assert [each["key"] for each in only["memories"]] == ["rule"]
    assert (await client.get("/memory/list")).json() == {"memories": [], "next": None}
    assert (await client.get("/memory/users")).json() == {"users": ["ada"]}


async def test_what_has_expired_is_not_shown_and_what_was_true_can_be(client):
    await remember(client, "one", key="diet", user="ada")
    seen = (await client.get("/memory/item", params=DIET)).json()["since"]
    await client.put("/memory/item", json={**DIET, "content": "two"})
    then = (await client.get("/memory/list", params={"user": "ada", "at": seen})).json()
    assert [each["content"] for each in then["memories"]] == ["one"]
    past = {**DIET, "expires_at": "2001-01-01T00:00:00Z"}
    assert (await client.put("/memory/item", json=past)).status_code == 200
    assert (await client.get("/memory/item", params=DIET)).status_code == 404
    for order in ("key", "newest"):
        found = await client.get("/memory/list", params={"user": "ada", "order": order})
        assert found.json()["memories"] == []


async def test_a_search_gives_its_reasons_and_stays_with_its_user(client):
    await remember(client, "Ada is allergic to walnuts.", key="nuts", user="ada")
    await remember(client, "Ada plays the cello.", key="music", user="ada")
    await remember(client, "Bob loves walnuts.", key="nuts", user="bob")
    asked = {"user": "ada", "query": "walnuts"}
    (hit,) = (await client.get("/memory/search", params=asked)).json()["hits"]
    assert hit["memory"]["content"] == "Ada is allergic to walnuts."
    assert "text #1" in hit["why"]
    assert 0 < hit["relevance"] <= 1
    assert hit["memory"]["salience"] > 0


async def test_the_source_of_a_memory_is_its_message(backend, client):
    message = {"id": "m7", "role": "user", "content": "I live in Riga."}
    await backend.checkpointer.save({"messages": [message]}, "trip")
    manager = LLMMemoryManager(backend).for_user("ada")
    facts = {"thread_id": "trip", "message_ids": ["m7"]}
    await manager.save(Memory("user", "diet", "Ada lives in Riga.", facts))
    found = (await client.get("/memory/item", params=DIET)).json()
    assert found["sources"] == [
        {"thread_id": "trip", "message_id": "m7", "place": 1, "text": "I live in Riga."}
    ]


async def test_an_erasure_is_previewed_and_that_of_a_user_is_confirmed(client):
    await remember(client, "Ada is a vegetarian.", key="diet", user="ada")
    await remember(client, "Ada is vegan.", key="diet", user="ada")
    body = {"user": "ada", "key": "diet", "dry_run": True}
    (plan,) = (await client.post("/memory/forget", json=body)).json()["memories"]
    assert plan["contents"] == ["Ada is vegan.", "Ada is a vegetarian."]
    assert (await client.get("/memory/item", params=DIET)).status_code == 200
    everything = {"user": "ada", "dry_run": False}
    for confirm in (None, "", "Ada"):
        answer = await client.post("/memory/forget", json={**everything, "confirm": confirm})
        assert answer.status_code == 400
    done = await client.post("/memory/forget", json={**everything, "confirm": "ada"})
    assert done.json()["memories"][0]["contents"] == []
    assert (await client.get("/memory/item", params=DIET)).status_code == 404
    assert (await client.get("/memory/users")).json() == {"users": []}
    assert (await client.post("/memory/forget", json={"dry_run": True})).status_code == 400


async def test_a_secret_is_not_kept_unless_it_is_insisted_on(plain, serving):
    async with serving(plain) as client:
        body = {"content": "My password is hunter2", "user": "ada"}
        answer = await client.post("/memory/remember", json=body)
        assert answer.status_code == 400
        assert "hunter2" not in answer.text
        assert (await client.post("/memory/remember", json={**body, "force": True})).is_success


async def test_identity_is_written_by_a_person(client):
    body = {"user": "ada", "text": "Always answer in English."}
    done = await client.post("/memory/identity", json=body)
    assert done.status_code == 201
    (fixed,) = done.json()["overrides"]
    again = (await client.get("/memory/identity", params={"user": "ada"})).json()
    assert again["overrides"] == [fixed]
    where = {"user": "ada", "id": fixed["id"]}
    assert (await client.delete("/memory/identity", params=where)).json()["overrides"] == []
    assert (await client.delete("/memory/identity", params=where)).status_code == 400


TURNS = [
    {"user": "I live in Riga.", "assistant": "Noted."},
    {"user": "I am allergic to walnuts.", "assistant": "I will keep that in mind."},
    {"user": "We decided to launch on Friday.", "assistant": "The launch is on Friday."},
]


async def test_a_conversation_of_the_past_is_ingested_once(client, backend):
    body = {
        "agent_id": "helper",
        "conversation_id": "spring",
        "session_date": "2026-03-01",
        "turns": TURNS,
        "user": "ada",
    }
    done = await client.post("/memory/ingest", json=body)
    assert done.status_code == 200, done.text
    assert (done.json()["turns"], done.json()["episodes"], done.json()["pending"]) == (3, 0, 0)
    assert done.json()["facts"] >= 1
    again = (await client.post("/memory/ingest", json=body)).json()
    assert again == {"turns": 0, "episodes": 0, "facts": 0, "pending": 0}
    more = {**body, "turns": [*TURNS, {"user": "My sister is called Eva."}]}
    assert (await client.post("/memory/ingest", json=more)).json()["turns"] == 1
    moment = "2026-03-01T09:00:00+00:00"
    episode = Episode(
        session_id="spring", started_at=moment, ended_at=moment, notes=(Note("Spring."),)
    )
    scope = Scope(("locus_memory", "users", "ada"))
    await backend.store.put_batch([episode_put(scope, episode)])
    episodes = (await client.get("/memory/episodes", params={"user": "ada"})).json()["episodes"]
    assert {each["session_id"] for each in episodes} == {"spring"}
    asked = {"user": "ada", "thread": "spring"}
    turns = (await client.get("/memory/transcript", params=asked)).json()["turns"]
    assert len(turns) == 7
    wanted, found = {**asked, "origin": "user", "limit": 2}, list[str]()
    while page := (await client.get("/memory/transcript", params=wanted)).json():
        found += [each["metadata"]["speaker"] for each in page["turns"]]
        if page["next"] is None:
            break
        wanted["cursor"] = page["next"]
    assert found == ["user"] * sum(each["metadata"]["speaker"] == "user" for each in turns)
    told = {"user": "ada", "origin": "tool"}
    assert (await client.get("/memory/episodes", params=told)).json()["episodes"] == []
    told["origin"] = "friend"
    assert (await client.get("/memory/episodes", params=told)).status_code == 422
    assert (await client.get("/memory/list")).json()["memories"] == []


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": ""},
        {"turns": []},
        {"turns": [{}]},
        {"turns": [{"user": 1}]},
        {"turns": [{"system": "x"}]},
        {"session_date": "someday"},
        {"user": ""},
        {"more": 1},
    ],
)
async def test_an_invalid_ingestion_writes_nothing(plain, serving, change):
    body = {"agent_id": "a", "conversation_id": "c", "turns": TURNS, **change}
    async with serving(plain) as client:
        answer = await client.post("/memory/ingest", json=body)
        assert answer.status_code in {400, 422}, answer.text
    assert await plain.store.list_namespaces(None) == []


async def test_turns_may_only_be_recorded_and_distilled_later(client):
    body = {"agent_id": "a", "conversation_id": "c", "turns": TURNS, "skip_extraction": True}
    done = (await client.post("/memory/ingest", json=body)).json()
    assert (done["turns"], done["facts"], done["episodes"]) == (3, 0, 0)
    assert (await client.post("/memory/sync", json={})).json() == {"pending": 0}


async def test_a_consolidation_is_previewed(client):
    await remember(client, "Ada is a vegetarian.", key="diet", user="ada")
    for dry_run in (True, False):
        done = await client.post("/memory/consolidate", json={"user": "ada", "dry_run": dry_run})
        assert (done.json()["dry_run"], done.json()["scopes"]) == (dry_run, 1)


async def test_memories_are_exported_as_facts(client):
    for number in range(3):
        await remember(client, f"fact {number}", key=f"k{number}", user="ada")
    answer = await client.get("/export/facts", params={"user": "ada"})
    assert answer.text.count("\n") == 3
    nothing = await client.get("/export/facts")
    assert (nothing.status_code, nothing.content) == (200, b"")


async def test_documents_are_added_searched_and_removed(client):
    body = {"source": "guide.md", "content": "The harbour opens at six.", "kind": "markdown"}
    assert (await client.post("/documents", json=body)).json()["added"] == 1
    assert (await client.post("/documents", json=body)).json()["unchanged"] == 1
    (row,) = (await client.get("/documents")).json()["documents"]
    assert (row["source"], row["chunks"]) == ("guide.md", 1)
    asked = {"query": "When does the harbour open?"}
    (chunk,) = (await client.get("/documents/search", params=asked)).json()["chunks"]
    assert chunk["content"] == "The harbour opens at six."
    assert chunk["why"]
    gone = await client.delete("/documents", params={"source": "guide.md"})
    assert gone.json() == {"removed": True}
    assert (await client.get("/documents")).json()["documents"] == []
    assert (await client.delete("/documents")).status_code == 400


async def test_a_search_is_narrowed_to_an_origin(backend, client):
    page = Memory("reference", "page", "Walnuts are healthy.", {"origin": "tool"})
    await LLMMemoryManager(backend).for_user("ada").save(page)
    await remember(client, "Ada is allergic to walnuts.", key="nuts", user="ada")
    asked = {"user": "ada", "query": "walnuts"}
    for origin, keys in (("tool", ["page"]), ("person", ["nuts"]), ("user", [])):
        found = await client.get("/memory/search", params={**asked, "origin": origin})
        assert [hit["memory"]["key"] for hit in found.json()["hits"]] == keys
    wrong = await client.get("/memory/search", params={**asked, "origin": "nobody"})
    assert wrong.status_code in (400, 422)
