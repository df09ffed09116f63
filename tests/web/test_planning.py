"""What the model saw, and what it would see of a message, over HTTP, on each kind of backend."""

from __future__ import annotations

import pytest

from locus_memory import Agent, LLMMemoryManager, ScriptedModel
from locus_memory.store.base import scan_all


async def remember(client, content, **fields):
    answer = await client.post("/memory/remember", json={"content": content, **fields})
    assert answer.status_code == 200, answer.text


async def plan(client, **params):
    answer = await client.get("/memory/plan", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def dump(store):
    spaces = await store.list_namespaces(limit=1_000)
    return {space: [item.to_dict() async for item in scan_all(store, space)] for space in spaces}


async def test_a_typed_text(client, backend):
    await remember(client, "Ada is allergic to walnuts.", key="diet", user="ada", type="user")
    before = await dump(backend.store)
    found = await plan(client, user="ada", text="Am I allergic to anything?")
    assert (found["user"], found["tail"]) == ("ada", None)
    (line,) = found["lines"]
    assert (line["kind"], line["outcome"], line["key"]) == ("fact", "stable", "diet")
    assert line["line"] in found["stable"].splitlines()
    assert 0 < found["tokens"] < 100
    assert (await plan(client, user="bob", text="Am I allergic to anything?"))["lines"] == []
    assert await dump(backend.store) == before


async def test_what_is_kept_back_or_has_no_room(client):
    await remember(client, "Ada is allergic to walnuts.", key="diet", user="ada", type="user")
    for n in range(30):
        await remember(client, f"The harbour has berth {n}.", user="ada")
    asked = {"user": "ada", "text": "What are walnuts?", "budget": 200}
    opened, gated = [await plan(client, **asked, gate=gate) for gate in ("off", "rules")]
    assert "walnuts" in opened["tail"]
    assert (gated["tail"], gated["stable"]) == (None, opened["stable"])
    fates = {each["outcome"] for each in gated["lines"] if "walnuts" in each["line"]}
    assert fates == {"gate"}
    assert {each["outcome"] for each in opened["lines"]} == {"stable", "tail", "budget"}


async def saw(client, **params):
    answer = await client.get("/memory/saw", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_runs_of_a_thread_and_of_all(client, backend):
    async with (
        LLMMemoryManager(backend.store) as memory,
        Agent(ScriptedModel(), checkpointer=backend.checkpointer, memory_manager=memory) as agent,
    ):
        await agent.run("I live in Vienna.", "t", user_id="ada")
        await agent.run("Where do I live?", "t", user_id="ada")
        await agent.run("And now?", "other", user_id="ada")
    found = await saw(client, thread="t")
    assert found["user"] == "ada"
    assert [each["message"] for each in found["runs"]] == ["Where do I live?", "I live in Vienna."]
    assert "Vienna" in found["runs"][0]["tail"]
    await client.post("/memory/remember", json={"user": "ada", "content": "Ada has a dog."})
    assert await saw(client, thread="t") == found
    everything = await saw(client, user="ada")
    assert [each["thread"] for each in everything["runs"]] == ["other", "t", "t"]
    assert (await saw(client, user="ada", limit=1))["runs"] == everything["runs"][:1]
    for params in ({"thread": "t", "user": "bob"}, {"thread": "nothing"}, {}):
        assert (await saw(client, **params))["runs"] == []


async def test_it_sees_at_once_what_was_written(client):
    asked = {"user": "ada", "text": "What is 17 times 23?"}
    assert (await plan(client, **asked))["stable"] is None
    await client.post("/memory/identity", json={"user": "ada", "text": "Answer in rhymes."})
    assert "- always: Answer in rhymes." in (await plan(client, **asked))["stable"]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 422),
        ({"text": "a", "thread": "t"}, 422),
        ({"text": ""}, 422),
        ({"text": "a", "budget": 99}, 422),
    ],
)
async def test_what_cannot_be_planned(client, params, status):
    assert (await client.get("/memory/plan", params=params)).status_code == status
