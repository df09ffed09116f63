"""The checkpointer suite: a loaded state equals the saved one."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from locus_memory.checkpoint.base import UNSET
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.errors import (
    BackendClosedError,
    InvalidArgumentError,
    InvalidKeyError,
    StateTypeError,
    ValueNotSerializableError,
)
from locus_memory.messages import Message, ToolCall
from locus_memory.state import AgentState
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open, turns, verify
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import HOSTILE, PROPERTY, json_objects, refused

__all__ = ["NamingTests", "SavingTests", "StateTests"]


class SavingTests(CheckpointerSuite):
    """Loaded states equal the saved ones."""

    async def test_what_is_not_there_is_none(self, checkpointer: DeltaCheckpointer) -> None:
        assert await checkpointer.load("t") is None
        assert await checkpointer.get_metadata("t") is None
        assert not await checkpointer.exists("t")
        await checkpointer.save({}, "t", "known")
        assert await checkpointer.load("t", "unknown") is None
        assert await checkpointer.get_metadata("t", "unknown") is None
        assert not await checkpointer.exists("t", "unknown")

    @PROPERTY
    @given(states=st.lists(json_objects, min_size=1, max_size=6))
    async def test_any_json_comes_back(
        self, checkpointer: DeltaCheckpointer, states: list[dict[str, Any]]
    ) -> None:
        await checkpointer.delete("any")
        expected = {await checkpointer.save(state, "any"): state for state in states}
        await verify(checkpointer, "any", expected)

    async def test_numbers_keep_their_types(self, checkpointer: DeltaCheckpointer) -> None:
        for value in (1, True, 1.0, 0, False, -0.0, 0.0, 2**63, None):
            await checkpointer.save({"items": [value]}, "t")
            loaded: Any = await checkpointer.load("t")
            found = loaded["items"][0]
            assert (type(found), repr(found)) == (type(value), repr(value))

    async def test_a_loaded_state_is_the_callers_own(self, checkpointer: DeltaCheckpointer) -> None:
        name = await checkpointer.save(turns(3), "t")
        newest: Any = await checkpointer.load("t")
        newest["messages"].clear()
        named: Any = await checkpointer.load("t", name)
        named["messages"][0]["content"] = "changed"
        assert await checkpointer.load("t") == turns(3)
        longer = await checkpointer.save(turns(4), "t")
        await verify(checkpointer, "t", {name: turns(3), longer: turns(4)})

    @pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0.0, -0.0), (0, False)])
    async def test_a_type_that_changed_anywhere_is_kept(
        self, checkpointer: DeltaCheckpointer, before: Any, after: Any
    ) -> None:
        for wrap in (lambda value: value, lambda value: {"n": value}):
            old = [wrap(before) for _ in range(700)]
            new = [wrap(after), *(wrap(before) for _ in range(699))]
            await checkpointer.save({"long": old}, "t")
            await checkpointer.save({"long": new}, "t")
            assert repr(await checkpointer.load("t")) == repr({"long": new})

    @pytest.mark.parametrize("depth", [40, 90, 120])
    async def test_a_deeply_nested_state_changes(
        self, checkpointer: DeltaCheckpointer, depth: int
    ) -> None:
        for leaf in ([1], [1, 2], [], ["x"]):
            state: dict[str, Any] = {"leaf": leaf}
            for _ in range(depth):
                state = {"deeper": [state]}
            await checkpointer.save(state, "t")
            assert await checkpointer.load("t") == state

    async def test_what_is_not_json_is_refused_and_named(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await checkpointer.save(turns(1), "t", "good")
        bad: list[tuple[Any, str]] = [
            (math.nan, "$.messages[1].x"),
            ((1, 2), "$.messages[1].x"),
            ({1: 2}, "$.messages[1].x"),
            (datetime.now(UTC), "$.messages[1].x"),
            ({"deep": {1, 2}}, "$.messages[1].x.deep"),
            (2**64, "$.messages[1].x"),
        ]
        for nonsense in ([1], "text", 3):
            await refused(
                InvalidArgumentError,
                checkpointer.save(turns(2), "t", metadata=nonsense),  # type: ignore[arg-type] # the point
            )
        for value, path in bad:
            state = turns(1)
            state["messages"][1]["x"] = value
            [error] = await refused(
                ValueNotSerializableError,
                checkpointer.save(state, "t"),
            )
            assert error.path == path
            await refused(
                ValueNotSerializableError,
                checkpointer.save(turns(2), "t", metadata={"x": value}),
            )
        await verify(checkpointer, "t", {"good": turns(1)})

    async def test_metadata_comes_back_as_a_copy(self, checkpointer: DeltaCheckpointer) -> None:
        metadata = {"tags": ["a"], "step": 1}
        name = await checkpointer.save({}, "t", metadata=metadata)
        metadata["step"] = 2
        found = await checkpointer.get_metadata("t", name)
        assert found is not None
        assert found == {"tags": ["a"], "step": 1}
        found["tags"].append("b")
        assert await checkpointer.get_metadata("t") == {"tags": ["a"], "step": 1}
        await checkpointer.save({}, "t")
        assert await checkpointer.get_metadata("t") == {}

    async def test_saving_an_id_again_replaces_it_and_makes_it_the_newest(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        for index, name in enumerate("abcd"):
            await checkpointer.save(turns(index), "t", name)
        await checkpointer.save(turns(9), "t", "b", metadata={"again": True})
        expected = {"a": turns(0), "c": turns(2), "d": turns(3), "b": turns(9)}
        await verify(checkpointer, "t", expected)
        assert await checkpointer.get_metadata("t", "b") == {"again": True}

    async def test_saving_one_id_over_and_over_never_makes_a_cycle(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        for index in range(1, 40):
            await checkpointer.save(turns(index), "t", f"id-{index % 3}")
            assert await checkpointer.load("t") == turns(index)
        expected = {f"id-{index % 3}": turns(index) for index in (37, 38, 39)}
        await verify(checkpointer, "t", expected)

    async def test_a_cancelled_save_leaves_the_next_one_working(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        expected = {await checkpointer.save(turns(1), "t"): turns(1)}
        for index in range(2, 8):
            task = asyncio.ensure_future(checkpointer.save(turns(index), "t", f"cut-{index}"))
            for _ in range(index % 4):
                await asyncio.sleep(0)
            task.cancel()
            done = (await asyncio.gather(task, return_exceptions=True))[0]
            name = await checkpointer.save(turns(index + 100), "t")
            assert await checkpointer.load("t") == turns(index + 100)
            if not isinstance(done, BaseException) or await checkpointer.exists(
                "t", f"cut-{index}"
            ):
                expected[f"cut-{index}"] = turns(index)
            expected[name] = turns(index + 100)
        for name, state in expected.items():
            assert await checkpointer.load("t", name) == state

    async def test_after_close_there_is_a_clear_error(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        await checkpointer.save(turns(1), "t")
        await checkpointer.close()
        await checkpointer.close()
        await refused(
            BackendClosedError,
            checkpointer.open(),
            checkpointer.save(turns(2), "t"),
            checkpointer.load("t"),
            checkpointer.list_threads(),
        )


class _Ticket(BaseModel):
    title: str
    due: date


@dataclass
class _Stop:
    name: str
    at: tuple[int, int]


@dataclass
class _Route:
    stops: list[_Stop]


@dataclass
class _Counter:
    """A class that defines its own JSON."""

    count: int

    def to_checkpoint(self) -> dict[str, Any]:
        return {"count": self.count}

    @classmethod
    def from_checkpoint(cls, document: dict[str, Any]) -> _Counter:
        return cls(document["count"])


class _Wrong:
    def to_checkpoint(self) -> Any:
        return ["no dict"]


class StateTests(CheckpointerSuite):
    """States of the library and of callers."""

    async def test_a_state_that_the_type_refuses(self, open_another: Open) -> None:
        checkpointer = await open_another(state_type=AgentState)
        await checkpointer.save({"channels": {}}, "t", "strange")
        with pytest.raises(StateTypeError, match=r"strange.*state_type=None"):
            await checkpointer.load("t")

    async def test_what_was_saved_comes_back_as_what_it_was(self, open_another: Open) -> None:
        checkpointer = await open_another(state_type=UNSET)
        state = AgentState(run_id="r").with_message(Message.user("hello"))
        document = state.to_checkpoint()
        saved: list[tuple[Any, Any]] = [
            (state, state),
            # A dict with the form of an agent's state stays a dict.
            (document, document),
            ({"channels": {}}, {"channels": {}}),
            (MappingProxyType({"n": 1}), {"n": 1}),
            (_Ticket(title="leak", due=date(2026, 5, 1)), {"title": "leak", "due": "2026-05-01"}),
            (_Route(stops=[_Stop("A", (1, 2))]), {"stops": [{"name": "A", "at": [1, 2]}]}),
            (_Counter(3), {"count": 3}),
            (state.with_iteration(1), state.with_iteration(1)),
        ]
        names = [await checkpointer.save(each, "t") for each, _ in saved]
        for name, (_, expected) in zip(names, saved, strict=True):
            loaded = await checkpointer.load("t", name)
            assert (type(loaded), loaded) == (type(expected), expected)
        # Others are rewritten, and keep their class.
        await checkpointer.delete("t", names[0])
        await checkpointer.fork("t", names[6], "branch")
        assert await checkpointer.load("t", names[1]) == document
        assert await checkpointer.load("branch") == {"count": 3}
        assert await checkpointer.load("t") == state.with_iteration(1)

    @pytest.mark.parametrize(
        "state",
        [
            AgentState(run_id="r", iteration=2),
            _Ticket(title="leak", due=date(2026, 5, 1)),
            _Route(stops=[_Stop("A", (1, 2))]),
            _Counter(3),
        ],
        ids=lambda state: type(state).__name__,
    )
    async def test_a_state_comes_back_as_its_class(self, open_another: Open, state: Any) -> None:
        checkpointer = await open_another(state_type=type(state))
        await checkpointer.save(state, "t")
        assert await checkpointer.load("t") == state
        dicts = await open_another(state_type=dict)
        if dicts.capabilities.persistent_checkpoint_ids:
            assert type(await dicts.load("t")) is dict

    async def test_what_is_no_state(self, checkpointer: DeltaCheckpointer) -> None:
        for nonsense in ("text", 3, None, [1], object(), AgentState, _Ticket, _Wrong()):
            await refused(
                StateTypeError,
                checkpointer.save(nonsense, "t"),  # type: ignore[arg-type] # the point
            )
        assert not await checkpointer.exists("t")

    async def test_a_subclass_keeps_its_fields(self, open_another: Open) -> None:
        class Plan(AgentState):
            steps: tuple[str, ...] = ()
            due: datetime | None = None

        checkpointer = await open_another(state_type=Plan)
        state = Plan(steps=("pack",), due=datetime.now(UTC)).with_message(Message.user("go"))
        await checkpointer.save(state, "t")
        assert await checkpointer.load("t") == state

    async def test_nothing_in_a_message_is_rewritten(self, open_another: Open) -> None:
        checkpointer = await open_another(state_type=AgentState)
        bad: list[Any] = [math.nan, {1: 2}, (1, 2), {1}, datetime.now(UTC), b"bytes"]
        for value in bad:
            call = ToolCall(name="tool", arguments={"x": value})
            for message in (
                Message.user("hi").model_copy(update={"metadata": {"x": value}}),
                Message.assistant(tool_calls=[call]),
            ):
                await refused(
                    ValueNotSerializableError,
                    checkpointer.save(AgentState(messages=(message,)), "t"),
                )
        assert not await checkpointer.exists("t")


class NamingTests(CheckpointerSuite):
    """Any string is a valid id, and no two ids collide."""

    async def test_hostile_names_never_meet(self, checkpointer: DeltaCheckpointer) -> None:
        for index, name in enumerate(HOSTILE):
            await checkpointer.save({"index": index}, name, name)
        for index, name in enumerate(HOSTILE):
            assert await checkpointer.load(name, name) == {"index": index}
            assert await checkpointer.list_checkpoints(name) == [name]
        assert await checkpointer.list_threads(len(HOSTILE) + 5) == sorted(HOSTILE)
        for index, name in enumerate(HOSTILE):
            await checkpointer.save({"index": -index}, "one thread", name)
        for index, name in enumerate(HOSTILE):
            assert await checkpointer.load("one thread", name) == {"index": -index}

    async def test_deleting_a_hostile_name_deletes_no_other(
        self, checkpointer: DeltaCheckpointer
    ) -> None:
        for name in HOSTILE:
            await checkpointer.save({}, name)
        for index, name in enumerate(HOSTILE):
            assert await checkpointer.delete(name)
            assert len(await checkpointer.list_threads(1000)) == len(HOSTILE) - index - 1

    async def test_what_is_no_name_is_refused(self, checkpointer: DeltaCheckpointer) -> None:
        await checkpointer.save(turns(1), "t", "a")
        bad: list[Any] = ["", None, 3, b"t", ("t",), "\ud800"]
        for name in bad:
            await refused(
                InvalidKeyError,
                checkpointer.save({}, name),
                checkpointer.load(name),
                checkpointer.delete(name),
            )
            if name is not None:
                await refused(
                    InvalidKeyError,
                    checkpointer.save({}, "t", name),
                    checkpointer.delete("t", name),
                )
            if name:
                await refused(
                    InvalidKeyError,
                    checkpointer.list_threads(prefix=name),
                    checkpointer.list_threads(after=name),
                )
        await verify(checkpointer, "t", {"a": turns(1)})

    async def test_limits_are_checked(self, checkpointer: DeltaCheckpointer) -> None:
        for limit in (-1, 1.5, True, "3"):
            await refused(
                InvalidArgumentError,
                checkpointer.list_checkpoints("t", limit),  # type: ignore[arg-type] # the point
                checkpointer.list_threads(limit),  # type: ignore[arg-type] # the point
            )

    async def test_any_large_limit_means_all(self, checkpointer: DeltaCheckpointer) -> None:
        await checkpointer.save({"n": 1}, "t", "c0")
        for much in (2**53, 2**63 - 1, 2**63, 2**70):
            assert await checkpointer.list_checkpoints("t", much) == ["c0"]
            assert await checkpointer.list_threads(much) == ["t"]
            assert len(await checkpointer.query_by_metadata({}, much)) == 1
            assert len(await checkpointer.storage.list_checkpoints("t", None, before=much)) == 1
        assert await checkpointer.storage.copy_thread("t", "copy", through=2**70) == 1

    async def test_order_is_that_of_saves_whatever_the_clock_does(
        self, checkpointer: DeltaCheckpointer, clock: FakeClock
    ) -> None:
        expected: dict[str, Any] = {}
        for index in range(10):
            clock.advance(-3600.0 * index)
            expected[await checkpointer.save({"index": index}, "t")] = {"index": index}
        await verify(checkpointer, "t", expected)
        infos = await checkpointer.list_with_metadata("t", 20)
        assert [info.sequence for info in infos] == sorted(
            (info.sequence for info in infos), reverse=True
        )
        assert infos[0].created_at == datetime.fromtimestamp(clock.now, UTC)
