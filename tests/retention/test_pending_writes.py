"""LangGraph's pending writes stay with their checkpoints, and go with them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph.checkpoint.base")

from langgraph.checkpoint.base import empty_checkpoint

from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.threads import Place
from locus_memory.registry import open_backend
from locus_memory.retention import ThreadRule, retain
from locus_memory.testing import FakeClock

NOW = timedelta(0)
HOUR = timedelta(hours=1)


async def filled(saver, thread, user, *, writes=(2, 2), namespace=""):
    """Save checkpoints of a user, each with so many pending writes of its own."""
    place = {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "user_id": user}}
    for number, count in enumerate(writes):
        checkpoint = empty_checkpoint()
        metadata = {"source": "loop", "step": number, "user_id": user}
        place = await saver.aput(place, checkpoint, metadata, {})
        for task in range(count):
            await saver.aput_writes(place, [("c", f"{user} {number} {task}")], f"task{task}")


async def pending(backend):
    """Return the pending writes by thread, namespace and step, as a new saver reads them."""
    async with LocusSaver(backend) as saver:
        return {
            (
                each.config["configurable"]["thread_id"],
                each.config["configurable"]["checkpoint_ns"],
                each.metadata["step"],
            ): sorted(value for _, _, value in each.pending_writes)
            async for each in saver.alist(None)
        }


async def written_alone(backend, thread):
    """Return how many records of pending writes a thread has, with or without a checkpoint."""
    name = Place.at(thread, "").writes
    return len(await backend.checkpointer.list_with_metadata(name, 100))


async def test_the_writes_of_a_users_threads_go_along(provider):
    name, options = provider
    async with open_backend(name, **options) as backend:
        async with LocusSaver(backend) as saver:
            for user in ("ada", "bob"):
                await filled(saver, f"{user}'s", user)
        before = await pending(backend)
        rules = [ThreadRule(user_id="ada", idle_for=NOW)]
        plan = await retain(backend, rules, dry_run=True)
        assert await pending(backend) == before
        done = await retain(backend, rules)
        assert plan.places == done.places
        assert await written_alone(backend, "ada's") == 0
        left = await backend.checkpointer.list_threads()
        assert {Place.named(each).thread_id for each in left} == {"bob's"}
        assert await pending(backend) == {
            key: value for key, value in before.items() if key[0] == "bob's"
        }


@pytest.mark.parametrize(
    "rule",
    [
        ThreadRule(metadata={"user_id": "ada"}, idle_for=NOW),
        ThreadRule(keep_threads=0),
        ThreadRule(prefix='langgraph:["t",""]', idle_for=NOW),
    ],
    ids=["metadata", "keep_threads", "prefix"],
)
async def test_the_writes_of_each_thread_that_a_rule_deletes_go_along(provider, rule):
    name, options = provider
    async with open_backend(name, **options) as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada")
        await retain(backend, [rule])
        assert await backend.checkpointer.list_threads() == []


async def test_a_prune_keeps_all_writes_of_the_newest_checkpoint(provider):
    name, options = provider
    async with open_backend(name, **options) as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada", writes=(2, 1, 4))
        before = await pending(backend)
        await retain(backend, [ThreadRule(keep_last=1)])
        assert await pending(backend) == {("t", "", 2): before["t", "", 2]}
        assert await written_alone(backend, "t") == 4


@pytest.mark.parametrize("before", [0, 2])
async def test_writes_stay_that_langgraph_saves_before_their_checkpoint(provider, before):
    """A graph does not wait for its checkpoints, unless it is told to."""
    name, options = provider
    async with open_backend(name, **options) as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada", writes=(1,) * before)
            place = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "user_id": "ada"}}
            if before:
                place = (await saver.aget_tuple(place)).config
            checkpoint = empty_checkpoint()
            coming = {**place["configurable"], "checkpoint_id": checkpoint["id"]}
            await saver.aput_writes({"configurable": coming}, [("c", "asked")], "task")
            rules = [ThreadRule(keep_last=1)]
            plan = await retain(backend, rules, dry_run=True)
            assert (await retain(backend, rules)).places == plan.places
            await saver.aput(place, checkpoint, {"source": "loop", "step": before}, {})
        assert (await pending(backend))["t", "", before] == ["asked"]


async def test_a_vacuum_keeps_all_writes_of_the_checkpoints_that_stay(provider):
    name, options = provider
    clock = FakeClock()
    async with open_backend(name, clock=clock, **options) as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada", writes=(2, 1, 4))
            await filled(saver, "gone", "bob", writes=(3,))
            clock.advance(20 * 86_400)
            await filled(saver, "t", "ada", writes=(2,), namespace="writes")
        before = await pending(backend)
        await backend.checkpointer.delete(Place.at("gone", "").name)
        assert await backend.checkpointer.vacuum(30) == 0
        clock.advance(20 * 86_400)
        # Two checkpoints with their writes, and those of the deleted one.
        assert await backend.checkpointer.vacuum(30) == 2 + 3 + 3
        stay = [("t", "", 2), ("t", "writes", 0)]
        assert await pending(backend) == {key: before[key] for key in stay}
        assert await written_alone(backend, "t") == 4
        assert await backend.checkpointer.vacuum(0) == 0
        assert await written_alone(backend, "gone") == 0


async def test_writes_whose_checkpoints_are_gone_are_left_by_no_killed_call(provider):
    name, options = provider
    async with open_backend(name, **options) as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada")
        # So far a call came before it was killed.
        await backend.checkpointer.delete(Place.at("t", "").name)
        await retain(backend, [ThreadRule(user_id="bob", prefix="other", idle_for=NOW)])
        await retain(backend, [ThreadRule(user_id="ada", idle_for=HOUR)])
        assert await written_alone(backend, "t") == 4
        report = await retain(backend, [ThreadRule(user_id="ada", idle_for=NOW)])
        assert (report.checkpoints, await backend.checkpointer.list_threads()) == (4, [])


async def test_a_namespace_or_a_thread_of_that_name_holds_no_writes():
    async with open_backend("memory") as backend:
        async with LocusSaver(backend) as saver:
            await filled(saver, "t", "ada", namespace="writes")
        for name in ('langgraph:["t","', 'langgraph:["a","b","c","writes"]', "langgraph:[1]"):
            await backend.checkpointer.save({}, name)
        before, names = await pending(backend), await backend.checkpointer.list_threads()
        assert (await retain(backend, [ThreadRule(keep_last=2)])).checkpoints == 0
        assert await pending(backend) == before
        assert await backend.checkpointer.list_threads() == names


rules = st.builds(
    ThreadRule,
    metadata=st.none() | st.sampled_from([{"user_id": "ada"}, {"step": 1}]),
    prefix=st.sampled_from(["", 'langgraph:["t1"', "t"]),
    user_id=st.none() | st.sampled_from(["ada", "bob"]),
    keep_last=st.none() | st.integers(1, 3),
    older_than=st.none() | st.integers(0, 4).map(lambda hours: HOUR * hours),
    idle_for=st.none() | st.integers(0, 4).map(lambda hours: HOUR * hours),
    keep_threads=st.none() | st.integers(0, 2),
)
threads = st.lists(
    st.tuples(
        st.sampled_from(["t1", "t2", 'q"', "\u00fc,["]),
        st.sampled_from(["", "sub", "writes"]),
        st.sampled_from(["ada", "bob"]),
        st.lists(st.integers(0, 2), min_size=1, max_size=3),
    ),
    max_size=4,
    unique_by=lambda each: each[:2],
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(given_rules=st.lists(rules, min_size=1, max_size=3, unique_by=id), given_threads=threads)
def test_a_checkpoint_that_stays_has_its_writes_and_no_others_are_left(given_rules, given_threads):
    async def work():
        clock = FakeClock()
        async with open_backend("memory", clock=clock) as backend:
            async with LocusSaver(backend) as saver:
                for thread, namespace, user, writes in given_threads:
                    await filled(saver, thread, user, writes=writes, namespace=namespace)
                    clock.advance(3600)
            before = await pending(backend)
            plan = await retain(backend, given_rules, dry_run=True, clock=clock)
            assert await pending(backend) == before
            done = await retain(backend, given_rules, clock=clock)
            assert plan == done.__class__(
                places=done.places, items=done.items, checkpoints=done.checkpoints,
                threads=done.threads, dry_run=True,
            )  # fmt: skip
            left = await pending(backend)
            assert left == {key: before[key] for key in left}
            for name in await backend.checkpointer.list_threads():
                place = Place.named(name)
                infos = await backend.checkpointer.list_with_metadata(place.name, 100)
                ids = {each.checkpoint_id for each in infos}
                beside = await backend.checkpointer.list_with_metadata(place.writes, 100)
                assert {each.metadata["of"] for each in beside} <= ids

    asyncio.run(work())
