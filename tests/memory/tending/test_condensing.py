"""A model condenses the oldest notes where they outgrow their share; the originals stay."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.scope import Scope
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing import FakeClock

DAY = 86_400.0
START = 1_767_225_600.0
SCOPE = Scope(("locus_memory",))
PLACES = ["the old harbour", "the windmill", "the botanical garden", "the observatory"]


class Condensing:
    """A model that makes one note of all, which cites all."""

    def __init__(self, answer=None):
        self.answer, self.asked, self.before = answer, [], None

    async def __call__(self, messages):
        told = messages[-1].content
        self.asked.append(told)
        if self.before is not None:
            await self.before()
        if self.answer is not None:
            return Message.assistant(self.answer)
        numbers = [int(each) for each in re.findall(r"^(\d+)\. ", told, re.MULTILINE)]
        text = f"Ada made trip number {len(self.asked)} to many places."
        note = {"text": text, "kind": "event", "messages": numbers}
        return Message.assistant(json.dumps({"notes": [note]}))


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    clock = FakeClock(START + 100 * DAY)
    is_sqlite = request.param == "sqlite"
    made = SQLiteStore(tmp_path / "a.db", clock=clock) if is_sqlite else InMemoryStore(clock=clock)
    made.time = clock
    yield made
    await made.close()


def managed(store, model=None, **options):
    extract_fn = None if model is None else LLMExtractor(model)
    options = {"memory_budget_tokens": 1_200, **options}
    return LLMMemoryManager(store, extract_fn=extract_fn, clock=store.time, **options)


def moment(day):
    return f"2026-{1 + day // 28:02}-{1 + day % 28:02}T10:00:00.000000+00:00"


async def live(store, first, last, origin=""):
    episodes = [
        Episode(
            session_id=f"s{day}",
            started_at=moment(day),
            ended_at=moment(day),
            notes=(Note(f"Ada went to {PLACES[day % 4]} on day{day}.", origin=origin),),
        )
        for day in range(first, last)
    ]
    await store.put_batch([episode_put(SCOPE, each) for each in episodes])
    return episodes


async def shown(manager):
    state = AgentState(run_id="now", messages=(Message.user("Where was I on day0?"),))
    seen = (await manager.on_session_start(state)).messages
    stable = "".join(each.content for each in seen if each.role == "system")
    return stable, seen[-1].content


async def test_the_block_shows_the_condensed_ones_and_the_tail_the_originals(store, events):
    await live(store, 0, 40)
    model = Condensing()
    manager = managed(store, model)
    await manager.consolidate()
    assert len(model.asked) == 1
    stable, tail = await shown(manager)
    assert "Ada made trip number 1 to many places." in stable
    assert "day0." not in stable
    assert "day39." in stable
    assert "day0." in tail
    assert len(await EpisodeBook(store).newest(SCOPE, 100)) == 40
    [event] = events.of("memory.condensed")
    assert event.attributes["notes"] == 1
    assert "day0." in model.asked[0]
    assert "day39." not in model.asked[0]
    await manager.close()


async def test_it_is_done_once_until_they_outgrow_it_again(store):
    await live(store, 0, 40)
    model = Condensing()
    manager = managed(store, model)
    await manager.consolidate()
    await manager.consolidate()
    assert len(model.asked) == 1
    await live(store, 40, 70)
    await manager.consolidate()
    assert len(model.asked) == 2
    # The condensed note was the oldest, and is condensed again with those after it.
    assert "trip number 1" in model.asked[1]
    assert "day0." not in model.asked[1]
    stable, _ = await shown(manager)
    assert "trip number 2" in stable
    assert "trip number 1" not in stable
    assert len(await store.scan(SCOPE.condensed)) == 1
    await manager.close()


async def test_notes_that_fit_and_managers_without_a_model_condense_nothing(store):
    model = Condensing()
    await live(store, 0, 5)
    await managed(store, model).consolidate()
    await live(store, 5, 40)
    await managed(store, model).consolidate(dry_run=True)
    await managed(store, model, memory_budget_tokens=0).consolidate()
    await managed(store).consolidate()
    assert not model.asked
    assert not await store.scan(SCOPE.condensed)
    assert "day39." in (await shown(managed(store)))[0]


@pytest.mark.parametrize(
    "answer",
    ["", "{", '{"notes": []}', '{"notes": [{"text": ""}]}', "I will not.", "long", "many", "[1]"],
)
async def test_a_bad_answer_changes_nothing(store, events, answer):
    await live(store, 0, 40)
    if answer == "long":
        note = {"text": "Ada went on. " * 40, "kind": "event"}
        answer = json.dumps({"notes": [note | {"about": str(n)} for n in range(8)]})
    if answer == "many":
        answer = json.dumps({"notes": [{"text": f"Ada {n}."} for n in range(13)]})
    manager = managed(store, Condensing(answer))
    before = await shown(managed(store))
    report = await manager.consolidate()
    assert report.scopes == 1
    assert events.names.count("memory.condense_failed") == 1
    assert not await store.scan(SCOPE.condensed)
    assert await shown(managed(store)) == before


@pytest.mark.parametrize("is_late", [False, True])
async def test_forgetting_an_original_drops_what_it_was_condensed_into(store, is_late):
    """Before, or while the model is asked."""
    await live(store, 0, 40)
    model = Condensing()
    manager = managed(store, model)
    if is_late:
        model.before = lambda: forget(store, query="day3")
    await manager.consolidate()
    if not is_late:
        assert await store.scan(SCOPE.condensed)
        await forget(store, query="day3")
    assert not await store.scan(SCOPE.condensed)
    stable, _ = await shown(manager)
    assert "trip number" not in stable
    model.before = None
    await manager.consolidate()
    assert "day3." not in model.asked[-1]
    assert await store.scan(SCOPE.condensed)
    await manager.close()


async def test_another_session_that_is_forgotten_leaves_it(store):
    await live(store, 0, 40)
    manager = managed(store, Condensing())
    await manager.consolidate()
    await forget(store, query="day39")
    assert await store.scan(SCOPE.condensed)
    await forget(store, user_id="ada")
    assert await store.scan(SCOPE.condensed)


async def test_forgetting_a_user_leaves_nothing(store):
    scope = Scope((*SCOPE.namespace, "users", "ada"))
    for each in await live(store, 0, 40):
        await store.put_batch([episode_put(scope, each)])
    manager = managed(store, Condensing())
    await manager.consolidate()
    assert await store.scan(scope.condensed)
    await forget(store, user_id="ada")
    assert not await store.scan(scope.condensed)
    assert await store.scan(SCOPE.condensed)


async def test_an_original_that_is_too_old_takes_it_along(store):
    await live(store, 0, 40)
    await managed(store, Condensing()).consolidate()
    model = Condensing()
    await managed(store, model, retention=95).consolidate()
    assert len(await EpisodeBook(store).newest(SCOPE, 100)) < 40
    # Condensed anew, of those that are left.
    assert len(model.asked) == 1
    assert "day0." not in model.asked[0]
    assert len(await store.scan(SCOPE.condensed)) == 1


async def test_the_same_sessions_have_the_same_record(store):
    """A pass that was killed after its write, or before, ends in the same record."""
    await live(store, 0, 40)
    manager = managed(store, Condensing())
    await manager.consolidate()
    [item] = await store.scan(SCOPE.condensed)
    await store.delete(SCOPE.condensed, item.key)
    await managed(store, Condensing()).consolidate()
    [again] = await store.scan(SCOPE.condensed)
    assert (again.key, again.value) == (item.key, item.value)


async def test_two_processes_condense_once(store):
    await live(store, 0, 40)
    models = [Condensing(), Condensing()]
    await asyncio.gather(*(managed(store, each).consolidate() for each in models))
    assert len(models[0].asked) + len(models[1].asked) == 1
    assert len(await store.scan(SCOPE.condensed)) == 1


async def test_what_a_tool_told_is_never_condensed(store):
    await live(store, 0, 40)
    await live(store, 40, 80, origin="tool")
    model = Condensing()
    manager = managed(store, model)
    await manager.consolidate()
    assert not any(f"day{day}." in model.asked[0] for day in range(40, 80))


async def test_many_long_notes_are_read_in_bounds(store):
    long = [
        Episode(
            session_id=f"x{n}",
            started_at=moment(n),
            ended_at=moment(n),
            notes=tuple(Note(f"{m} 漢字 كلام " * 60) for m in range(40)),
        )
        for n in range(12)
    ]
    await store.put_batch([episode_put(SCOPE, each) for each in long])
    model = Condensing()
    for _ in range(3):
        await managed(store, model).consolidate()
    assert max(map(len, model.asked)) < 60_000
    [item] = await store.scan(SCOPE.condensed)
    assert Episode.from_value(item.value).key == item.key
