"""How a session becomes an episode, facts, vital signs and a log entry."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.testing.model import FakeModel
from tests.memory.conftest import idle, log_of
from tests.memory.sessions.conftest import LONG, SCOPE, Distiller, episodes_of, run_of, turns_of

USER = MemoryType.USER


def add(key, content, *sources, kind=USER, importance=None):
    return MemoryChange(
        op="add", type=kind, key=key, content=content, sources=sources, importance=importance
    )


async def distilled(manager, *texts, thread="t", **metadata):
    await manager.on_session_end(run_of(turns_of(*texts), thread, **metadata))
    return await manager.sync_now()


async def test_a_session_becomes_one_episode_with_one_call(tend, either, clock, events):
    """Several turns of a session cost one call, and leave one episode and one log entry."""
    model = Distiller()
    manager = tend(extract_fn=model)
    said = turns_of("We move to Graz in May.", "Ada packs the books, Bo the kitchen.")
    await manager.on_session_end(run_of(said[:2], agent_id="helper"))
    clock.advance(30)
    await manager.on_session_end(run_of(said, agent_id="helper"))
    assert model.sessions == []
    assert manager.pending == 2
    assert await manager.sync_now() == 0
    (episode,) = await episodes_of(either)
    assert model.sessions == [[message.content for message in said]]
    assert (episode.session_id, episode.agent_id, episode.turns) == ("t", "helper", (1, 4))
    assert episode.started_at < episode.ended_at
    (entry,) = await log_of(either, SCOPE)
    assert (entry.kind, entry.ok, entry.error) == ("distill", True, None)
    (event,) = events.of("memory.extracted")
    assert event.attributes["episodes"] == 1
    assert await either.list_keys(SCOPE.queue) == []


async def test_a_resumed_session_makes_a_further_episode_of_its_new_turns(tend, either, clock):
    manager = tend()
    await distilled(manager, LONG)
    clock.advance(timedelta(hours=1).total_seconds())
    await distilled(manager, LONG, "And now it snows. " + LONG)
    assert [each.turns for each in await episodes_of(either)] == [(1, 2), (3, 4)]


@pytest.mark.parametrize(("length", "waits"), [(79, True), (80, False)])
async def test_a_short_session_waits(tend, either, length, waits):
    """User and assistant count together; tools do not."""
    model = Distiller()
    manager = tend(extract_fn=model)
    call = ToolCall(id="c", name="clock")
    said = [
        Message.user("u" * 40),
        Message.assistant(tool_calls=[call]),
        Message.tool(ToolResult(tool_call_id="c", name="clock", content="noon " * 50)),
        Message.assistant("a" * (length - 40)),
    ]
    await manager.on_session_end(run_of(said))
    await manager.on_session_end(run_of(turns_of("Hm."), "next"))
    await idle(manager)
    assert len(model.sessions) == 1 - waits
    assert await manager.sync_now() == 0
    assert len(model.sessions) == 2 - waits
    assert await either.list_keys(SCOPE.queue) == []


async def test_facts_get_vital_signs(tend, either):
    """A new fact has the messages that state it, and the moment at which they were said."""
    made = Distillate(
        changes=(add("allergy", "The user is allergic to nuts.", 0, importance=0.95),),
        notes=(NoteDraft("Ada is allergic to nuts."),),
    )
    manager = tend(extract_fn=Distiller(made))
    await distilled(manager, LONG)
    (memory,) = await manager.retrieve()
    assert await either.exists(SCOPE.vitals, "user:allergy")
    vitals = (await VitalsBook(either).of(SCOPE, [memory]))["user:allergy"]
    (episode,) = await episodes_of(either)
    assert (vitals.messages, vitals.told_at) == ((("t", "#1"),), episode.ended_at)
    assert (await manager.vitals([memory]))[0].salience == 0.95


async def test_the_same_fact_is_not_written_twice(tend, either, events):
    """The known fact gets one more source; its version stays."""
    first = Distillate(changes=(add("home", "The user lives in Graz.", importance=0.4),))
    again = Distillate(changes=(add("city", "the user lives  in GRAZ.", importance=0.7),))
    manager = tend(extract_fn=Distiller(first, again))
    await distilled(manager, LONG, thread="a")
    before = await either.get_item(SCOPE.current, "user:home")
    await distilled(manager, LONG, thread="b")
    assert await either.list_keys(SCOPE.current) == ["user:home"]
    assert await either.get_item(SCOPE.current, "user:home") == before
    vitals = (await VitalsBook(either).of(SCOPE, await manager.retrieve()))["user:home"]
    assert vitals.messages == (("a", "#1"), ("b", "#1"))
    (event,) = events.of("memory.duplicate_dropped")
    assert event.attributes["duplicate_of"] == "home"


async def test_a_fact_may_move_to_another_key(tend):
    """A fact that the same session retires does not count as known."""
    first = Distillate(changes=(add("x", "The user lives in Graz."),))
    gone = MemoryChange(op="delete", type=USER, key="x")
    moved = Distillate(changes=(gone, add("home", "The user lives in Graz.")))
    manager = tend(extract_fn=Distiller(first, moved))
    await distilled(manager, LONG, thread="a")
    await distilled(manager, LONG, thread="b")
    assert [each.key for each in await manager.retrieve()] == ["home"]


async def test_secrets_stay_out_of_all_layers(tend, either):
    """A note that holds a secret is left out, and the others stay."""
    secret = "The password of the server is hunter2secret."
    made = Distillate(
        notes=(NoteDraft(secret), NoteDraft("We move in May.")),
        changes=(add("server", secret),),
    )
    manager = tend(extract_fn=Distiller(made))
    await distilled(manager, "My password is hunter2secret!", LONG)
    (episode,) = await episodes_of(either)
    assert [note.text for note in episode.notes] == ["We move in May."]
    held = (
        [
            json.dumps([item.value, item.metadata])
            for namespace in await either.list_namespaces(SCOPE.namespace)
            for item in await either.scan(namespace, 100)
        ]
        if either.capabilities.list_namespaces
        else [json.dumps(episode.to_value())]
    )
    assert "hunter2secret" not in "".join(held)


async def test_a_failing_model_leaves_the_turns_and_a_log_entry(tend, either, events, monkeypatch):
    """Turns are never dropped, however often the model fails."""
    monkeypatch.setattr("locus_memory.memory.queue.worker._MOST_ATTEMPTS", 2)
    failures = [ConnectionError("secret text") for _ in range(7)]
    model = Distiller(*failures)
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(turns_of(LONG)))
    for _ in failures:
        assert await manager.sync_now() == 1
    assert await episodes_of(either) == []
    assert await manager.sync_now() == 0
    (episode,) = await episodes_of(either)
    assert episode.turns == (1, 2)
    assert events.of("memory.extract_dropped") == []
    entries = await log_of(either, SCOPE)
    assert [each.error for each in entries if not each.ok] == ["ConnectionError"] * 7
    assert "secret text" not in str(entries)


@pytest.mark.parametrize("answer", ['{"changes": []}', '{"changes": [], "notes": []}', None])
async def test_without_an_episode_of_a_model_there_is_none(tend, either, answer):
    """A function makes no episode, and a model may leave it out."""
    model = LLMExtractor(FakeModel([answer])) if answer else lambda messages: []
    await distilled(tend(extract_fn=model), LONG)
    assert await episodes_of(either) == []
    assert await either.list_keys(SCOPE.queue) == []


async def test_a_real_prompt_and_answer(tend, either):
    """The model's own extractor asks once, and each part of its answer is written."""
    answer = {
        "notes": [
            {"text": "Ada moves to Graz in May 2026.", "kind": "PLAN", "about": "2026-05"}
            | {"importance": 0.8, "messages": [1]},
            {"text": None},
        ],
        "changes": [
            {"op": "ADD", "type": "user", "key": "home", "content": "Ada moves.", "importance": 8},
            {"op": "add", "type": "user", "key": "broken", "content": None},
        ],
    }
    model = FakeModel([f"<think>hm</think>{json.dumps(answer)}"])
    manager = tend(extract_fn=LLMExtractor(model))
    await distilled(manager, "I am Ada, and I move to Graz in May. " + LONG)
    assert len(model.calls) == 1
    (episode,) = await episodes_of(either)
    (note,) = episode.notes
    assert (note.text, note.kind, note.about) == (
        "Ada moves to Graz in May 2026.",
        "plan",
        "2026-05",
    )
    assert (note.message_ids, note.thread, episode.salience) == (("#1",), "t", 0.8)
    assert [each.key for each in await manager.retrieve()] == ["home"]


async def test_somebody_who_writes_meanwhile_does_not_cost_a_second_call(tend, either):
    """A conflict of versions plans the write again, not the call."""
    model = Distiller(Distillate(changes=(add("home", "The user lives in Graz."),)))
    manager = tend(extract_fn=model)
    complete = manager._queue.complete
    plans = []

    async def racing(outcome):
        async def operations():
            found = await outcome.operations()
            plans.append([each for each in found if each.if_version is not None])
            if len(plans) == 1:
                await either.put_batch(plans[0])
            return found

        return await complete(replace(outcome, operations=operations))

    manager._queue.complete = racing
    assert await distilled(manager, LONG) == 0
    assert len(plans) == 2
    assert [each.content for each in await manager.retrieve()] == ["The user lives in Graz."]
    assert len(model.sessions) == 1


async def test_a_backlog_is_read_in_several_calls(tend, either):
    """Each turn is in one of them, and each call has notes of its own."""
    model = Distiller()
    manager = tend(extract_fn=model)
    said = turns_of(*(f"{place}: " + "word " * 600 for place in range(10)))
    for end in range(2, 21, 2):
        await manager.on_session_end(run_of(said[:end]))
    assert await manager.sync_now() == 0
    assert 3 <= len(model.sessions) <= 5
    assert [text for each in model.sessions for text in each] == [each.content for each in said]
    covered = [range(first, last + 1) for first, last in sorted(await turns_told(either))]
    assert [number for each in covered for number in each] == list(range(1, 21))
    assert await either.list_keys(SCOPE.queue) == []


async def turns_told(store):
    return [each.turns for each in await episodes_of(store)]
