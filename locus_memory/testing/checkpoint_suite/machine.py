"""The checkpointer suite: any sequence of calls, compared with a plain list of states."""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType] # it is not annotated
)

from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, verify
from locus_memory.testing.fakes import FakeClock

__all__ = ["MachineTests"]

T = TypeVar("T")
Model = dict[str, dict[str, Any]]
"""One thread: its states by checkpoint id, oldest first."""

_THREADS = st.sampled_from(["a", "b", "a/b"])
_WORDS = st.sampled_from(["", "x", "é", "a longer text that is worth a splice " * 3, "\x00"])
_LEAVES = st.none() | st.booleans() | st.integers(-1, 1) | st.just(1.0) | _WORDS


class _Machine(RuleBasedStateMachine):
    """Saves, edits, deletes, prunes, forks and reopens, and checks all of it each time."""

    make: Callable[..., DeltaCheckpointer]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.checkpointer = self.open()
        self.model: dict[str, Model] = {}
        self.state: dict[str, Any] = {"messages": []}

    def open(self) -> DeltaCheckpointer:
        return self.make(
            self.clock, Path(self.folder.name), state_type=None, max_chain_depth=self.depth
        )

    depth = 5

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    def saved(self, thread: str, name: str) -> None:
        states = self.model.setdefault(thread, {})
        states.pop(name, None)
        states[name] = copy.deepcopy(self.state)

    @rule(value=_LEAVES)
    def append(self, value: Any) -> None:
        self.state["messages"].append({"content": value})

    @rule(index=st.integers(0, 50), value=_LEAVES)
    def edit_in_place(self, index: int, value: Any) -> None:
        if self.state["messages"]:
            self.state["messages"][index % len(self.state["messages"])]["content"] = value

    @rule(index=st.integers(0, 50))
    def remove(self, index: int) -> None:
        if self.state["messages"]:
            self.state["messages"].pop(index % len(self.state["messages"]))

    @rule(key=st.sampled_from(["plan", "n"]), value=_LEAVES | st.lists(_LEAVES, max_size=3))
    def put(self, key: str, value: Any) -> None:
        self.state[key] = value

    @rule(thread=_THREADS)
    def save(self, thread: str) -> None:
        self.saved(thread, self.run(self.checkpointer.save(self.state, thread)))

    @rule(thread=_THREADS, name=st.sampled_from(["one", "two"]))
    def save_named(self, thread: str, name: str) -> None:
        self.saved(thread, self.run(self.checkpointer.save(self.state, thread, name)))

    @rule(thread=_THREADS, pick=st.integers(0, 50))
    def delete_one(self, thread: str, pick: int) -> None:
        states = self.model.get(thread, {})
        name = list(states)[pick % len(states)] if states else "unknown"
        deleted = self.run(self.checkpointer.delete(thread, name))
        assert deleted is (states.pop(name, None) is not None)

    @rule(thread=_THREADS)
    def delete_thread(self, thread: str) -> None:
        deleted = self.run(self.checkpointer.delete(thread))
        assert deleted is bool(self.model.pop(thread, {}))

    @rule(thread=_THREADS, keep=st.integers(1, 5))
    def prune(self, thread: str, keep: int) -> None:
        states = self.model.get(thread, {})
        removed = self.run(self.checkpointer.prune(thread, keep_last=keep))
        assert removed == max(0, len(states) - keep)
        self.model[thread] = dict(list(states.items())[-keep:])

    @rule(thread=_THREADS, pick=st.integers(0, 50))
    def load_and_go_on(self, thread: str, pick: int) -> None:
        states = self.model.get(thread, {})
        if states:
            name = list(states)[pick % len(states)]
            loaded: Any = self.run(self.checkpointer.load(thread, name))
            self.state = loaded

    @precondition(lambda self: self.model.get("a") and not self.model.get("a/b"))
    @rule(pick=st.integers(0, 50))
    def fork(self, pick: int) -> None:
        names = list(self.model["a"])
        index = pick % len(names)
        self.run(self.checkpointer.fork("a", names[index], "a/b"))
        self.model["a/b"] = {name: self.model["a"][name] for name in names[: index + 1]}

    @precondition(lambda self: self.checkpointer.capabilities.persistent_checkpoint_ids)
    @rule()
    def reopen(self) -> None:
        self.run(self.checkpointer.close())
        self.checkpointer = self.open()

    @rule(seconds=st.sampled_from([-1000.0, 1.0]))
    def move_the_clock(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def holds_the_same(self) -> None:
        alive = sorted(thread for thread, states in self.model.items() if states)
        assert self.run(self.checkpointer.list_threads()) == alive
        for thread in alive:
            self.run(verify(self.checkpointer, thread, self.model[thread]))

    def teardown(self) -> None:
        self.run(self.checkpointer.close())
        self.runner.close()
        self.folder.cleanup()


class MachineTests(CheckpointerSuite):
    """Any sequence of calls."""

    @pytest.mark.parametrize("max_chain_depth", [1, 5, 64])
    async def test_any_sequence_matches_a_list_of_states(self, max_chain_depth: int) -> None:
        machine = type(
            "Machine",
            (_Machine,),
            {"make": staticmethod(self.make_checkpointer), "depth": max_chain_depth},
        )
        steps = settings(max_examples=12, stateful_step_count=30, deadline=None)
        # In a thread: the machine runs its own event loop.
        await asyncio.to_thread(run_state_machine_as_test, machine, settings=steps)
