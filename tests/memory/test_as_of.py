"""What was known at a moment, and what was true at one, against plain models."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.layers.episodes import Episode, Note, episode_put
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import Then, checked, stated
from locus_memory.messages import Message
from locus_memory.registry import get_store
from locus_memory.testing import FakeClock, FakeEmbedder, FakeModel
from tests.memory.transcripts import transcript_puts

START = datetime(2026, 3, 1, 10, tzinfo=UTC)
VERBS = ["save", "late", "delete", "gone", "undo", "forget"]
WORDS = ["tea", "milk", "rum"]
steps = st.lists(
    st.tuples(st.sampled_from(VERBS), st.sampled_from("ab"), st.sampled_from(WORDS)), max_size=12
)


@asynccontextmanager
async def clocked(store="memory", **options):
    """Yield a manager whose clock stands at the start, and the clock."""
    clock = FakeClock(START.timestamp())
    made = InMemoryStore(clock=clock) if store == "memory" else get_store(store)
    async with made, LLMMemoryManager(made, clock=clock, **options) as manager:
        yield manager, clock


async def change(manager, now, verb, key, word):
    """Make a change that happens now; that of a late one was said two days before."""
    before = (now - timedelta(days=2)).isoformat(timespec="microseconds")
    memory = Memory("user", key, f"{word} for {key}.")
    if verb in ("late", "gone"):
        edit = (
            Statement(memory, before)
            if verb == "late"
            else Retirement(MemoryType.USER, key, before)
        )
        await manager._ledger.apply(manager._scope, [edit])
    elif verb == "save":
        await manager.save(memory)
    elif verb == "delete":
        await manager.delete(f"user:{key}")
    else:
        await getattr(manager, verb)(key)


async def listed(manager, **then):
    return {each.key: each.content async for each in manager.memories(**then)}


def at(days):
    """Return a moment so many days after the start."""
    return START + timedelta(days=days)


def as_dict(memories):
    return {each.key: each.content for each in memories}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "sqlite::memory:"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps)
@example(steps=[(verb, "a", "tea") for verb in ("save", "delete", "undo", "delete", "undo")])
@example(steps=[("save", "a", word) for word in WORDS] + [("undo", "a", "")] * 3)
async def test_an_answer_as_of_a_moment_is_that_of_the_moment(store, steps):
    """Whatever was written, replaced, deleted and undone since; only what is erased is gone."""
    async with clocked(store) as (manager, clock):
        seen = []
        for step in steps:
            await change(manager, datetime.fromtimestamp(clock(), UTC), *step)
            if step[0] == "forget":
                for _, _, known in seen:
                    known.pop(step[1], None)
            seen.append((clock(), as_dict(await manager.retrieve()), await listed(manager)))
            clock.advance(86_400)
        for moment, found, known in seen:
            for then in (moment, moment + 86_399):
                assert await listed(manager, as_of=then) == known
            again = as_dict(await manager.retrieve(as_of=moment))
            assert again == {key: each for key, each in found.items() if key in known}
        assert await listed(manager, as_of=START - timedelta(seconds=1)) == {}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/Los_Angeles"])
@given(
    first=st.none() | st.integers(0, 20),
    last=st.none() | st.integers(0, 20),
    at=st.integers(-24, 24 * 22),
)
def test_a_validity_of_days_holds_on_whole_days_of_the_user(zone, first, last, at):
    """From the beginning of the first day to the end of the last one, open on either side."""
    place, origin = ZoneInfo(zone), date(2026, 5, 1)
    days = [None if each is None else origin + timedelta(days=each) for each in (first, last)]
    given = dict(zip(("valid_from", "valid_to"), days, strict=True))
    moment = datetime(2026, 5, 1, tzinfo=place) + timedelta(hours=at)
    if None not in days and days[0] > days[1]:
        with pytest.raises(InvalidArgumentError, match="valid_to is after"):
            checked(given, place)
        return
    told = checked(given, place)
    assert told == {name: each.isoformat() for name, each in given.items() if each}
    then = Then.read(None, moment, place)
    said = (moment - timedelta(days=1)).isoformat()
    is_in = (days[0] or date.min) <= moment.date() <= (days[1] or date.max)
    assert then.is_true(said, told) is is_in


SPANS = st.none() | st.integers(0, 9)


def true_of(model, moment):
    """Return what was said last of what had begun; what is over hides what began before its end."""
    begun = [each for each in model if each[2] <= moment]
    while begun and begun[-1][3] and begun[-1][3] <= moment:
        *begun, over = begun
        begun = [each for each in begun if each[1] >= over[3]]
    return begun[-1][0] if begun else None


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(told=st.lists(st.tuples(st.sampled_from("ab"), SPANS, SPANS), max_size=6))
async def test_what_was_true_is_that_of_a_plain_model(told):
    async with clocked(timezone="UTC") as (manager, clock):
        model = {"a": [], "b": []}
        for number, (key, first, last) in enumerate(told):
            start, end = (None if each is None else at(each) for each in (first, last))
            if start and end and start >= end:
                continue
            content = f"{number} of {key}."
            await manager.save(Memory("user", key, content, valid_from=start, valid_to=end))
            said = datetime.fromtimestamp(clock(), UTC)
            begins = start or (at(-99) if end else said)
            model[key].append((content, start or said, begins, end))
            clock.advance(86_400)
        for days in range(-1, 12):
            moment = at(days + 0.25)
            true = {key: true_of(each, moment) for key, each in model.items()}
            assert await listed(manager, at=moment) == {k: each for k, each in true.items() if each}


async def test_a_correction_of_the_past_hides_nothing_that_began_later():
    async with clocked(timezone="Europe/Vienna") as (manager, _):
        linz = Memory("user", "home", "Ada lives in Linz.", valid_from="2026-05-12")
        graz = Memory("user", "home", "In Graz.", valid_from="20240301", valid_to="20260511")
        await manager.save([linz, graz])
        for day, known in (("2024-03-01", "In Graz."), ("2026-05-11T23:59", "In Graz.")):
            assert await listed(manager, at=day) == {"home": known}
        assert await listed(manager, at="2026-05-12") == {"home": "Ada lives in Linz."}


async def test_a_block_shows_the_days_of_the_user():
    async with clocked(timezone="Europe/Vienna") as (manager, _):
        await manager.remember("Ada has a dog.", valid_from="2026-05-11T23:00:00Z")
        assert "- Ada has a dog. (from 2026-05-12)" in (await manager.plan("A dog?")).block


@pytest.mark.parametrize(
    "nonsense", [True, [], {}, "", "yesterday", b"2026-01-01", float("nan"), 10**400, "1" * 5000]
)
async def test_what_is_no_moment_is_refused(nonsense):
    async with clocked() as (manager, _):
        with pytest.raises(InvalidArgumentError):
            await manager.save(Memory("user", "home", "In Graz.", valid_from=nonsense))
        with pytest.raises(InvalidArgumentError):
            await listed(manager, at=nonsense)


async def moved(manager, clock):
    """Ada lives in Graz, then in Linz, of which a note and a turn tell on their days."""
    scope = Scope(manager.namespace)
    for city in ("Graz", "Linz"):
        said = datetime.fromtimestamp(clock(), UTC).isoformat(timespec="microseconds")
        await manager.save(Memory("user", "home", f"Ada lives in {city}."))
        note = Note(f"Ada moved to {city}.", valid_from="2026-03-02" if city == "Linz" else "")
        notes = Episode(session_id=city, started_at=said, ended_at=said, notes=(note,))
        turn = Message.user(f"I moved to {city}.")
        puts = [episode_put(scope, notes), *transcript_puts(scope, city, [turn], 1, said)]
        await manager._store.put_batch(puts)
        clock.advance(2 * 86_400)


@pytest.mark.parametrize("options", [{}, {"embedder": FakeEmbedder(64)}])
async def test_every_search_list_and_block_answers_as_of_a_moment(options):
    async with clocked(timezone="UTC", **options) as (manager, clock):
        await moved(manager, clock)

        async def told(**then):
            query = "where did Ada move, where does Ada live?"
            yield [each.content async for each in manager.memories(**then)]
            yield [each.content for each in await manager.retrieve(query, **then)]
            yield [each.content for each in await manager.search(query, **then)]
            yield [each.text for each, _ in await manager.search_episodes(query, **then)]
            yield [each.text for each in await manager.episodes(**then)]
            yield [each.text for each in await manager.search_transcript("moved", **then)]
            yield [(await manager.plan(query, **then)).block]

        cities = [at(1), at(1).isoformat(), at(1).timestamp(), "2026-03-02T10:00:00"]
        for moment in cities:
            for found in [each async for each in told(as_of=moment)]:
                assert "Graz" in "".join(found), found
                assert "Linz" not in "".join(found), found
        for found in [each async for each in told()]:
            assert "Linz" in "".join(found), found
        assert not any(
            ["".join(map(str, found)).strip("None") async for found in told(as_of=at(-1))]
        )
        # On the third day it was said; it is true from the second one on.
        (now,) = await manager.episodes(at=at(1), limit=1)
        assert now.text == "Ada moved to Linz."
        assert [each.text for each in await manager.episodes(at=at(0.1))] == ["Ada moved to Graz."]
        await manager.forget("home")
        assert [each async for each in manager.memories(as_of=at(1))] == []
        for verb in (manager.search, manager.search_transcript, manager.plan, manager.retrieve):
            with pytest.raises(InvalidArgumentError, match="a moment is a datetime"):
                await verb("tea", as_of="soon")


async def test_a_moment_without_an_offset_is_of_the_zone_of_the_user():
    async with clocked(timezone="Pacific/Auckland") as (manager, _):
        await manager.save(Memory("user", "home", "Ada lives in Graz."))
        assert await listed(manager, as_of="2026-03-01T22:59:59") == {}
        assert await listed(manager, as_of="2026-03-01T23:00") == {"home": "Ada lives in Graz."}


async def test_what_is_known_and_what_is_true_are_two_times():
    """In May it is told that Ada lived in Graz until March: April's answer of April stays."""
    async with clocked(timezone="UTC") as (manager, clock):
        await manager.remember("Ada rents a flat.", valid_from="2026-01-15")
        clock.advance(60 * 86_400)
        known = await manager.remember("Ada rents a flat.", valid_to=date(2026, 3, 31))
        (memory,) = [each async for each in manager.memories()]
        assert (memory.id, memory.metadata["valid_from"]) == (known, "2026-01-15")
        assert memory.metadata["valid_to"] == "2026-03-31"
        for when, known_then, now in (
            ("2026-01-14", 0, 0),
            ("2026-03-31T23", 1, 1),
            ("2026-04-02", 1, 0),
        ):
            assert len(await listed(manager, at=when, as_of=at(30))) == known_then
            assert len(await listed(manager, at=when)) == now
        plan = await manager.plan("Where is the flat of Ada?")
        assert "Ada rents a flat. (2026-01-15 to 2026-03-31)" in plan.block
        before = await manager.plan("Where is the flat of Ada?", as_of=at(30))
        assert "Ada rents a flat. (from 2026-01-15)" in before.block
        (found,) = await manager.search("flat")
        assert (found.valid_from, found.valid_to) == ("2026-01-15", "2026-03-31")
        await manager.undo(memory.key)
        assert len(await listed(manager, at="2026-04-02")) == 1


async def test_a_validity_survives_what_is_done_with_a_memory(tmp_path):
    async with clocked("sqlite:" + str(tmp_path / "a.db"), timezone="UTC") as (manager, clock):
        ada, bob = manager.for_user("ada"), manager.for_user("bob")
        span = {"valid_from": "2026-03-05", "valid_to": "2026-03-07T10:00:00+00:00"}
        await ada.save(Memory("user", "trip", "Ada is in Rome.", **span))
        await ada.save([replace(each, metadata={**each.metadata}) async for each in ada.memories()])
        await bob.import_facts([each async for each in ada.export_facts()], trust=True)
        (copied,) = [each async for each in bob.memories()]
        assert {name: copied.metadata[name] for name in span} == span
        clock.advance(86_400)
        await ada.save(Memory("user", "trip", "Ada is in Oslo."))
        assert await listed(ada, at="2026-03-06") == {"trip": "Ada is in Oslo."}
        past = (await ada.history("trip"))[1]
        assert {name: past.metadata[name] for name in span} == span
        restored = await ada.undo("trip")
        assert {name: restored.metadata[name] for name in span} == span
        changed = await ada.update("user:trip", "Ada is in Bern.")
        assert "valid_to" not in changed.metadata
        ended = await ada.update("user:trip", valid_to="2026-04-01")
        assert (ended.content, ended.metadata["valid_to"]) == ("Ada is in Bern.", "2026-04-01")
        with pytest.raises(InvalidArgumentError, match="a moment is a datetime"):
            await ada.save(Memory("user", "trip", "Ada is away.", valid_from="spring"))
        with pytest.raises(InvalidArgumentError, match="valid_to is after"):
            await ada.remember("Ada is away.", valid_from="2026-05-02", valid_to="2026-05-01")


async def test_a_model_states_when_something_is_true_and_nonsense_is_left_out():
    told = [
        ("2026-05-01", "2026-05-31"),
        ("soon", "2026-05-31"),
        (5, None),
        ("2026-05-02", "2026-05-01"),
    ]
    answer = {
        "changes": [
            {"op": "add", "type": "user", "key": f"k{n}", "content": f"Fact {n}.",
             "valid_from": first, "valid_to": last, "messages": [1]}
            for n, (first, last) in enumerate(told)
        ],
        "notes": [{"text": "Ada is away.", "valid_from": "2026-05-01", "valid_to": "later"}],
    }  # fmt: skip
    model = FakeModel([Message.assistant(json.dumps(answer))])
    async with clocked(extract_fn=LLMExtractor(model), timezone="UTC") as (manager, _):
        await manager.add("Plans of Ada.", thread_id="t")
        await manager.sync_now()
        found = {each.key: stated(each) async for each in manager.memories()}
        assert found == {
            "k0": {"valid_from": "2026-05-01", "valid_to": "2026-05-31"},
            "k1": {"valid_to": "2026-05-31"},
            "k2": {},
            "k3": {"valid_from": "2026-05-02"},
        }
        ((note,),) = [each.notes for each in await manager.episodes()]
        assert (note.valid_from, note.valid_to) == ("2026-05-01", "")
