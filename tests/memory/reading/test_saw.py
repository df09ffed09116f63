"""What the model saw: a record of each run, for as long as it may be kept."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory import Agent, Message, ScriptedModel, open_backend
from locus_memory.conversation.roles import REMEMBER
from locus_memory.encryption import EncryptionKeys
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory import LLMMemoryManager, SeenRun, forget
from locus_memory.memory.layers.runs import RunLog
from locus_memory.memory.scope import Scope
from locus_memory.state import AgentState
from locus_memory.store.base import all_keys, scan_all
from locus_memory.store.wrappers import StoreWrapper
from locus_memory.transfer import migrate

QUESTION = "Where do I live?"
ASK = "What is your password for the portal?"
DAY = 86_400


@pytest.fixture
def world(store, make_world):
    return make_world(store)


async def texts(world):
    """Return all that stands in the records of a scope."""
    await world.manager.saw()
    return "".join([str(item.value) async for item in scan_all(world.store, world.scope.runs)])


async def test_a_record_holds_what_a_run_was_shown(world):
    await world.knows("Ada lives in Graz.")
    stable, _ = await world.shown(QUESTION)
    world.clock.advance(1)
    await world.knows("Ada has a dog.")
    _, tail = await world.shown("Hello", "Hi!", "What is my dog called?")
    await world.shown("Hello", thread="other")
    newer, older = await world.manager.saw("now")
    assert (older.message, older.stable, older.tail) == (QUESTION, stable, None)
    assert (newer.message, newer.stable) == ("What is my dog called?", stable)
    assert newer.tail == tail.strip()
    assert (older.thread, older.items, newer.items, newer.cut) == ("now", 1, 2, 0)
    assert newer.at > older.at
    assert newer.tokens > older.tokens > 0
    assert await world.manager.saw("now", limit=1) == [newer]
    [other] = await world.manager.saw("other")
    assert await world.manager.saw() == [other, newer, older]
    assert await world.manager.saw("nothing") == []
    with pytest.raises(InvalidArgumentError):
        await world.manager.saw("now", limit=-1)


async def test_a_run_that_was_shown_nothing_is_recorded_as_well(world):
    await world.shown(QUESTION)
    [run] = await world.manager.saw("now")
    assert (run.message, run.stable, run.tail, run.tokens, run.items) == (
        QUESTION,
        None,
        None,
        0,
        0,
    )


@pytest.mark.parametrize("way", ["transcript", "budget", "off the record"])
async def test_without_recording_nothing_is_recorded(make_world, way):
    off = {"transcript": {"transcript": False}, "budget": {"memory_budget_tokens": 0}}
    world = make_world(**off.get(way, {}))
    await world.knows("Ada lives in Graz.")
    metadata = {"thread_id": "now", REMEMBER: way != "off the record"}
    state = AgentState(messages=(Message.user(QUESTION),), metadata=metadata)
    for _ in range(2):
        seen = await world.manager.on_session_start(state)
        assert ("Graz" in seen.messages[0].content) is (way != "budget")
        await world.manager.drain()
    assert await world.manager.saw() == []
    assert await texts(world) == ""


@pytest.mark.parametrize("where", ["memory", "sqlite"])
async def test_each_run_of_an_agent_is_recorded_for_its_user(where, tmp_path):
    place = f"sqlite:{tmp_path}/a.db" if where == "sqlite" else where
    manager = LLMMemoryManager(place)
    async with manager, Agent(ScriptedModel(), memory_manager=manager) as agent:
        for number in range(5):
            await agent.run(f"I saw {number} birds.", "t", user_id="ada")
        runs = await manager.for_user("ada").saw("t")
        assert [each.message for each in runs] == [f"I saw {n} birds." for n in range(4, -1, -1)]
        assert await manager.saw() == []


async def test_runs_of_one_thread_at_a_time_are_all_recorded(world):
    await asyncio.gather(*(world.shown(f"Message {number}") for number in range(5)))
    assert len(await world.manager.saw("now")) == 5


@pytest.mark.parametrize("way", ["forget", "key", "query", "fixed"])
async def test_what_was_erased_stands_in_no_record(world, way):
    await world.always("Call me Graz.")
    await world.knows("Ada lives in Graz.")
    await world.shown(QUESTION)
    assert "Graz" in await texts(world)
    key = "Ada lives in Graz."
    if way == "fixed":
        [fixed] = (await world.manager.identity.read()).overrides
        await forget(world.store, key=(await world.manager.get(fixed.id)).key)
    elif way == "forget":
        await world.manager.forget(key)
    else:
        await forget(world.store, **{way: key})
    assert await texts(world) == ""


async def test_with_a_user_go_the_records(store, make_world):
    world = make_world(store)
    ada, bo = (make_world(store, manager=world.manager.for_user(name)) for name in ("ada", "bo"))
    for each in (ada, bo):
        await each.knows("I live in Graz.")
        await each.shown(QUESTION)
        await each.manager.saw()
    assert (await forget(store, user_id="ada", dry_run=True)).log == 1
    await forget(store, user_id="ada")
    assert await texts(ada) == ""
    assert "Graz" in await texts(bo)


@pytest.mark.parametrize("way", ["delete", "undo"])
async def test_what_stays_in_the_history_stays_in_the_records(world, way):
    await world.knows("Ada lives in Graz.")
    await world.shown(QUESTION)
    await world.manager.saw()
    key = "Ada lives in Graz."
    await getattr(world.manager, way)(f"user:{key}" if way == "delete" else key)
    assert "Graz" in await texts(world)


class HeldStore(StoreWrapper):
    """A store whose writes of records wait until they are let go."""

    def __init__(self, store):
        super().__init__(store)
        self.reached, self.free = asyncio.Event(), asyncio.Event()

    async def put_batch(self, items):
        items = list(items)
        if any(each.namespace[-1] == "runs" for each in items):
            self.reached.set()
            await self.free.wait()
        return await self.inner.put_batch(items)


async def test_a_run_is_not_recorded_after_an_erasure(store, make_world):
    world = make_world(HeldStore(store))
    await world.knows("Ada lives in Graz.")
    await world.shown(QUESTION)
    await world.store.reached.wait()
    await forget(store, query="Graz")
    world.store.free.set()
    assert await world.manager.saw() == []
    assert await texts(world) == ""


@pytest.mark.parametrize(
    "said",
    [
        (ASK, "bluebirds"),
        (ASK, "Wait.", "It is bluebirds"),
        ("Hello!", "My password is hunter2-Xy9!q."),
    ],
)
async def test_a_record_holds_no_secret(make_world, said):
    first, *rest = said
    messages = [Message.assistant(first), *map(Message.user, rest)]
    for allowed in (False, True):
        world = make_world(allow_secrets=allowed)
        state = AgentState(messages=tuple(messages), metadata={"thread_id": "t"})
        await world.manager.on_session_start(state)
        [run] = await world.manager.saw("t")
        assert run.message == (rest[-1] if allowed else None)
        assert (rest[-1] in await texts(world)) is allowed


@pytest.mark.parametrize("text", ["x" * 1_000_000, "语" * 100_000, "a\x00b \ud800 c", ""])
async def test_texts_of_any_length_and_script_are_recorded_within_bounds(world, text):
    await world.shown(text)
    [run] = await world.manager.saw("now")
    assert len(run.message) == min(len(text), 10_000)
    assert run.cut == len(text) - len(run.message)
    assert run.message.startswith(text[:3].replace("\ud800", "?"))


async def test_a_block_of_any_length_is_recorded_within_bounds(store):
    log, scope = RunLog(store), Scope(("m",))
    run = SeenRun(
        thread="t", at="2026", message="m" * 10_001, stable="s" * 99_999, tail="t" * 20_001
    )
    await store.put_batch([log.put(scope, run)])
    [kept] = await log.newest(scope, "t", 10)
    assert (kept.message, kept.stable, kept.tail) == ("m" * 10_000, "s" * 10_000, "t" * 20_000)
    assert kept.cut == 1 + 89_999 + 1


@pytest.mark.parametrize("store", ["inmemory"], indirect=True)
async def test_of_a_scope_at_most_a_thousand_are_kept(store):
    log, scope = RunLog(store), Scope(("m",))
    for number in range(1_100):
        run = SeenRun(thread=f"t{number % 3}", at="2026-03-01", message=str(number))
        await store.put_batch([log.put(scope, run)])
        await log.trim(scope)
    kept = await log.newest(scope, None, 2_000)
    assert 950 <= len(kept) <= 1_000
    assert [each.message for each in kept] == [str(n) for n in range(1_099, 1_099 - len(kept), -1)]


async def test_they_are_kept_for_thirty_days(world):
    for days in (20, 11):
        await world.shown(QUESTION)
        await world.manager.saw()
        world.clock.advance(days * DAY)
    expires = world.store.capabilities.ttl
    assert len(await world.manager.saw()) == (1 if expires else 2)
    for dry_run in (True, False):
        report = await world.manager.scoped(world.scope.namespace).consolidate(dry_run=dry_run)
        assert report.purged == (0 if expires else 1)
    assert len(await world.manager.saw()) == 1


async def test_no_record_shows_words_for_longer_than_they_are_kept(make_world):
    clock = make_world().clock
    clock.set(1_772_359_200)  # 2026-03-01, 10:00 UTC
    world = make_world(extract_fn=None, retention=40)
    await world.said("old", "I live in Graz.", "Noted.")
    clock.advance(30 * DAY)
    await world.shown(QUESTION)
    await world.shown("And what else?")
    await world.manager.saw()
    clock.advance(5 * DAY)
    await world.manager.consolidate()
    assert "Graz" in await texts(world)
    clock.advance(6 * DAY)
    assert (await world.manager.consolidate()).purged == 2
    assert await texts(world) == ""


async def test_a_failure_is_an_event_and_the_run_goes_on(world, events, monkeypatch):
    await world.knows("Ada lives in Graz.")

    def put(*args):
        raise ConnectionError

    monkeypatch.setattr(RunLog, "put", put)
    assert "Graz" in (await world.shown(QUESTION))[0]
    assert await world.manager.saw() == []
    [failed] = events.of("memory.log_failed")
    assert isinstance(failed.error, ConnectionError)


async def test_an_item_that_is_no_record_is_reported(world, events):
    await world.shown(QUESTION)
    await world.manager.drain()
    for place, value in enumerate(("text", None, {"text": 1}, [])):
        await world.store.put(world.scope.runs, f"9/{place}", value)
    assert [each.message for each in await world.manager.saw()] == [QUESTION]
    assert len(events.of("memory.record_unreadable")) == 4
    assert len(await all_keys(world.store, world.scope.runs)) == 5


async def test_records_are_migrated_encrypted_as_the_rest(tmp_path):
    keys = EncryptionKeys({"k": b"k" * 16}, "k")
    source = open_backend(f"sqlite:{tmp_path}/a.db", encryption=keys)
    target = open_backend(f"sqlite:{tmp_path}/b.db", encryption=keys)
    async with source, target:
        async with LLMMemoryManager(source) as manager:
            await Agent(ScriptedModel(), memory_manager=manager).run("I like Graz.", "t")
            told = await manager.saw("t")
        await migrate(source, target)
        async with LLMMemoryManager(target) as manager:
            assert await manager.saw("t") == told
        [item] = await target.store.scan(manager._scope.runs)
        assert item.expires_at is not None
    assert [run.message for run in told] == ["I like Graz."]
    for name in ("a.db", "b.db"):
        async with open_backend(f"sqlite:{tmp_path}/{name}") as plain:
            [item] = await plain.store.scan(manager._scope.runs)
            assert "Graz" not in str(item.to_dict())
