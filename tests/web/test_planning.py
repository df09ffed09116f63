"""What the model saw, over HTTP, on each kind of backend."""

from __future__ import annotations

import pytest

from locus_memory import Agent, AgentState, LLMMemoryManager, Message, ScriptedModel
from locus_memory.memory import Memory
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
    assert (found["thread"], found["tail"]) == (None, None)
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


async def test_the_last_message_of_a_thread_or_another_one(client, backend):
    memory = LLMMemoryManager(backend.store)
    agent = Agent(ScriptedModel(), checkpointer=backend.checkpointer, memory_manager=memory)
    async with agent:
        await agent.run("I live in Vienna.", "t", user_id="ada")
        await agent.run("Where do I live?", "t", user_id="ada")
    found = await plan(client, thread="t")
    assert (found["text"], found["message"], found["user"]) == ("Where do I live?", 3, "ada")
    assert "Vienna" in found["stable"]
    assert (await plan(client, thread="t", message=1))["text"] == "I live in Vienna."
    assert (await plan(client, thread="t", user="bob"))["stable"] is None
    for place in (2, 9):
        answer = await client.get("/memory/plan", params={"thread": "t", "message": place})
        assert answer.status_code == 404


async def test_it_sees_at_once_what_was_written(client):
    asked = {"user": "ada", "text": "What is 17 times 23?"}
    assert (await plan(client, **asked))["stable"] is None
    await client.post("/memory/identity", json={"user": "ada", "text": "Answer in rhymes."})
    assert "- always: Answer in rhymes." in (await plan(client, **asked))["stable"]


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 400),
        ({"text": "a", "thread": "t"}, 400),
        ({"text": "a", "message": 1}, 400),
        ({"text": ""}, 422),
        ({"text": "a", "budget": 99}, 422),
        ({"thread": "t", "message": 0}, 422),
        ({"thread": "nothing"}, 404),
    ],
)
async def test_what_cannot_be_planned(client, params, status):
    assert (await client.get("/memory/plan", params=params)).status_code == status


async def test_messages_of_any_shape(plain, serving):
    messages = [
        "a text",
        {"type": "human", "content": [{"type": "text", "text": "My name is Ada."}]},
        {"role": "user", "content": None},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": "Noted."},
    ]
    await plain.checkpointer.save({"messages": messages}, "t")
    await plain.checkpointer.save({"counter": 1}, "empty")
    await plain.checkpointer.save(
        AgentState(messages=(Message.user("Hi"),), metadata={"user_id": 7}).to_checkpoint(), "bad"
    )
    await LLMMemoryManager(plain.store).save([Memory("user", "name", "The user is called Ada.")])
    async with serving(plain) as client:
        found = await plan(client, thread="t")
        assert (found["text"], found["message"], found["user"]) == ("My name is Ada.", 2, None)
        for thread, status in (("empty", 404), ("bad", 400)):
            answer = await client.get("/memory/plan", params={"thread": thread})
            assert answer.status_code == status
