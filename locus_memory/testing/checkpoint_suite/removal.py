"""The checkpointer suite: deleted checkpoints are absent, and all others exist."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidArgumentError,
    InvalidFilterError,
)
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open, turns, verify
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import PROPERTY, refused

__all__ = ["BranchTests", "ChainTests", "ListingTests", "RemovalTests"]


async def _fill(
    checkpointer: DeltaCheckpointer, count: int, thread_id: str = "t"
) -> dict[str, dict[str, Any]]:
    """Save this many growing states; return them by id, oldest first."""
    names = [await checkpointer.save(turns(index), thread_id) for index in range(count)]
    return {name: turns(index) for index, name in enumerate(names)}


class RemovalTests(CheckpointerSuite):
    """Delete, prune and vacuum."""

    async def test_a_deleted_thread_is_gone_and_no_other(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _fill(checkpointer, 5, "a")
        kept = await _fill(checkpointer, 5, "b")
        assert await checkpointer.delete("a")
        assert not await checkpointer.delete("a")
        assert await checkpointer.list_threads() == ["b"]
        await verify(checkpointer, "a", {})
        await verify(checkpointer, "b", kept)
        again = {await checkpointer.save(turns(2), "a"): turns(2)}
        await verify(checkpointer, "a", again)

    @PROPERTY
    @given(
        depth=st.sampled_from([0, 1, 3, 64]),
        count=st.integers(1, 40),
        order=st.lists(st.integers(0, 1000), max_size=40),
    )
    async def test_deleting_any_leaves_every_other(
        self, open_another: Open, depth: int, count: int, order: list[int]
    ) -> None:
        checkpointer = await open_another(max_chain_depth=depth)
        await checkpointer.delete("t")
        expected = await _fill(checkpointer, count)
        for pick in order[:count]:
            name = list(expected)[pick % len(expected)]
            del expected[name]
            assert await checkpointer.delete("t", name)
            if not expected:
                break
        await verify(checkpointer, "t", expected)
        assert not await checkpointer.delete("t", "unknown")
        await checkpointer.close()

    async def test_prune_keeps_the_last(self, checkpointer: DeltaCheckpointer) -> None:
        expected = await _fill(checkpointer, 80)
        assert await checkpointer.prune("t", keep_last=7) == 73
        kept = dict(list(expected.items())[-7:])
        await verify(checkpointer, "t", kept)
        assert await checkpointer.prune("t", keep_last=7) == 0
        kept[await checkpointer.save(turns(81), "t")] = turns(81)
        await verify(checkpointer, "t", kept)

    async def test_prune_by_age_keeps_the_newest(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        names: list[str] = []
        for index in range(10):
            names.append(await checkpointer.save(turns(index), "t"))
            clock.advance(86_400)
        assert await checkpointer.prune("t", older_than=timedelta(days=4)) == 6
        assert await checkpointer.list_checkpoints("t") == names[:5:-1]
        moment = datetime.fromtimestamp(clock.now, UTC)
        assert await checkpointer.prune("t", older_than=moment) == 3
        await verify(checkpointer, "t", {names[9]: turns(9)})

    async def test_prune_with_both_limits_deletes_what_both_condemn(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        for index in range(6):
            await checkpointer.save(turns(index), "t")
            clock.advance(86_400)
        assert await checkpointer.prune("t", keep_last=4, older_than=timedelta(days=3)) == 2
        assert await checkpointer.prune("t", keep_last=1, older_than=timedelta(days=30)) == 0

    async def test_prune_needs_a_limit(self, checkpointer: DeltaCheckpointer) -> None:
        expected = await _fill(checkpointer, 3)
        await refused(
            InvalidArgumentError,
            checkpointer.prune("t"),
        )
        for keep in (0, -1, True):
            await refused(
                InvalidArgumentError,
                checkpointer.prune("t", keep_last=keep),
            )
        for age in (30, "30d"):
            await refused(
                InvalidArgumentError,
                checkpointer.prune("t", older_than=age),  # type: ignore[arg-type] # the point
            )
        for days in (-1, math.nan, "30", True):
            await refused(
                InvalidArgumentError,
                checkpointer.vacuum(days),  # type: ignore[arg-type] # the point
            )
        assert await checkpointer.prune("unknown", keep_last=1) == 0
        await verify(checkpointer, "t", expected)

    async def test_vacuum_prunes_every_thread_and_keeps_each_newest(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        for thread in ("a", "b", "c"):
            await _fill(checkpointer, 4, thread)
        clock.advance(86_400 * 31)
        fresh = await checkpointer.save(turns(9), "c")
        assert await checkpointer.vacuum(older_than_days=30) == 3 + 3 + 4
        assert await checkpointer.list_checkpoints("c") == [fresh]
        for thread in ("a", "b"):
            assert await checkpointer.load(thread) == turns(3)

    async def test_vacuum_pages_through_many_threads(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        for index in range(130):
            for turn in range(2):
                await checkpointer.save({"turn": turn}, f"t{index}")
        clock.advance(86_400)
        assert await checkpointer.vacuum(older_than_days=0) == 130


class ListingTests(CheckpointerSuite):
    """Threads, checkpoints and metadata.

    Attributes:
        long_thread: The number of checkpoints of a long thread; a storage that is slow by design
            may lower it.
    """

    long_thread: ClassVar[int] = 1005

    async def test_everything_pages(self, checkpointer: DeltaCheckpointer) -> None:
        names = list(await _fill(checkpointer, 33))[::-1]
        assert await checkpointer.list_checkpoints("t") == names[:10]
        assert await checkpointer.list_checkpoints("t", 0) == []
        paged: list[str] = []
        before: str | None = None
        # Bounded, so that a storage that ignores the cursor fails instead of hanging.
        while len(paged) < len(names):
            page = await checkpointer.list_with_metadata("t", 7, before=before)
            assert 0 < len(page) <= 7
            paged += [info.checkpoint_id for info in page]
            before = paged[-1]
        assert paged == names
        assert await checkpointer.list_with_metadata("t", 7, before=before) == []
        await refused(
            CheckpointNotFoundError,
            checkpointer.list_with_metadata("t", before="unknown"),
        )

    async def test_a_thread_has_no_hidden_cap(self, checkpointer: DeltaCheckpointer) -> None:
        names = [await checkpointer.save({"n": n}, "t") for n in range(self.long_thread)]
        assert await checkpointer.list_checkpoints("t", len(names) + 100) == names[::-1]
        for index in (0, 4, len(names) - 1):
            assert await checkpointer.load("t", names[index]) == {"n": index}

    async def test_threads_page_in_order(self, checkpointer: DeltaCheckpointer) -> None:
        threads = [*sorted(f"user:{index}" for index in range(125)), "users", "é"]
        for thread in threads:
            await checkpointer.save({}, thread)
        assert await checkpointer.list_threads() == threads[:100]
        assert await checkpointer.list_threads(after=threads[99]) == threads[100:]
        assert await checkpointer.list_threads(200, prefix="user:1") == [
            thread for thread in threads if thread.startswith("user:1")
        ]
        assert await checkpointer.list_threads(prefix="USER") == []
        assert await checkpointer.list_threads(2, prefix="user", after="user:98") == [
            "user:99",
            "users",
        ]

    async def test_metadata_query_spans_threads_newest_first(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        for index in range(12):
            metadata = {"step": index, "kind": "even" if index % 2 == 0 else "odd"}
            await checkpointer.save(turns(index), f"t{index % 3}", f"c{index}", metadata)
            clock.advance(1)
        await checkpointer.save({}, "t0", "without")
        found = await checkpointer.query_by_metadata({"kind": "even", "step": {"$gt": 3}})
        assert [info.checkpoint_id for info in found] == ["c10", "c8", "c6", "c4"]
        assert [info.thread_id for info in found] == ["t1", "t2", "t0", "t1"]
        assert found[0].metadata == {"step": 10, "kind": "even"}
        assert len(await checkpointer.query_by_metadata({}, 5)) == 5
        assert await checkpointer.query_by_metadata({"step": True}) == []
        await refused(
            InvalidFilterError,
            checkpointer.query_by_metadata({"step": {"$near": 3}}),
        )


class BranchTests(CheckpointerSuite):
    """Copies and forks are independent of their source."""

    async def test_a_copy_has_the_whole_history(self, checkpointer: DeltaCheckpointer) -> None:
        expected = await _fill(checkpointer, 40)
        assert await checkpointer.copy_thread("t", "copy") == 40
        await verify(checkpointer, "copy", expected)
        await checkpointer.delete("t")
        longer = {**expected, await checkpointer.save(turns(99), "copy"): turns(99)}
        await verify(checkpointer, "copy", longer)

    async def test_a_fork_has_the_history_up_to_its_start(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        expected = await _fill(checkpointer, 40)
        start = list(expected)[24]
        assert await checkpointer.fork("t", start, "branch") == start
        branch = dict(list(expected.items())[:25])
        await verify(checkpointer, "branch", branch)
        branch[await checkpointer.save({"other": 1}, "branch")] = {"other": 1}
        await checkpointer.delete("t", list(expected)[3])
        del expected[list(expected)[3]]
        await verify(checkpointer, "branch", branch)
        await verify(checkpointer, "t", expected)

    async def test_a_target_that_exists_is_untouched(self, checkpointer: DeltaCheckpointer) -> None:
        expected = await _fill(checkpointer, 3)
        other = await _fill(checkpointer, 2, "other")
        errors = await refused(
            CheckpointConflictError,
            checkpointer.copy_thread("t", "other"),
            checkpointer.fork("t", list(expected)[1], "other"),
            checkpointer.copy_thread("t", "t"),
        )
        assert all("exists" in str(error) for error in errors)
        await verify(checkpointer, "t", expected)
        await verify(checkpointer, "other", other)

    async def test_a_source_that_is_missing(self, checkpointer: DeltaCheckpointer) -> None:
        await _fill(checkpointer, 1)
        await refused(
            CheckpointNotFoundError,
            checkpointer.copy_thread("unknown", "copy"),
            checkpointer.fork("t", "unknown", "branch"),
        )
        assert await checkpointer.list_threads() == ["t"]


class ChainTests(CheckpointerSuite):
    """The size of deltas depends on what changed, and chains stay short."""

    async def test_a_growing_thread_stores_what_was_added(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await _fill(checkpointer, 100)
        stats = await checkpointer.get_storage_stats("t")
        assert stats["total_checkpoints"] == 100
        assert stats["full_checkpoints"] + stats["delta_checkpoints"] == 100
        assert stats["delta_checkpoints"] >= 90
        full = sum(len(str(turns(index))) for index in range(100))
        assert stats["compressed_size"] < full * 0.03
        assert stats["compression_ratio"] == stats["total_size"] / stats["compressed_size"]

    async def test_an_unknown_thread_costs_nothing(self, checkpointer: DeltaCheckpointer) -> None:
        stats = await checkpointer.get_storage_stats("unknown")
        assert stats == {
            "total_checkpoints": 0,
            "full_checkpoints": 0,
            "delta_checkpoints": 0,
            "total_size": 0,
            "compressed_size": 0,
            "compression_ratio": 1.0,
        }

    @pytest.mark.parametrize("depth", [0, 1, 2, 7, 33])
    async def test_no_chain_is_longer_than_allowed(self, open_another: Open, depth: int) -> None:
        checkpointer: DeltaCheckpointer = await open_another(max_chain_depth=depth)
        expected = await _fill(checkpointer, 90)
        for name in expected:
            chain = await checkpointer.storage.retrieve_chain("t", name)
            assert len(chain) <= depth + 1
        await verify(checkpointer, "t", expected)

    async def test_a_load_reads_no_more_than_a_multiple_of_the_state(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        for index in range(60):
            text = f"{index} " * (4000 if index % 20 < 10 else 10)
            await checkpointer.save({"scratch": text, "turn": index}, "t")
            chain = await checkpointer.storage.retrieve_chain("t")
            assert sum(record.size for record in chain) <= 2 * (len(text) + 64) + 8192

    async def test_options_out_of_range_are_refused(self, open_another: Open) -> None:
        for options in ({"compression_level": 10}, {"max_chain_depth": -1}, {"cache_bytes": -1}):
            await refused(
                InvalidArgumentError,
                open_another(**options),
            )

    async def test_a_small_cache_changes_nothing(self, open_another: Open) -> None:
        checkpointer: DeltaCheckpointer = await open_another(cache_bytes=0)
        expected = await _fill(checkpointer, 20)
        other = await _fill(checkpointer, 20, "other")
        await verify(checkpointer, "t", expected)
        await verify(checkpointer, "other", other)
        stats = await checkpointer.get_storage_stats("t")
        assert stats["delta_checkpoints"] >= 15
