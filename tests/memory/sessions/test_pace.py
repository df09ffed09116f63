"""When a session is over: quiet, another session, closing, or on demand."""

from __future__ import annotations

import asyncio

import pytest

from locus_memory.memory.scope import Scope
from tests.memory.conftest import idle, ring, timers
from tests.memory.sessions.conftest import (
    LONG,
    SCOPE,
    Distiller,
    episodes_of,
    run_of,
    turns_of,
)


async def test_a_turn_arms_the_debounce_and_each_further_one_delays_it(tend, clock):
    model = Distiller()
    manager = tend(extract_fn=model, session_idle=10)
    loop = asyncio.get_running_loop()
    await manager.on_session_end(run_of(turns_of(LONG)))
    (timer,) = timers(manager)
    assert 9.9 < timer.when() - loop.time() < 10.5
    clock.advance(6)
    await manager.on_session_end(run_of(turns_of(LONG, LONG)))
    clock.advance(4)
    await ring(manager)
    assert model.sessions == []
    (timer,) = timers(manager)
    assert 5.9 < timer.when() - loop.time() < 6.1
    clock.advance(6)
    await ring(manager)
    assert len(model.sessions) == 1
    assert manager.pending == 0
    assert timers(manager) == []


async def test_another_session_of_the_scope_ends_the_one_before(tend, either):
    """Sessions of other users go on."""
    model = Distiller()
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(turns_of(LONG), "ada's", user_id="ada"))
    await manager.on_session_end(run_of(turns_of(LONG), "bo's", user_id="bo"))
    await idle(manager)
    assert model.sessions == []
    await manager.on_session_end(run_of(turns_of(LONG), "ada's next", user_id="ada"))
    await idle(manager)
    assert len(model.sessions) == 1
    (episode,) = await episodes_of(either, Scope(("locus_memory", "users", "ada")))
    assert episode.session_id == "ada's"
    assert manager.pending == 2


async def test_sessions_that_are_over_take_no_room(tend):
    """Whatever ends them."""
    manager = tend()
    for number in range(20):
        await manager.on_session_end(run_of(turns_of(LONG), f"t{number}", user_id=f"u{number % 3}"))
    await manager.sync_now()
    assert manager._worker._units == {}


async def test_closing_the_manager_ends_all_sessions(tend, either):
    manager = tend()
    await manager.on_session_end(run_of(turns_of(LONG), "a", user_id="ada"))
    await manager.on_session_end(run_of(turns_of(LONG), "b", user_id="bo"))
    await manager.close()
    for user in ("ada", "bo"):
        assert len(await episodes_of(either, Scope(("locus_memory", "users", user)))) == 1


async def test_sync_now_of_one_scope_leaves_the_others(tend, either):
    """The scope is the one that the manager is bound to."""
    manager = tend()
    for user in ("ada", "bo", "cy"):
        await manager.on_session_end(run_of(turns_of(LONG), user, user_id=user))
    assert await manager.scoped(("locus_memory", "users", "ada")).sync_now() == 0
    assert manager.pending == 2
    assert await manager.for_user("bo").sync_now() == 0
    assert manager.pending == 1
    assert await manager.scoped(("locus_memory",)).sync_now() == 0
    assert manager.pending == 1
    assert await manager.sync_now() == 0
    assert manager.pending == 0


async def test_orphans_are_distilled_at_the_first_use(tend, either, clock):
    """What an earlier process left is distilled without a further turn."""
    first = tend(extract_mode="manual")
    await first.on_session_end(run_of(turns_of(LONG)))
    clock.advance(60)
    second = tend()
    await second.retrieve()
    await second.on_session_start(run_of(turns_of("Hi")))
    await idle(second)
    assert len(await episodes_of(either)) == 1


async def test_a_session_that_goes_on_while_it_is_distilled_waits_for_its_next_pause(tend, either):
    entered, gate = asyncio.Event(), asyncio.Event()

    class Slow(Distiller):
        async def distill(self, messages, memories):
            entered.set()
            await gate.wait()
            return await super().distill(messages, memories)

    model = Slow()
    manager = tend(extract_fn=model)
    await manager.on_session_end(run_of(turns_of(LONG)))
    flush = asyncio.create_task(manager._worker.flush(SCOPE.namespace, SCOPE.lane("t")))
    await entered.wait()
    await manager.on_session_end(run_of(turns_of(LONG, "More. " + LONG)))
    gate.set()
    await flush
    await idle(manager)
    assert len(model.sessions) == 1
    assert manager.pending == 1
    assert len(timers(manager)) == 1
    await manager.sync_now()
    assert [each.turns for each in await episodes_of(either)] == [(1, 2), (3, 4)]


@pytest.mark.parametrize("mode", ["inline", "background"])
async def test_by_turn_each_turn_is_a_call_with_facts_and_an_episode(make, store, mode):
    model = Distiller()
    manager = make(extract_fn=model, extract_mode=mode)
    for count in (1, 2):
        await manager.on_session_end(run_of(turns_of(*[LONG] * count)))
        await manager.drain()
    assert len(model.sessions) == 2
    assert len(await store.list_keys(SCOPE.episodes)) == 2
    assert len(await store.list_keys(SCOPE.transcript("t"))) == 4


async def test_a_session_from_the_future_waits_for_no_clock(tend, either, clock):
    """The clock of the process that queued it was wrong: that says nothing about a pause."""
    clock.advance(86_400)
    first = tend(extract_mode="manual")
    await first.on_session_end(run_of(turns_of(LONG)))
    clock.advance(-86_400)
    second = tend()
    await second.retrieve()
    await second.on_session_start(run_of(turns_of("Hi")))
    await idle(second)
    assert len(await episodes_of(either)) == 1
