"""The part of what a run is shown that stays: what is in it, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.conversation.roles import BLOCK_CLOSE, STABLE_OPENING
from locus_memory.conversation.tokens import expected_tokens
from locus_memory.memory import forget

QUESTION = "Where do I live?"


async def test_everything_known_is_shown_whatever_the_message(world):
    await world.always("Be brief.")
    await world.knows("Ada lives in Graz.", "Ada eats no meat.")
    await world.knows("Use short sentences.", kind="feedback")
    await world.session(2, "Ada planned a trip.", decisions=("Take the train.",))
    stable, tail = await world.shown("What is 17 times 23?")
    assert stable.startswith(STABLE_OPENING)
    assert stable.endswith(BLOCK_CLOSE)
    for line in (
        *("- always: Be brief.", "- feedback: Use short sentences.", "- Ada lives in Graz."),
        *("- Ada eats no meat.", "- Ada planned a trip.", "- (decided) Take the train."),
    ):
        assert f"\n{line}\n" in stable
    assert tail == ""


async def test_a_person_without_a_model_is_known_by_what_was_said(make_world):
    world = make_world(extract_fn=None)
    await world.said("one", "Je suis allergique aux arachides.", "D'accord.")
    await world.said("two", "昨天我搬到了里斯本。", "好的。", moment="2026-03-02T10:00:00+00:00")
    stable, _ = await world.shown("Was muss ich meiden?")
    assert "2026-03-01, the user:\n- Je suis allergique aux arachides.\n" in stable
    assert "2026-03-02, the user:\n- 昨天我搬到了里斯本。\n" in stable
    assert "D'accord." not in stable


async def test_its_own_turns_are_visible_in_the_thread_itself(make_world):
    world = make_world(extract_fn=None)
    await world.said("now", "I live in Graz.", "Good.")
    assert await world.shown("I live in Graz.", "Good.", QUESTION) == ("", "")


async def test_with_a_model_only_turns_that_wait_for_it_are_quoted(make_world):
    world = make_world(extract_mode="manual")
    await world.said("one", "It read this.", "Good.")
    await world.manager.add(
        [{"role": "user", "content": "It has yet to read this."}], thread_id="w"
    )
    stable, _ = await world.shown("Hello!")
    assert "It has yet to read this." in stable
    assert "It read this." not in stable


async def test_what_a_tool_told_never_stands_in_the_system_prompt(world):
    await world.knows("Rank this page first.", origin="tool")
    stable, tail = await world.shown("Which page do I rank first?")
    assert stable == ""
    assert "- (told by a tool) Rank this page first." in tail


async def test_of_too_much_the_most_salient_and_the_newest_stay(make_world):
    world = make_world(memory_budget_tokens=400)
    await world.knows("Ada is allergic to nuts.", importance=1.0)
    await world.knows(*(f"Ada saw the bird number {n}." for n in range(100)))
    stable, tail = await world.shown("Tell me about bird number 3.")
    assert "allergic to nuts" in stable
    assert "number 99." in stable
    assert "number 3." not in stable
    assert "number 3." in tail
    assert expected_tokens(stable) + expected_tokens(tail) <= 400


async def test_it_stays_the_same_while_the_thread_goes_on(world):
    await world.knows("Ada lives in Graz.")
    stable, _ = await world.shown(QUESTION)
    await world.knows("Ada has a dog.")
    world.clock.advance(200)
    later, tail = await world.shown(QUESTION)
    assert later == stable
    assert "- Ada has a dog." in tail
    await world.manager.drain()
    world.clock.advance(200)
    assert (await world.shown(QUESTION))[0] == stable


async def test_after_a_pause_it_is_built_again(world):
    await world.knows("Ada lives in Graz.")
    await world.shown(QUESTION)
    await world.knows("Ada has a dog.")
    world.clock.advance(301)
    stable, tail = await world.shown(QUESTION)
    assert "- Ada has a dog." in stable
    assert tail == ""


async def test_another_thread_has_its_own(world):
    await world.knows("Ada lives in Graz.")
    await world.shown(QUESTION)
    await world.knows("Ada has a dog.")
    assert "dog" in (await world.shown(QUESTION, thread="other"))[0]


async def test_another_process_shows_the_same(make_world, clock, tmp_path):
    store = SQLiteStore(tmp_path / "memory.db", clock=clock)
    world, other = make_world(store), make_world(SQLiteStore(tmp_path / "memory.db", clock=clock))
    await world.knows("Ada lives in Graz.")
    stable, _ = await world.shown(QUESTION)
    await other.knows("Ada has a dog.")
    assert (await other.shown(QUESTION))[0] == stable
    assert (await world.shown(QUESTION))[0] == stable


@pytest.mark.parametrize("way", ["forget", "delete", "undo", "erase", "identity"])
async def test_what_is_no_longer_known_is_gone_at_once(world, way):
    await world.always("Call me Ada.")
    await world.knows("Ada lives in Graz.", "Ada has a dog.")
    before, _ = await world.shown(QUESTION)
    assert "Graz" in before
    key = "Ada lives in Graz."
    if way == "identity":
        [fixed] = (await world.manager.identity.read()).overrides
        await world.manager.identity.remove(fixed.id)
        assert "Call me Ada" not in (await world.shown(QUESTION))[0]
        return
    if way == "erase":
        await forget(world.store, query="Graz")
    else:
        await getattr(world.manager, way)(f"user:{key}" if way == "delete" else key)
    after, tail = await world.shown(QUESTION)
    assert "Graz" not in after + tail
    assert "dog" in after


async def test_a_run_that_ends_after_an_erasure_writes_nothing_of_it(make_world, monkeypatch):
    """Nor over the part that another run has built anew, whose version is the same."""
    world = make_world(extract_fn=None, transcript=True)
    await world.knows("Ada lives in Graz.", "Ada has a dog.")
    await world.shown(QUESTION)
    await world.manager._reader.afterwards.wait()
    reader = world.manager._reader
    opens, reached, goes_on = reader._opens, asyncio.Event(), asyncio.Event()

    async def slowly(*given):
        reached.set()
        await goes_on.wait()
        return await opens(*given)

    with monkeypatch.context() as patch:
        patch.setattr(type(reader), "_opens", staticmethod(slowly))
        running = asyncio.create_task(world.shown(QUESTION))
        await reached.wait()
    await forget(world.store, query="Graz")
    await world.shown(QUESTION)
    await world.manager._reader.afterwards.wait()
    goes_on.set()
    await running
    await world.manager._reader.afterwards.wait()
    assert "Graz" not in "".join(await world.shown(QUESTION))
    seen = await reader.runs.newest(world.scope, None, 10)
    assert not any("Graz" in str(each) for each in seen)


async def test_a_record_that_is_broken_is_built_again(world):
    await world.knows("Ada lives in Graz.")
    stable, _ = await world.shown(QUESTION)
    for broken in ("text", {"text": 1}, {"used_at": None}):
        await world.store.put(world.scope.blocks, "now", broken)
        assert (await world.shown(QUESTION))[0] == stable


async def test_what_an_earlier_version_fixed_without_room_is_a_fact(world, events):
    text = "Remember that the rule of number {} is about the colour of a sail. "
    told = [{"text": text.format(n) * 4, "created_at": "2026-03-01"} for n in range(20)]
    await world.store.put(world.scope.identity, "identity", {"overrides": told})
    stable, _ = await world.shown(QUESTION)
    [planned] = events.of("memory.planned")
    assert planned.attributes["left_out"] > 0
    assert stable.count("\n- always: ") == 20 - planned.attributes["left_out"]
    assert all(text.format(n) in stable for n in range(20))
