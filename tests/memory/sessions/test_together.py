"""A model sees each message of a user once: short sessions wait, and travel together."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.extraction.extractors import LLMExtractor
from locus_memory.memory.forgetting.forget import forget
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.messages import Message
from locus_memory.testing import FakeClock
from locus_memory.testing.model import FakeModel
from tests.memory.conftest import PlainStore, idle, new_of, ring
from tests.memory.sessions.conftest import LONG, SCOPE, Distiller, episodes_of, run_of, turns_of

OK = Message.assistant("Ok.")


class Listener:
    """A model that counts its calls, and remembers which messages of users it was shown."""

    name = "listener"

    def __init__(self):
        self.calls = []

    async def distill(self, messages, memories):
        self.calls.append([each.content for each in new_of(messages) if each.role == "user"])
        return Distillate()

    async def extract(self, messages, memories):
        raise AssertionError("a session is distilled")

    @property
    def seen(self):
        return Counter(text for call in self.calls for text in call)


def open_manager(store, model, clock, **options):
    options = {"extract_mode": "session_end", **options}
    return LLMMemoryManager(store, extract_fn=model, clock=clock, **options)


def said_by(*texts):
    return [message for text in texts for message in (Message.user(text), OK)]


async def test_what_is_short_waits_for_the_next_session(tend, either):
    """Both are in one call, which makes one episode: that of the longer one."""
    model = Distiller()
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(turns_of("Ich wohne in Graz."), "a"))
    await manager.on_session_end(run_of(turns_of(LONG), "b"))
    await idle(manager)
    assert (model.sessions, manager.pending) == ([], 2)
    await manager.on_session_end(run_of(turns_of("Yes."), "c"))
    await idle(manager)
    assert len(model.sessions) == 1
    assert model.sessions[0][0] == "Ich wohne in Graz."
    (episode,) = await episodes_of(either)
    assert episode.all_turns == (("b", 1, 2), ("a", 1, 2))
    assert manager.pending == 1


async def test_short_sessions_are_enough_for_one_another(tend):
    model = Listener()
    manager = tend(extract_fn=model)
    for number in range(9):
        await manager.on_session_end(run_of(said_by(f"{number} is a number."), f"t{number}"))
        await idle(manager)
    # A session has 17 characters with its answer: five of them have 85.
    assert [len(call) for call in model.calls] == [5]


@pytest.mark.parametrize("ends", ["drain", "sync_now", "close"])
async def test_the_wait_ends_on_demand(tend, either, ends):
    """All that waits is in one call."""
    model = Listener()
    manager = tend(extract_fn=model)
    for number in range(3):
        await manager.on_session_end(run_of(said_by(f"No {number}"), f"t{number}"))
        await idle(manager)
    assert model.calls == []
    await getattr(manager, ends)()
    assert model.calls == [["No 0", "No 1", "No 2"]]
    assert await either.list_keys(SCOPE.queue) == []


@pytest.mark.parametrize("restarts", [False, True])
async def test_the_wait_ends_with_its_time(tend, clock, restarts):
    """It counts from the first turn, in whatever process; what is over by then comes along."""
    model, options = Listener(), {"pending_max_age": 3_600}
    manager = tend(extract_fn=model, **options)
    await manager.on_session_end(run_of(said_by("I am Ada."), "a"))
    await manager.on_session_end(run_of(said_by("Hm."), "b"))
    await idle(manager)
    clock.advance(3_599)
    if restarts:
        manager._worker._closed = True
        manager = tend(extract_fn=model, **options)
    await manager.open()
    await idle(manager)
    await ring(manager)
    assert model.calls == []
    clock.advance(1)
    await ring(manager)
    assert model.calls == [["I am Ada.", "Hm."]]


async def test_a_session_that_goes_on_is_read_as_a_whole(tend):
    model = Listener()
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(said_by("I am Ada."), "a"))
    await manager.on_session_end(run_of(said_by("Hm."), "b"))
    await idle(manager)
    await manager.on_session_end(run_of(said_by("I am Ada.", LONG), "a"))
    await manager.on_session_end(run_of(said_by("Well."), "c"))
    await idle(manager)
    assert model.calls == [["Hm.", "I am Ada.", LONG]]


class Teller(Distiller):
    """A model that finds one fact in each message of the user, and says from which."""

    async def distill(self, messages, memories):
        made = await super().distill(messages, memories)
        found = tuple(
            MemoryChange(
                op="add",
                type=MemoryType.USER,
                key=each.content,
                content=f"Said {each.content}.",
                sources=(place,),
                importance=0.6,
            )
            for place, each in enumerate(messages)
            if each.role == "user"
        )
        return Distillate(changes=found, notes=made.notes)


async def test_each_fact_has_the_source_of_its_own_session(tend, either, clock):
    manager = tend(extract_fn=Teller())
    for number, text in enumerate(("one", "two", f"three {LONG}")):
        await manager.on_session_end(run_of(said_by(*["Hi"] * number, text), f"t{number}"))
        clock.advance(1_000)
    assert await manager.drain() == 0
    facts = {each.key: each async for each in manager.memories()}
    for number, name in enumerate(("one", "two", f"three {LONG}")):
        fact = facts[name]
        assert fact.metadata["thread_id"] == f"t{number}"
        assert fact.metadata["message_ids"] == [f"#{2 * number + 1}"]
        (vitals,) = (await VitalsBook(either).of(SCOPE, [fact])).values()
        assert vitals.messages == ((f"t{number}", f"#{2 * number + 1}"),)
    moments = [facts[name].metadata["valid_from"] for name in ("one", "two")]
    assert moments == sorted(set(moments))
    (episode,) = await episodes_of(either)
    assert {session for session, _, _ in episode.all_turns} == {"t0", "t1", "t2"}


async def test_a_fact_of_several_sessions_is_of_the_last_one(tend):
    class Both(Distiller):
        async def distill(self, messages, memories):
            change = MemoryChange(
                op="add", type=MemoryType.USER, key="k", content="Ada.", sources=(2, 0)
            )
            return Distillate(changes=(change,))

    manager = tend(extract_fn=Both())
    for name in ("a", "b"):
        await manager.on_session_end(run_of(said_by(f"I am {name}."), name))
    await manager.drain()
    (memory,) = await manager.retrieve()
    assert (memory.metadata["thread_id"], memory.metadata["message_ids"]) == ("b", ["#1"])


async def test_the_prompt_tells_the_sessions_apart(tend):
    model = FakeModel(['{"changes": [], "notes": []}'])
    manager = tend(extract_fn=LLMExtractor(model))
    await manager.on_session_end(run_of(said_by("I am Ada."), "a"))
    await manager.on_session_end(run_of(said_by("She is my sister."), "b"))
    assert await manager.drain() == 0
    rows = model.calls[0][-1].content.splitlines()
    assert "1. (Tuesday 2023-11-14) user: I am Ada." in rows
    assert "3. (another conversation) (Tuesday 2023-11-14) user: She is my sister." in rows


@pytest.mark.parametrize("target", [{"user_id": "ada"}, {"user_id": "ada", "query": "arachides"}])
async def test_what_is_forgotten_while_it_waits_is_never_read(tend, either, target):
    """The short session of the user, or of the words, goes; others stay."""
    model = Listener()
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(said_by("Allergique aux arachides"), "a", user_id="ada"))
    await manager.on_session_end(run_of(said_by("I am Bo."), "b", user_id="bo"))
    await manager.on_session_end(run_of(said_by("Hm."), "c", user_id="ada"))
    await idle(manager)
    await forget(either, **target)
    assert await manager.drain() == 0
    kept = ["Hm."] if "query" in target else []
    assert model.seen == Counter([*kept, "I am Bo."])


async def test_a_thread_that_is_forgotten_takes_what_was_read_with_it(tend, either):
    """The episode of the call may have its words, whichever session it is of."""
    made = Distillate(
        changes=(
            MemoryChange(
                op="add", type=MemoryType.USER, key="k", content="Ada sails.", sources=(0,)
            ),
        ),
        notes=(NoteDraft("Something about water."),),
    )
    manager = tend(extract_fn=Distiller(made))
    await manager.on_session_end(run_of(turns_of("I sail."), "a"))
    await manager.on_session_end(run_of(turns_of(LONG), "b"))
    await manager.drain()
    assert len(await episodes_of(either)) == 1
    await forget(either, key="k")
    assert await episodes_of(either) == []


async def test_a_secret_is_never_in_the_transcript(tend, either, events):
    """Not even until its session ends: another thread is shown what was said in this one."""
    manager = tend(extract_fn=Listener())
    await manager.on_session_end(run_of([Message.user("My PIN is 4711."), OK], "a"))
    recorded = await either.scan(SCOPE.transcript("a"), 10)
    assert [item.value["text"] for item in recorded] == ["Ok."]
    (event,) = events.of("memory.secret_dropped")
    assert event.attributes == {"type": "transcript", "kind": "pin"}


async def test_a_session_that_fails_does_not_hold_the_others_back(tend, clock):
    """After two attempts it travels alone."""

    class Choosy(Listener):
        async def distill(self, messages, memories):
            if any("poison" in each.content for each in messages):
                raise ConnectionError
            return await super().distill(messages, memories)

    model = Choosy()
    manager = tend(extract_fn=model)
    for name in ("poison", "tea", "milk"):
        await manager.on_session_end(run_of(said_by(name), name))
    counts = [await manager.drain() for _ in range(3)]
    assert counts == [3, 3, 1]
    assert model.seen == Counter(["tea", "milk"])


async def test_a_great_deal_of_short_sessions_fits_its_calls(tend):
    """A call has no more of them than a model can read well."""
    model = Listener()
    manager = tend(extract_fn=model, extract_mode="manual")
    told = [f"{number:03} {'word ' * 13}" for number in range(150)]
    for number, text in enumerate(told):
        await manager.on_session_end(run_of(said_by(text.strip()), f"t{number}"))
    assert await manager.sync_now() == 0
    assert model.seen == Counter(text.strip() for text in told)
    assert len(model.calls) == 3
    assert all(sum(map(len, call)) < 4_100 for call in model.calls)


async def test_rules_write_nothing_where_there_is_a_model(tend):
    """Neither at the end of a run, nor while a session waits, nor when it is closed."""
    manager = tend(extract_fn=Listener())
    await manager.on_session_end(run_of(said_by("My name is Ada. I live in Graz."), "a"))
    await manager.on_session_end(run_of(said_by("Hm."), "b"))
    await idle(manager)
    await manager.close()
    manager = tend(extract_fn=Listener())
    assert [each.key async for each in manager.memories()] == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.sampled_from("abc"), st.sampled_from(["", "x" * 90])),
        st.tuples(st.just("clock"), st.sampled_from([5, 61, 86_400])),
        st.sampled_from([("close",), ("kill",), ("drain",), ("sync_now",), ("open",)]),
    ),
    max_size=25,
)


async def live(store, steps):
    """Return the model of a life in steps, and what was said."""
    model, clock = Listener(), FakeClock()
    said, told = {"a": [], "b": [], "c": []}, []
    manager = open_manager(store, model, clock)
    for verb, *arguments in steps:
        if verb == "turn":
            thread, more = arguments
            user = "u2" if thread == "c" else "u1"
            told.append(f"{user} {len(told)} {more}".strip())
            said[thread].append(told[-1])
            await manager.on_session_end(run_of(said_by(*said[thread]), thread, user_id=user))
        elif verb == "clock":
            clock.advance(arguments[0])
        elif verb == "open":
            await manager.open()
        elif verb in ("drain", "sync_now"):
            assert await getattr(manager, verb)() == 0
            assert model.seen == Counter(told)
        else:
            if verb == "kill":
                manager._worker._closed = True
            await manager.close()
            if verb == "close":
                assert model.seen >= Counter(own(manager, told))
            manager = open_manager(store, model, clock)
        await idle(manager)
    assert await manager.drain() == 0
    await manager.close()
    return model, told


def own(manager, told):
    """What a manager that was closed had to read: nothing of it waits."""
    assert not any(unit.own for unit in manager._worker._units.values())
    return []


@pytest.mark.slow
@pytest.mark.parametrize("is_plain", [False, True])
@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_each_message_is_in_one_call_in_whatever_order_things_happen(is_plain, steps):
    async def check():
        async with InMemoryStore() as inner:
            store = PlainStore(inner) if is_plain else inner
            model, told = await live(store, steps)
            assert model.seen == Counter(told)
            assert all(len({text.split()[0] for text in call}) == 1 for call in model.calls)
            assert await inner.list_keys(SCOPE.queue) == []

    asyncio.run(check())
