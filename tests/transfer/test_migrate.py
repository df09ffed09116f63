"""Everything of one backend comes to another, for all pairs of backends that run here."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory import LLMMemoryManager
from locus_memory.backends.base import ComposedBackend
from locus_memory.backends.four_verbs import FourVerbStore
from locus_memory.errors import ConfigurationError, InvalidArgumentError, StoreCapabilityError
from locus_memory.registry import open_backend
from locus_memory.testing import FakeEmbedder
from locus_memory.transfer import MigrateOptions, migrate
from locus_memory.transfer.comparing import compare
from locus_memory.transfer.marker import MARKER
from locus_memory.transfer.reading import restorable
from tests.backends.test_four_verbs import DictStore
from tests.transfer.conftest import ITEMS, THREADS, contents, fill_items, fill_threads


@pytest.mark.slow
@pytest.mark.parametrize("target", ITEMS)
@pytest.mark.parametrize("source", ITEMS)
async def test_items_come_whole(opened, source, target):
    async with opened(source, "a.db") as one, opened(target, "b.db") as other:
        await fill_items(one.store)
        report = await migrate(one, other, MigrateOptions(verify=True))
        assert report.equal, report.comparisons
        assert report.items > 450
        assert await contents(other) == await contents(one)
        vector = await other.store.get_embedding(("vectors",), "v")
        assert vector == pytest.approx([0.6, 0.8, 0.0], abs=1e-2)
        async with LLMMemoryManager(other.store) as memory:
            ada = memory.for_user("ada")
            assert [each.content async for each in ada.memories()] == ["I live in Oslo."]
        assert await other.store.put(("past",), "k", "new", if_version=41) == 42


@pytest.mark.slow
@pytest.mark.parametrize("target", THREADS)
@pytest.mark.parametrize("source", THREADS)
async def test_threads_come_whole(opened, source, target):
    async with opened(source, "a") as one, opened(target, "b") as other:
        await fill_threads(one.checkpointer)
        report = await migrate(one, other, MigrateOptions(verify=True, only="threads"))
        assert report.equal, report.comparisons
        assert await contents(other) == await contents(one)
        stats = await other.checkpointer.get_storage_stats("long")
        assert stats["delta_checkpoints"] > 80
        await other.checkpointer.save({"more": 1}, "long")


@pytest.fixture
async def two(opened):
    async with opened("sqlite", "a.db") as one, opened("sqlite", "b.db") as other:
        yield one, other


@pytest.mark.slow
async def test_again_writes_nothing(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)
    first = await migrate(one, other)
    again = await migrate(one, other)
    assert first.written > 500
    assert (again.written, again.passes) == (0, 2)


@pytest.mark.slow
async def test_changes_follow(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)
    await migrate(one, other)
    await one.store.delete(("users",), "big")
    await one.store.clear_namespace(("many",))
    await one.store.put(("users",), "none", 2)
    await one.checkpointer.delete("agent")
    await one.checkpointer.delete("long", "c10")
    await one.checkpointer.save({"one": "more"}, "ädå/fork")
    report = await migrate(one, other, MigrateOptions(verify=True))
    assert (report.items, report.deleted_items, report.deleted_threads) == (1, 451, 1)
    assert report.equal
    assert await contents(other) == await contents(one)


@pytest.mark.slow
async def test_writes_meanwhile_are_found_by_the_second_pass(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)
    done = []

    def change(progress):
        if progress.step == "threads" and not done:
            done.append(asyncio.ensure_future(write()))

    async def write():
        await one.store.put(("aaa",), "first of all", 1)
        await one.store.delete(("past",), "k")
        await one.checkpointer.save({"late": 1}, "long", "late")
        await one.checkpointer.save({"late": 1}, "a new thread", "late")

    await migrate(one, other, MigrateOptions(rate=5000), on_progress=change)
    await done[0]
    assert await contents(other) == await contents(one)


@pytest.mark.slow
async def test_a_dry_run_counts_and_writes_nothing(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)
    dry = await migrate(one, other, MigrateOptions(dry_run=True))
    assert await contents(other) == {}
    assert await other.store.list_namespaces() == []
    real = await migrate(one, other)
    assert (dry.items, dry.checkpoints) == (real.items, real.checkpoints)
    assert dry.dry_run


async def test_a_target_with_other_data_is_refused(two, opened):
    one, other = two
    await one.store.put(("n",), "k", 1)
    for write in (other.store.put(("m",), "k", 1), other.checkpointer.save({"a": 1}, "t")):
        await write
        before = await contents(other)
        with pytest.raises(ConfigurationError, match="not empty"):
            await migrate(one, other)
        assert await contents(other) == before
        await other.store.clear_namespace(("m",))
        await other.checkpointer.delete("t")
    await migrate(one, other)
    async with opened("sqlite", "c.db") as third:
        await third.store.put(("x",), "k", 1)
        with pytest.raises(ConfigurationError, match=r"a copy of .*a\.db"):
            await migrate(third, other)
    assert await contents(other) == await contents(one)


async def test_merge_keeps_what_is_there(two):
    one, other = two
    await one.store.put(("n",), "old here", "one")
    await other.store.put(("n",), "old there", "other")
    await other.store.put(("n",), "both", "other")
    await one.store.put(("n",), "both", "newer")
    await one.store.put(("n",), "kept", "one")
    await other.store.put(("n",), "kept", "newer")
    for backend in (one, other):
        await backend.checkpointer.save({"a": 1}, "differs")
    await one.checkpointer.save({"a": 1}, "only here")
    report = await migrate(one, other, MigrateOptions(merge=True))
    values = {item.key: item.value for item in await other.store.scan(("n",))}
    assert values == {"old here": "one", "old there": "other", "both": "newer", "kept": "newer"}
    assert (report.items, report.kept_items, report.conflicts) == (2, 1, ["differs"])
    assert await other.checkpointer.list_threads() == ["differs", "only here"]


WRITES = {
    "new item": lambda it: it.store.put(("m",), "k", "target"),
    "changed item": lambda it: it.store.put(("n",), "k", "target"),
    "new thread": lambda it: it.checkpointer.save({"a": 2}, "u", "c1"),
    "longer thread": lambda it: it.checkpointer.save({"a": 2}, "t", "c2"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_what_was_written_to_the_target_since_is_not_lost(two, write):
    """After a switch, somebody runs the same command again."""
    one, other = two
    await one.store.put(("n",), "k", "source")
    await one.checkpointer.save({"a": 1}, "t", "c1")
    await migrate(one, other)
    await write(other)
    before = await contents(other)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="written after it was copied"):
            await migrate(one, other)
        assert await contents(other) == before
    report = await migrate(one, other, MigrateOptions(dry_run=True))
    assert report.items + report.deleted_items + report.checkpoints + report.deleted_threads == 1
    report = await migrate(one, other, MigrateOptions(merge=True, verify=True))
    assert (report.equal, report.conflicts) == (True, [])
    assert await contents(other) == before
    # Merged data is no copy any more.
    with pytest.raises(ConfigurationError, match="not empty"):
        await migrate(one, other)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_overwrite_makes_the_target_equal_again(two, write):
    one, other = two
    await one.store.put(("n",), "k", "source")
    await one.checkpointer.save({"a": 1}, "t", "c1")
    await migrate(one, other)
    await write(other)
    await migrate(one, other, MigrateOptions(overwrite=True))
    assert await contents(other) == await contents(one)


ERASURES = {
    "item": lambda it: it.store.delete(("n",), "k"),
    "thread": lambda it: it.checkpointer.delete("t"),
}


@pytest.mark.parametrize("erase", ERASURES.values(), ids=ERASURES)
async def test_what_was_erased_from_the_target_does_not_come_back(two, erase):
    """A user is forgotten after the switch, and somebody runs the same command again."""
    one, other = two
    await one.store.put(("n",), "k", "source")
    await one.checkpointer.save({"a": 1}, "t", "c1")
    await migrate(one, other)
    await erase(other)
    before = await contents(other)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="no longer has what was copied"):
            await migrate(one, other)
        assert await contents(other) == before
    await one.store.put(("n",), "new", 1)
    await migrate(one, other, MigrateOptions(overwrite=True))
    assert await contents(other) == await contents(one)


async def test_a_part_that_was_not_copied_was_not_erased(two):
    one, other = two
    await one.store.put(("n",), "k", "source")
    await one.checkpointer.save({"a": 1}, "t", "c1")
    await migrate(one, other, MigrateOptions(only="threads"))
    await migrate(one, other)
    await one.checkpointer.fork("t", "c1", "u")
    await migrate(one, other)
    assert await contents(other) == await contents(one)


async def test_what_the_source_deleted_meanwhile_goes_from_the_target(two):
    one, other = two
    await migrate(one, other)
    await one.store.put(("n",), "k", 1)
    await one.checkpointer.save({"a": 1}, "t", "c1")
    await migrate(one, other)
    await one.store.delete(("n",), "k")
    await one.checkpointer.delete("t")
    report = await migrate(one, other)
    assert (report.deleted_items, report.deleted_threads) == (1, 1)


@pytest.mark.slow
async def test_verify_finds_any_difference(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)
    await migrate(one, other)
    await other.store.put(("past",), "k", "old")
    await other.store.put_with_embedding(("vectors",), "extra", 1, [0.0, 1.0, 0.0])
    await other.checkpointer.delete("long", "c5")
    dry = await migrate(one, other, MigrateOptions(dry_run=True))
    assert (dry.items, dry.deleted_items) == (1, 1)
    found = {each.name: each async for each in compare(one, other, MigrateOptions())}
    assert {name for name, each in found.items() if not each.equal} == {
        ("past",),
        ("vectors",),
        ("long",),
    }
    assert (found["long",].count, found["long",].target_count) == (90 - 1, 88)


@pytest.mark.slow
async def test_a_lost_vector_is_a_difference(two):
    one, other = two
    await fill_items(one.store)
    await migrate(one, other)
    [item] = [each for each in await other.store.scan(("vectors",)) if each.key == "v"]
    [copy] = await restorable(other.store, ("vectors",), [item.key], vectors=False)
    await other.store.restore([copy])
    found = {each.name: each async for each in compare(one, other, MigrateOptions())}
    assert found["vectors",].vectors == 1
    assert not found["vectors",].equal


@pytest.mark.slow
async def test_vectors_are_recomputed_or_left_out(two, opened):
    one, other = two
    await fill_items(one.store)
    model = FakeEmbedder()
    options = MigrateOptions(reembed=model, verify=True)
    report = await migrate(one, other, options)
    assert report.equal
    assert len(await other.store.get_embedding(("vectors",), "v")) == model.dimension
    assert await other.store.get_embedding(("past",), "k") is None
    assert (await migrate(one, other, options)).written == 0
    assert await contents(other) == await contents(one)
    async with opened("sqlite", "c.db") as bare:
        await migrate(one, bare, MigrateOptions(vectors=False, verify=True))
        assert await bare.store.get_embedding(("vectors",), "v") is None


async def test_a_target_without_vectors_says_so():
    async with (
        open_backend("memory") as one,
        ComposedBackend("plain", FourVerbStore(DictStore())) as other,
    ):
        await fill_items(one.store)
        with pytest.raises(StoreCapabilityError, match="--no-vectors"):
            await migrate(one, other)
        report = await migrate(one, other, MigrateOptions(vectors=False, verify=True))
        assert report.equal


@pytest.mark.slow
async def test_a_file_has_no_place_for_items(opened):
    async with opened("sqlite", "a.db") as one, opened("file", "b") as other:
        await fill_threads(one.checkpointer)
        await migrate(one, other)
        await one.store.put(("n",), "k", 1)
        with pytest.raises(ConfigurationError, match="only='threads'"):
            await migrate(one, other, MigrateOptions(merge=True))
        assert (await migrate(one, other, MigrateOptions(merge=True, only="threads"))).written == 0


@pytest.mark.slow
async def test_the_rate_is_kept(two):
    one, other = two
    await one.store.put_batch([(("n",), f"{n:04}", n) for n in range(1200)])
    started = time.monotonic()
    await migrate(one, other, MigrateOptions(rate=2000))
    assert time.monotonic() - started > 0.45


@pytest.mark.slow
async def test_a_run_that_broke_off_goes_on(two):
    one, other = two
    await fill_items(one.store)
    await fill_threads(one.checkpointer)

    class StopError(Exception):
        pass

    for place in range(0, 12, 2):
        seen = iter(range(place))

        def stop(_, seen=seen):
            if next(seen, None) is None:
                raise StopError

        with pytest.raises(StopError):
            await migrate(one, other, on_progress=stop)
    marker = await other.store.get(MARKER, "marker")
    assert marker["namespace"] is not None
    report = await migrate(one, other, MigrateOptions(verify=True))
    assert report.equal
    assert await contents(other) == await contents(one)


@pytest.mark.parametrize(
    "bad",
    [
        {"rate": 0},
        {"rate": -1},
        {"passes": 0},
        {"only": "x"},
        {"merge": True, "overwrite": True},
    ],
)
def test_bad_options_are_refused(bad):
    with pytest.raises(InvalidArgumentError):
        MigrateOptions(**bad)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    items=st.lists(st.tuples(names, names, json_values), max_size=12),
    saves=st.lists(
        st.tuples(names, names, st.dictionaries(st.text(max_size=3), json_values)), max_size=12
    ),
)
async def test_any_content_goes_round(items, saves):
    async with (
        open_backend("memory") as one,
        open_backend("sqlite::memory:") as other,
        open_backend("memory") as third,
    ):
        for namespace, key, value in items:
            await one.store.put((namespace,), key, value)
        for thread_id, name, state in saves:
            await one.checkpointer.save(state, thread_id, name)
        await migrate(one, other)
        await migrate(other, third)
        assert await contents(third) == await contents(other) == await contents(one)
