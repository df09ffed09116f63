"""Sessions that are split over processes: their parts become one session."""

from __future__ import annotations

import asyncio
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.extraction.distillate import Distillate
from locus_memory.memory.manager import LLMMemoryManager
from locus_memory.memory.models import MemoryChange, MemoryType
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message
from locus_memory.testing import FakeClock
from tests.memory.conftest import idle, ring, timers
from tests.memory.sessions.conftest import (
    LONG,
    SCOPE,
    Distiller,
    episodes_of,
    run_of,
    turns_of,
)


async def one_turn(store, count, model, clock, thread="t", **metadata):
    """A process that has one turn, the `count`th of its thread."""
    async with LLMMemoryManager(
        store, extract_fn=model, extract_mode="session_end", clock=clock
    ) as manager:
        said = turns_of(*(f"{n}" for n in range(count)))
        await manager.on_session_start(run_of(said[:-1], thread, **metadata))
        await manager.on_session_end(run_of(said, thread, **metadata))


async def test_one_manager_a_turn_costs_one_call_a_turn(either, clock):
    """What a process was told is read before it ends, each turn with the one before it."""
    model = Distiller()
    for count in range(1, 4):
        await one_turn(either, count, model, clock)
        clock.advance(5)
    assert model.sessions == [["0", "Noted: 0"], ["1", "Noted: 1"], ["2", "Noted: 2"]]
    assert [each.turns for each in await episodes_of(either)] == [(1, 2), (3, 4), (5, 6)]
    assert await either.list_keys(SCOPE.queue) == []


async def test_a_new_process_waits_for_the_debounce_that_remains(tend, clock):
    """A session whose last turn is 25 seconds old is over in 35."""
    model = Distiller()
    await tend(extract_fn=model).on_session_end(run_of(turns_of(LONG)))
    clock.advance(25)
    manager = tend(extract_fn=model)
    before = asyncio.get_running_loop().time()
    await manager.open()
    await idle(manager)
    (timer,) = timers(manager)
    assert 34.5 < timer.when() - before < 35.5
    assert (model.sessions, manager.pending) == ([], 1)
    clock.advance(35)
    manager = tend(extract_fn=model)
    await manager.open()
    await idle(manager)
    assert len(model.sessions) == 1


async def test_a_timer_of_one_process_sees_the_turn_of_another(tend, clock):
    """The session is quiet in this process, but not in that one."""
    model = Distiller()
    first, second = tend(extract_fn=model), tend(extract_fn=model)
    await first.on_session_end(run_of(turns_of(LONG)))
    clock.advance(50)
    await second.on_session_end(run_of(turns_of(LONG, LONG)))
    await idle(second)
    clock.advance(10)
    await ring(first)
    assert model.sessions == []
    (timer,) = timers(first)
    assert 49.5 < timer.when() - asyncio.get_running_loop().time() < 50.5
    clock.advance(50)
    assert await first.sync_now() == 0
    assert len(model.sessions) == 1


async def test_a_process_that_only_opens_and_closes_distils_what_is_over(tend, either, clock):
    """It waits for the model, and leaves what may go on."""
    talking = tend()
    await talking.on_session_end(run_of(turns_of(LONG), "ada's", user_id="ada"))
    clock.advance(50)
    await talking.on_session_end(run_of(turns_of(LONG), "bo's", user_id="bo"))
    clock.advance(10)
    model = Distiller()
    async with tend(extract_fn=model) as passing:
        await passing.open()
    assert len(model.sessions) == 1
    (left,) = await either.scan(SCOPE.queue)
    assert left.value["thread"] == "bo's"


async def test_of_several_sessions_of_a_scope_only_the_newest_goes_on(tend, either, clock):
    """A process that was killed left two of them; the older one is over."""
    model = Distiller()
    dead = tend(extract_fn=model)
    await dead.on_session_end(run_of(turns_of(LONG), "a"))
    clock.advance(1)
    dead._worker._closed = True
    await dead.on_session_end(run_of(turns_of(LONG), "b"))
    manager = tend(extract_fn=model)
    await manager.open()
    await idle(manager)
    assert [each.session_id for each in await episodes_of(either)] == ["a"]
    await manager.on_session_end(run_of(turns_of(LONG), "c"))
    await idle(manager)
    assert [each.session_id for each in await episodes_of(either)] == ["a", "b"]


async def test_closing_leaves_sessions_of_other_processes_alone(tend, either):
    """A process that only looks does not end a conversation."""
    model = Distiller()
    talking, looking = tend(extract_fn=model), tend(extract_fn=model)
    await talking.on_session_end(run_of(turns_of(LONG)))
    await looking.open()
    await looking.close()
    assert model.sessions == []
    await talking.close()
    assert len(await episodes_of(either)) == 1


async def test_in_manual_mode_no_process_but_the_one_that_is_told_distils(tend, either, clock):
    """Not after the debounce, nor for another session, a run, an ingestion or a close."""
    model = Distiller()
    options = {"extract_fn": model, "extract_mode": "manual"}
    for thread in ("a", "b", "a"):
        manager = tend(**options)
        await manager.open()
        await manager.on_session_start(run_of(turns_of("Hi."), thread))
        await manager.on_session_end(run_of(turns_of(f"{thread}{clock.now} {LONG}"), thread))
        await manager.ingest("agent", f"past {thread}", [{"user": LONG}])
        assert await manager.drain() > 0
        await idle(manager)
        await manager.close()
        clock.advance(10_000)
    model.answers = [ConnectionError() for _ in range(4)]
    manager = tend(**options)
    assert model.sessions == []
    assert await manager.sync_now() == 5
    assert timers(manager) == []
    assert await manager.sync_now() == 0
    assert sorted(each.session_id for each in await episodes_of(either)) == [
        "a",
        "b",
        "past a",
        "past b",
    ]


async def test_a_moment_in_the_future_holds_no_session_back(tend, either, clock):
    """The clock of the process that queued it was wrong."""
    ahead = tend(clock=FakeClock(clock.now + 10**6))
    await ahead.on_session_end(run_of(turns_of(LONG)))
    ahead._worker._closed = True
    manager = tend()
    await manager.open()
    await idle(manager)
    assert len(await episodes_of(either)) == 1


async def test_rules_read_a_turn_once_in_whatever_process_it_ends(either, clock):
    """What was undone or erased in one process does not come back in another."""
    options = {"extract_mode": "session_end", "clock": clock}
    async with LLMMemoryManager(either, **options) as manager:
        await manager.on_session_end(run_of(turns_of("I live in Graz.")))
        assert [each.key async for each in manager.memories()] == ["home"]
        await manager.forget("home")
    clock.advance(100)
    async with LLMMemoryManager(either, **options) as manager:
        assert await manager.sync_now() == 0
        assert [each.key async for each in manager.memories()] == []
    assert await either.list_keys(SCOPE.queue) == []


async def test_the_facts_of_a_short_session_are_there_in_the_next_process(either, clock):
    """The model read them before the first one ended."""
    model, options = Read(), {"extract_mode": "session_end", "clock": clock}
    async with LLMMemoryManager(either, extract_fn=model, **options) as manager:
        await manager.on_session_end(run_of(turns_of("My cat is called Mo.")))
    async with LLMMemoryManager(either, extract_fn=model, **options) as manager:
        assert [each.content async for each in manager.memories()] == ["The cat Mo is hers."]
        await manager.on_session_end(run_of(turns_of("My cat is called Mo.", LONG)))
        assert await manager.sync_now() == 0
    assert [len(messages) for messages in model.sessions] == [2, 2]


STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from(["go on", "end", "quiet"])),
    max_size=12,
)


class Read(Distiller):
    """A model that finds the cats of its messages, and counts how often it told of each."""

    def __init__(self):
        super().__init__()
        self.cats = Counter()

    async def distill(self, messages, memories):
        found = [
            cat
            for message in messages
            if message.role == "user"
            for cat in re.findall(r"cat is called (\w+)", message.content)
        ]
        self.cats.update(found)
        changes = tuple(
            MemoryChange(
                op="add", type=MemoryType.USER, key=f"cat {cat}", content=f"The cat {cat} is hers."
            )
            for cat in found
        )
        made = await super().distill(messages, memories)
        return Distillate(changes=changes, notes=made.notes)


async def talk(store, model, steps):
    """Return the cats of a conversation in many processes."""
    clock, said, told = FakeClock(), {"a": [], "b": []}, []
    options = {"extract_fn": model, "extract_mode": "session_end", "clock": clock}
    for number, (thread, is_long, then) in enumerate(steps):
        told.append(f"Z{chr(97 + number)}ro")
        fact = f"My cat is called {told[-1]}."
        said[thread] += [f"{fact} {LONG}" if is_long else fact]
        async with LLMMemoryManager(store, **options) as manager:
            messages = [m for text in said[thread] for m in (Message.user(text), OK)]
            await manager.on_session_end(run_of(messages, thread))
            if then == "end":
                assert await manager.sync_now() == 0
        clock.advance(100 if then == "quiet" else 5)
    async with LLMMemoryManager(store, **options) as manager:
        assert await manager.sync_now() == 0
        facts = sorted([each.content async for each in manager.memories()])
    return told, facts


OK = Message.assistant("Ok.")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_the_model_is_told_each_turn_once(steps):
    """No fact is lost, and no turn is in two episodes, however the sessions are split."""

    async def check():
        model = Read()
        async with InMemoryStore() as store:
            told, facts = await talk(store, model, steps)
            assert model.cats == Counter(told)
            assert facts == sorted(f"The cat {cat} is hers." for cat in told)
            covered = Counter(
                (session, number)
                for each in await episodes_of(store)
                for session, first, last in each.all_turns
                for number in range(first, last + 1)
            )
            assert set(covered.values()) <= {1}
            assert len(covered) == sum(map(len, model.sessions))
            assert await store.list_keys(SCOPE.queue) == []

    asyncio.run(check())


class Interrupted(HeuristicExtractor):
    """Rules whose first reading takes too long."""

    def __init__(self):
        super().__init__()
        self.began = asyncio.Event()

    async def extract(self, messages, existing=()):
        if not self.began.is_set():
            self.began.set()
            await asyncio.sleep(3600)
        return await super().extract(messages, existing)


async def test_a_run_that_is_cancelled_while_rules_read_it_is_read_by_close(either, clock):
    rules = Interrupted()
    async with LLMMemoryManager(
        either, extract_fn=rules, extract_mode="session_end", clock=clock
    ) as manager:
        run = asyncio.create_task(manager.on_session_end(run_of(turns_of("I live in Lyon."))))
        await rules.began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [memory async for memory in manager.memories()] == []
        await manager._worker.close(0)
    async with LLMMemoryManager(either, clock=clock) as manager:
        await manager.drain()
        contents = [memory.content async for memory in manager.memories()]
    assert contents == ["The user lives in Lyon."]
