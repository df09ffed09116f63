"""The checkpointer suite: several writers lose nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import CheckpointConflictError
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open, turns, verify
from locus_memory.testing.store_suite.base import refused

__all__ = ["ConflictTests", "RaceTests", "SecondProcessTests"]


class ConflictTests(CheckpointerSuite):
    """`expected_parent` turns a race into an error."""

    async def test_the_newest_may_be_named(self, checkpointer: DeltaCheckpointer) -> None:
        first = await checkpointer.save(turns(1), "t", expected_parent=None)
        second = await checkpointer.save(turns(2), "t", expected_parent=first)
        expected = {first: turns(1), second: turns(2)}
        for wrong, thread in ((None, "t"), (first, "t"), ("unknown", "t"), (first, "empty")):
            [error] = await refused(
                CheckpointConflictError,
                checkpointer.save(turns(3), thread, expected_parent=wrong),
            )
            assert error.expected == wrong
            assert error.actual == (second if thread == "t" else None)
        await verify(checkpointer, "t", expected)
        assert await checkpointer.list_threads() == ["t"]

    async def test_one_of_many_wins(self, checkpointer: DeltaCheckpointer) -> None:
        parent = await checkpointer.save(turns(1), "t")
        saves = [
            checkpointer.save(turns(index), "t", f"c{index}", expected_parent=parent)
            for index in range(10)
        ]
        results = await asyncio.gather(*saves, return_exceptions=True)
        won = [result for result in results if isinstance(result, str)]
        lost = [result for result in results if isinstance(result, CheckpointConflictError)]
        assert (len(won), len(lost)) == (1, 9)
        assert await checkpointer.list_checkpoints("t") == [won[0], parent]


class RaceTests(CheckpointerSuite):
    """Many tasks at once."""

    async def test_parallel_first_saves_all_land(self, checkpointer: DeltaCheckpointer) -> None:
        names = await asyncio.gather(
            *(checkpointer.save(turns(index), f"t{index % 4}") for index in range(24))
        )
        for index, name in enumerate(names):
            assert await checkpointer.load(f"t{index % 4}", name) == turns(index)

    async def test_parallel_saves_of_one_thread_all_load(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        for round_ in range(4):
            names = await asyncio.gather(
                *(checkpointer.save(turns(round_ * 10 + index), "t") for index in range(10))
            )
            for index, name in enumerate(names):
                assert await checkpointer.load("t", name) == turns(round_ * 10 + index)
        assert len(await checkpointer.list_checkpoints("t", 100)) == 40

    async def test_one_id_saved_at_once_is_there_once(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await checkpointer.save(turns(1), "t", "base")
        await asyncio.gather(*(checkpointer.save(turns(index), "t", "same") for index in range(8)))
        assert await checkpointer.list_checkpoints("t") == ["same", "base"]
        assert await checkpointer.load("t") in [turns(index) for index in range(8)]

    async def test_event_loops_in_several_threads(self, open_another: Open) -> None:
        checkpointer: DeltaCheckpointer = await open_another(cache_bytes=9000)

        async def work(mark: int) -> None:
            for index in range(30):
                thread = f"t{index % 4}"
                name = await checkpointer.save({"by": mark, "index": index}, thread)
                assert await checkpointer.load(thread, name) == {"by": mark, "index": index}

        with _eager_threads():
            await asyncio.gather(
                *(asyncio.to_thread(asyncio.run, work(mark)) for mark in range(4)), work(4)
            )
        listed = [len(await checkpointer.list_checkpoints(f"t{n}", 1000)) for n in range(4)]
        assert sum(listed) == 5 * 30

    async def test_saving_while_pruning(self, checkpointer: DeltaCheckpointer) -> None:
        async def save() -> dict[str, Any]:
            saved: dict[str, Any] = {}
            for index in range(40):
                saved[await checkpointer.save(turns(index), "t")] = turns(index)
            return saved

        async def prune() -> None:
            for _ in range(10):
                await checkpointer.prune("t", keep_last=5)

        saved, _ = await asyncio.gather(save(), prune())
        left = await checkpointer.list_checkpoints("t", 100)
        assert left[0] == list(saved)[-1]
        for name in left:
            assert await checkpointer.load("t", name) == saved[name]


@contextmanager
def _eager_threads() -> Generator[None]:
    """Switch threads so often that a missing lock causes a failure."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class SecondProcessTests(CheckpointerSuite):
    """Another process on the same data, with its own cache."""

    async def test_both_may_save_from_what_they_remember(
        self, checkpointer: DeltaCheckpointer, other: DeltaCheckpointer
    ) -> None:
        expected: dict[str, Any] = {}
        for index in range(20):
            for saver, mark in ((checkpointer, "ours"), (other, "theirs")):
                state = {**turns(index), "by": mark} if index % 2 else turns(index)
                expected[await saver.save(state, "t")] = state
        await verify(checkpointer, "t", expected)
        await verify(other, "t", expected)

    async def test_the_remembered_parent_was_deleted(
        self, checkpointer: DeltaCheckpointer, other: DeltaCheckpointer
    ) -> None:
        first = await checkpointer.save(turns(5), "t", "first")
        await checkpointer.save(turns(6), "t", "second")
        assert await other.delete("t", "second")
        third = await checkpointer.save(turns(7), "t", "third")
        await verify(checkpointer, "t", {first: turns(5), third: turns(7)})
        assert await other.prune("t", keep_last=1) == 1
        await checkpointer.save(turns(8), "t", "fourth")
        await verify(other, "t", {"third": turns(7), "fourth": turns(8)})

    async def test_the_remembered_parent_was_saved_again(
        self, checkpointer: DeltaCheckpointer, other: DeltaCheckpointer
    ) -> None:
        await checkpointer.save(turns(5), "t", "one")
        await other.save({"quite": "different"}, "t", "one")
        await checkpointer.save(turns(6), "t", "two")
        await verify(other, "t", {"one": {"quite": "different"}, "two": turns(6)})

    async def test_the_thread_was_made_anew(
        self, checkpointer: DeltaCheckpointer, other: DeltaCheckpointer
    ) -> None:
        for index in range(5):
            await checkpointer.save(turns(index), "t", f"c{index}")
        await other.delete("t")
        for index in range(5):
            await other.save({"index": index}, "t", f"c{index}")
        await checkpointer.save(turns(5), "t", "c5")
        expected: dict[str, Any] = {f"c{index}": {"index": index} for index in range(5)}
        await verify(other, "t", {**expected, "c5": turns(5)})

    async def test_what_was_closed_is_still_there(
        self, checkpointer: DeltaCheckpointer, open_another: Open
    ) -> None:
        if not checkpointer.capabilities.persistent_checkpoint_ids:
            pytest.skip(f"{type(checkpointer).__name__} does not outlive its process")
        names = [await checkpointer.save(turns(index), "t") for index in range(70)]
        await checkpointer.close()
        again: DeltaCheckpointer = await open_another()
        names += [await again.save(turns(index), "t") for index in range(70, 75)]
        await verify(again, "t", {name: turns(index) for index, name in enumerate(names)})
        stats = await again.get_storage_stats("t")
        assert stats["delta_checkpoints"] >= 70
