"""`LocusSaver` called by hand: ids out of order, odd names, neighbours, writes, removal."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from locus_memory import get_checkpointer, open_backend
from locus_memory.errors import CheckpointConflictError, InvalidArgumentError
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.integrations.langgraph.threads import Place, prefix_of

NAMES = ["a", "a ", "A", 'a"', 'a","', 'a",""]', "a/b", "a\\", "a%", "a*", "é", "語", "\x00", "a\n"]


def config(thread_id="ada", namespace="", checkpoint_id=None):
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def checkpoint(checkpoint_id, **values):
    return {
        "v": 4,
        "id": checkpoint_id,
        "ts": "2026-01-02T03:04:05.000006+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
        "versions_seen": {},
        "updated_channels": None,
    }


async def put(saver, checkpoint_id, *, parent=None, thread_id="ada", metadata=None, **values):
    where = config(thread_id, checkpoint_id=parent)
    versions = dict.fromkeys(values, 1)
    return await saver.aput(where, checkpoint(checkpoint_id, **values), metadata or {}, versions)


async def ids(saver, **options):
    return [found.checkpoint["id"] async for found in saver.alist(config(), **options)]


async def test_the_greatest_id_is_the_latest_whatever_was_saved_last(saver, provider):
    order = [5, 3, 9, 1, 4, 2, 8, 6, 7, *range(10, 30, 2), *range(11, 29, 2)]
    greatest = 0
    for number in order:
        await put(saver, f"{number:03}", number=number)
        greatest = max(greatest, number)
        assert (await saver.aget_tuple(config())).checkpoint["id"] == f"{greatest:03}"
    assert await ids(saver) == [f"{number:03}" for number in sorted(order, reverse=True)]
    url, options = provider
    if url != "memory":
        for late in ("027a", "027b"):
            async with open_backend(url, **options) as backend, LocusSaver(backend) as fresh:
                assert (await fresh.aget_tuple(config())).checkpoint["id"] == "028"
                await put(fresh, late)


@pytest.mark.parametrize("other", NAMES[1:])
async def test_no_thread_is_its_neighbour(saver, other):
    for thread_id in ("a", other):
        for namespace in ("", other):
            where = config(thread_id, namespace)
            await saver.aput(where, checkpoint("1", name=[thread_id, namespace]), {}, {"name": 1})
            await saver.aput_writes(config(thread_id, namespace, "1"), [("c", 1)], "task")
    await saver.adelete_thread("a")
    assert await saver.aget_tuple(config("a")) is None
    for namespace in ("", other):
        found = await saver.aget_tuple(config(other, namespace))
        assert found.checkpoint["channel_values"] == {"name": [other, namespace]}
        assert found.pending_writes == [("task", "c", 1)]
    assert len([found async for found in saver.alist(None)]) == 2


@pytest.mark.slow
def test_every_name_leads_back_to_its_place():
    places = {Place.at(thread, namespace) for thread in NAMES for namespace in ["", *NAMES]}
    names = {name for place in places for name in (place.name, place.writes)}
    assert len(names) == 2 * len(places)
    for place in places:
        assert Place.named(place.name) == Place.named(place.writes) == place
        fitting = {name for name in names if name.startswith(prefix_of(place.thread_id))}
        assert {Place.named(name).thread_id for name in fitting} == {place.thread_id}
    for foreign in ("", "langgraph:", 'langgraph:["a"]', '["a",""]', 'langgraph:["a", ""]'):
        assert Place.named(foreign) is None


async def test_other_threads_of_the_database_are_left_alone(where):
    async with open_backend(where) as backend, LocusSaver(backend) as saver:
        await backend.checkpointer.save({"run_id": "r"}, "agent", metadata={"run_id": "run"})
        await put(saver, "1", metadata={"run_id": "run"})
        assert len([found async for found in saver.alist(None)]) == 1
        await saver.adelete_for_runs(["run"])
        assert await backend.checkpointer.list_threads() == ["agent"]


async def test_any_metadata_comes_back_and_is_found(saver):
    odd = {"when": datetime(2026, 1, 2, tzinfo=UTC), "~of": "ours", "n": float("inf"), "k": (1,)}
    await put(saver, "1", metadata={"source": "loop", **odd, "deep": {"a": [1, {"b": None}]}})
    await put(saver, "2", metadata={"source": "input", "step": 1})
    found = (await saver.aget_tuple(config(checkpoint_id="1"))).metadata
    assert found == {"source": "loop", **odd, "k": [1], "deep": {"a": [1, {"b": None}]}}
    assert await ids(saver, filter={"when": odd["when"]}) == ["1"]
    assert await ids(saver, filter={"deep": {"a": [1, {"b": None}]}}) == ["1"]
    assert await ids(saver, filter={"source": "input", "step": 1}) == ["2"]
    assert await ids(saver, filter={"missing": None}, limit=1) == ["2"]


async def test_a_listing_is_cut_by_limit_and_before(saver):
    for number in range(20):
        await put(saver, f"{number:02}", number=number)
    assert await ids(saver, limit=0) == []
    assert await ids(saver, limit=5) == ["19", "18", "17", "16", "15"]
    assert await ids(saver, before=config(checkpoint_id="03")) == ["02", "01", "00"]
    only = [found async for found in saver.alist(config(checkpoint_id="07"))]
    assert [found.checkpoint["channel_values"] for found in only] == [{"number": 7}]


async def test_a_checkpoint_comes_back_as_it_was(saver):
    whole = checkpoint("1", a=[1, (2, 3)], b={"c": None})
    whole["channel_versions"] = {"a": "00.5", "b": 2.0}
    whole["versions_seen"] = {"node": {"a": "00.5"}, "__input__": {}}
    whole["updated_channels"] = ["a", "b"]
    whole["pending_sends"] = []
    await saver.aput(config(), whole, {}, {"a": "00.5", "b": 2.0})
    found = (await saver.aget_tuple(config())).checkpoint
    assert found == {**whole, "channel_values": {"a": [1, [2, 3]], "b": {"c": None}}}
    odd = {**checkpoint("2"), "ts": "yesterday", "at": 1, "versions_seen": {1: {"a": b"x"}}}
    await saver.aput(config(checkpoint_id="1"), odd, {}, {})
    assert (await saver.aget_tuple(config())).checkpoint == odd


async def test_the_first_write_stays_and_a_special_one_is_replaced(saver):
    stored = await put(saver, "1")
    await saver.aput_writes(stored, [("a", 1), (INTERRUPT, "old")], "task", "path")
    await saver.aput_writes(stored, [("a", 2), (INTERRUPT, "new"), ("b", 3)], "task", "path")
    found = await saver.aget_tuple(config())
    assert found.pending_writes == [
        ("task", INTERRUPT, "new"), ("task", "a", 1), ("task", "b", 3),
    ]  # fmt: skip


async def test_writes_at_once_are_all_there_in_the_order_of_their_paths(where):
    async with open_backend(where) as backend, LocusSaver(backend) as one:
        savers = one, LocusSaver(backend)
        stored = await put(one, "1")
        await asyncio.gather(
            *(
                savers[number % len(savers)].aput_writes(
                    stored, [("c", number)], f"task {number}", f"path {9 - number // 4}/{number:02}"
                )
                for number in range(40)
            )
        )
        found = (await one.aget_tuple(config())).pending_writes
        assert sorted(value for _, _, value in found) == list(range(40))
        assert [value for _, _, value in found[:8]] == [36, 37, 38, 39, 32, 33, 34, 35]


async def test_writes_wait_a_moment_for_the_checkpoint_they_lead_to(saver):
    stored = await put(saver, "1", said=["something that is long enough to be pooled, surely"])
    said = [
        "something that is long enough to be pooled, surely",
        "and more of the same length.....",
    ]
    waiting = asyncio.create_task(saver.aput_writes(stored, [("said", said)], "task", "path"))
    await asyncio.sleep(0)
    await put(saver, "2", parent="1", said=said)
    await waiting
    assert await saver._checkpointer.list_threads() == ['langgraph:["ada",""]']
    found = await saver.aget_tuple(config(checkpoint_id="1"))
    assert found.pending_writes == [("task", "said", said)]
    assert (await saver.aget_tuple(config())).pending_writes == []
    listed = [found.pending_writes async for found in saver.alist(config())]
    assert listed == [[], [("task", "said", said)]]
    # The checkpoint that carries them goes, they stay.
    await put(saver, "0", metadata={"run_id": "r"})
    await put(saver, "2", parent="1", metadata={"run_id": "r"})
    assert (await saver.aget_tuple(config(checkpoint_id="1"))).pending_writes != []
    await saver.adelete_for_runs(["r"])
    assert await ids(saver) == ["1"]
    assert (await saver.aget_tuple(config())).pending_writes == [("task", "said", said)]


async def test_writes_are_stored_when_the_save_they_waited_for_fails(where):
    class Failing(LocusSaver):
        async def fail(self):
            stored = await put(self, "1")
            waiting = asyncio.create_task(self.aput_writes(stored, [("c", 1)], "task"))
            await asyncio.sleep(0)
            with pytest.raises(TypeError):
                await put(self, "2", parent="1", bad=object())
            await waiting

    async with Failing(where) as saver:
        await saver.fail()
        assert (await saver.aget_tuple(config())).pending_writes == [("task", "c", 1)]


@pytest.mark.parametrize("early", [True, False])
async def test_what_was_changed_in_place_and_written_is_encoded_again(saver, early):
    """The write may come before the save of the checkpoint that it belongs to."""
    said = [{"text": f"message {number}"} for number in range(40)]
    await put(saver, "1", said=said)
    if not early:
        await saver.aput(config(checkpoint_id="1"), checkpoint("2", said=said), {}, {})
    said[0]["text"] = "changed"
    await saver.aput_writes(config(checkpoint_id="2"), [("said", [said[0]])], "task")
    if early:
        await saver.aput(config(checkpoint_id="1"), checkpoint("2", said=said), {}, {})
    await put(saver, "3", parent="2", said=said)
    found = (await saver.aget_tuple(config())).checkpoint["channel_values"]["said"]
    assert found[:2] == [{"text": "changed"}, {"text": "message 1"}]


async def test_a_cancelled_write_leaves_nothing_waiting(saver):
    stored = await put(saver, "1")
    waiting = asyncio.create_task(saver.aput_writes(stored, [("c", 1)], "task"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await put(saver, "2", parent="1")
    assert (await saver.aget_tuple(config(checkpoint_id="1"))).pending_writes == []


async def test_errors_are_written_at_once_even_on_a_checkpoint_nobody_saved(saver):
    await saver.aput_writes(config(checkpoint_id="1"), [(ERROR, "late")], "task")
    await put(saver, "1")
    assert (await saver.aget_tuple(config())).pending_writes == [("task", ERROR, "late")]


async def test_writes_of_the_latest_are_found_behind_later_ones_of_older(saver):
    await put(saver, "1")
    await put(saver, "2", parent="1")
    await saver.aput_writes(config(checkpoint_id="2"), [(INTERRUPT, "asked")], "task")
    for number in range(30):
        await saver.aput_writes(config(checkpoint_id="1"), [(ERROR, number)], f"task {number}")
    assert (await saver.aget_tuple(config())).pending_writes == [("task", INTERRUPT, "asked")]
    assert len((await saver.aget_tuple(config(checkpoint_id="1"))).pending_writes) == 30


async def test_prune_keeps_the_greatest_of_each_namespace(saver):
    for number in range(40):
        await put(saver, f"{(number * 7) % 40:02}", number=number)
        where = config("ada", "inner")
        await saver.aput(where, checkpoint(f"{number:02}"), {}, {})
    await saver.aput_writes(config(checkpoint_id="39"), [(ERROR, "kept")], "task")
    await saver.aput_writes(config(checkpoint_id="38"), [(ERROR, "gone")], "task")
    await saver.aprune(["ada", "nobody"])
    assert await ids(saver) == ["39"]
    assert (await saver.aget_tuple(config())).pending_writes == [("task", ERROR, "kept")]
    assert (await saver.aget_tuple(config("ada", "inner"))).checkpoint["id"] == "39"
    assert await saver.aget_tuple(config(checkpoint_id="38")) is None
    with pytest.raises(InvalidArgumentError, match="strategy"):
        await saver.aprune(["ada"], strategy="keep_some")
    await saver.aprune(["ada"], strategy="delete")
    assert await saver._checkpointer.list_threads() == []


async def test_a_copy_does_not_overwrite(saver):
    await put(saver, "1", value="ada's")
    await put(saver, "1", thread_id="bob", value="bob's")
    with pytest.raises(CheckpointConflictError):
        await saver.acopy_thread("ada", "bob")
    found = await saver.aget_tuple(config("bob"))
    assert found.checkpoint["channel_values"] == {"value": "bob's"}
    await saver.acopy_thread("nobody", "new")
    assert await saver.aget_tuple(config("new")) is None


async def test_a_checkpointer_for_agents_serves_as_well(where):
    async with get_checkpointer(where) as checkpointer:
        saver = LocusSaver(checkpointer)
        await put(saver, "1", value=["a"])
        assert (await saver.aget_tuple(config())).checkpoint["channel_values"] == {"value": ["a"]}


async def test_an_allowing_clone_shares_what_is_stored(saver):
    clone = saver.with_allowlist([("my.module", "State")])
    await put(saver, "1", value=1)
    assert (await clone.aget_tuple(config())).checkpoint["channel_values"] == {"value": 1}
    assert clone.serde is not saver.serde


@pytest.mark.parametrize("number", [1, 2, 5])
async def test_the_first_write_of_a_task_stays_although_a_checkpoint_carries_later_ones(
    saver, number
):
    where = await put(saver, "1")
    for each in range(number):
        await saver.aput_writes(where, [("c", f"first {each}"), ("d", each)], f"task {each}")
    later = [("c", "later"), ("d", "later"), ("e", "later")]
    await asyncio.gather(
        *(saver.aput_writes(where, later, f"task {each}") for each in range(number)),
        put(saver, "2", parent="1"),
    )
    expected = [
        (f"task {each}", channel, value)
        for each in range(number)
        for channel, value in (("c", f"first {each}"), ("d", each), ("e", "later"))
    ]
    assert (await saver.aget_tuple(where)).pending_writes == expected
    assert [found.pending_writes async for found in saver.alist(where)] == [expected]


async def test_writes_on_no_checkpoint_are_not_those_of_a_first_one(saver):
    assert await saver.aget_tuple(config()) is None
    _, where = await asyncio.gather(
        saver.aput_writes(config(), [("c", 1)], "task"), put(saver, "1")
    )
    found = await saver.aget_tuple(where)
    assert found.parent_config is None
    assert found.pending_writes == []
