"""The checkpointer suite: checkpoints that are restored with their ids and moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_memory.checkpoint.base import UNSET, RestoredCheckpoint
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import (
    CheckpointConflictError,
    InvalidArgumentError,
    StateTypeError,
)
from locus_memory.state import AgentState
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open, turns, verify
from locus_memory.testing.store_suite.base import refused

__all__ = ["RestoreTests"]

_LONG_AGO = datetime(2019, 5, 4, 3, 2, 1, 654_321, UTC)


def _checkpoint(name: str, state: Any, **fields: Any) -> RestoredCheckpoint:
    known: dict[str, Any] = {"metadata": {"m": name}, "created_at": _LONG_AGO}
    return RestoredCheckpoint(checkpoint_id=name, state=state, **{**known, **fields})


class RestoreTests(CheckpointerSuite):
    """A restored checkpoint is the checkpoint that it was."""

    async def test_a_thread_is_restored_in_order(self, checkpointer: DeltaCheckpointer) -> None:
        # The ids and the moments are in no order of their own.
        names = ["m", "a", "z", "b", *(f"n{n}" for n in range(70))]
        for place, name in enumerate(names):
            moment = _LONG_AGO - timedelta(minutes=place * 7 % 11)
            given = _checkpoint(name, turns(place), created_at=moment)
            parent = names[place - 1] if place else None
            await checkpointer.restore("t", given, expected_parent=parent)
        infos = await checkpointer.list_with_metadata("t", 100)
        assert [info.checkpoint_id for info in infos] == names[::-1]
        assert [info.metadata for info in infos] == [{"m": name} for name in names[::-1]]
        assert infos[-2].created_at == _LONG_AGO - timedelta(minutes=7)
        assert sum(info.is_full for info in infos) < len(infos)
        await verify(checkpointer, "t", {name: turns(n) for n, name in enumerate(names)})

    async def test_it_names_its_origin(self, checkpointer: DeltaCheckpointer) -> None:
        await checkpointer.restore("t", _checkpoint("a", turns(1), forked_from=("main", "x")))
        await checkpointer.save(turns(2), "t", "b")
        found = await checkpointer.list_with_metadata("t")
        assert [info.forked_from for info in found] == [None, ("main", "x")]
        await verify(checkpointer, "t", {"a": turns(1), "b": turns(2)})
        assert await checkpointer.delete("t", "a")
        [info] = await checkpointer.list_with_metadata("t")
        assert info.forked_from == ("main", "x")

    async def test_a_state_is_of_its_kind_again(self, open_another: Open) -> None:
        checkpointer = await open_another(state_type=UNSET)
        state = AgentState(iteration=3)
        await checkpointer.restore("t", _checkpoint("a", state.to_checkpoint(), kind="agent"))
        assert await checkpointer.load("t") == state
        await checkpointer.restore("t", _checkpoint("b", state.to_checkpoint()))
        assert await checkpointer.load("t", "b") == state.to_checkpoint()

    async def test_it_replaces_one_of_the_same_id(self, checkpointer: DeltaCheckpointer) -> None:
        for name in "abc":
            await checkpointer.save(turns(5), "t", name)
        await checkpointer.restore("t", _checkpoint("a", turns(1)))
        assert await checkpointer.list_checkpoints("t") == ["a", "c", "b"]
        await verify(checkpointer, "t", {"b": turns(5), "c": turns(5), "a": turns(1)})

    async def test_a_conflict_writes_nothing(self, checkpointer: DeltaCheckpointer) -> None:
        await checkpointer.save(turns(1), "t", "a")
        given = _checkpoint("b", turns(2))
        await refused(
            CheckpointConflictError,
            checkpointer.restore("t", given, expected_parent=None),
            checkpointer.restore("t", given, expected_parent="x"),
        )
        assert await checkpointer.list_checkpoints("t") == ["a"]

    @pytest.mark.parametrize(
        "fields",
        [
            {"created_at": datetime(2020, 1, 1)},  # noqa: DTZ001 - it is what is refused
            {"created_at": 5.0},
            {"metadata": {"a": {1, 2}}},
            {"forked_from": ("", "x")},
            {"kind": "nonsense"},
            {"kind": 5},
        ],
    )
    async def test_a_bad_one_is_refused(
        self, checkpointer: DeltaCheckpointer, fields: dict[str, Any]
    ) -> None:
        bad = _checkpoint("a", turns(1), **fields)
        await refused(InvalidArgumentError, checkpointer.restore("t", bad))
        await refused(InvalidArgumentError, checkpointer.restore("", _checkpoint("a", turns(1))))
        await refused(StateTypeError, checkpointer.restore("t", _checkpoint("a", 5)))
        assert await checkpointer.list_threads() == []
