"""The checkpointer suite: a state that is changed in place, anywhere, between saves."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st

from locus_memory._internal.sameness import same
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.messages import Message, ToolCall
from locus_memory.state import AgentState
from locus_memory.testing.checkpoint_suite.base import CheckpointerSuite, Open
from locus_memory.testing.store_suite.base import PROPERTY

__all__ = ["EditTests"]

_LONG: Final = "a longer text that is worth a splice " * 3
_LEAVES = st.sampled_from([1, True, 1.0, 0, False, 0.0, -0.0, 2**63, None, "", "x", "é\x00", _LONG])
_PARTS = _LEAVES | st.sampled_from([[], {}, [1], [True], [1.0], ["x"], {"n": 1}, {"n": [0.0]}])
_PLACES = st.lists(st.integers(0, 2**16), max_size=5)

Edit = Callable[[dict[str, Any]], Any]


def _container(state: dict[str, Any], places: list[int]) -> Any:
    """Return the dict or list that a walk through the state ends in."""
    found: Any = state
    for place in places:
        children = list(found.values() if isinstance(found, dict) else found)
        if not children:
            break
        child = children[place % len(children)]
        if not isinstance(child, dict | list):
            break
        found = child
    return found


def _messages(state: dict[str, Any]) -> list[Any]:
    if not isinstance(state.get("messages"), list):
        state["messages"] = []
    messages: list[Any] = state["messages"]
    return messages


def _assign(places: list[int], at: int, value: Any) -> Edit:
    def edit(state: dict[str, Any]) -> None:
        container = _container(state, places)
        keys: list[Any] = (
            sorted(container) if isinstance(container, dict) else list(range(len(container)))
        )
        if keys:
            container[keys[at % len(keys)]] = copy.deepcopy(value)

    return edit


def _add(places: list[int], at: int, value: Any) -> Edit:
    def edit(state: dict[str, Any]) -> None:
        container = _container(state, places)
        if isinstance(container, dict):
            container[f"k{at % 4}"] = copy.deepcopy(value)
        else:
            container.insert(at % (len(container) + 1), copy.deepcopy(value))

    return edit


def _remove(places: list[int], at: int) -> Edit:
    def edit(state: dict[str, Any]) -> None:
        container = _container(state, places)
        if isinstance(container, list) and container:
            container.pop(at % len(container))
        elif container and container is not state:
            container.pop(sorted(container)[at % len(container)])

    return edit


def _reorder(places: list[int], at: int) -> Edit:
    def edit(state: dict[str, Any]) -> None:
        container = _container(state, places)
        if isinstance(container, list):
            middle = at % (len(container) + 1)
            container[:] = [*container[middle:], *container[:middle]]
        else:
            pairs = list(container.items())[::-1]
            container.clear()
            container.update(pairs)

    return edit


def _share(at: int) -> Edit:
    """Put one object in two places."""

    def edit(state: dict[str, Any]) -> None:
        messages = _messages(state)
        if messages:
            message = messages[at % len(messages)]
            messages.append(message)
            state["shared"] = message

    return edit


def _lengthen(count: int) -> Edit:
    def edit(state: dict[str, Any]) -> None:
        messages = _messages(state)
        first = len(messages)
        messages += [
            {"role": "user", "content": f"message {first + index}", "n": [index]}
            for index in range(count)
        ]

    return edit


def _keep(first: int, last: int | None) -> Edit:
    """Make a shorter list of the same messages."""

    def edit(state: dict[str, Any]) -> None:
        state["messages"] = _messages(state)[first:last]

    return edit


_EDITS = st.one_of(
    st.builds(_assign, _PLACES, st.integers(0, 2**16), _PARTS),
    st.builds(_add, _PLACES, st.integers(0, 2**16), _PARTS),
    st.builds(_remove, _PLACES, st.integers(0, 2**16)),
    st.builds(_reorder, _PLACES, st.integers(0, 2**16)),
    st.builds(_share, st.integers(0, 2**16)),
    st.builds(_lengthen, st.sampled_from([1, 2, 300])),
    st.builds(_keep, st.sampled_from([0, 1, 200]), st.sampled_from([None, 60, 100])),
)
_NAMES = st.none() | st.sampled_from(["one", "two"])
_ROUNDS = st.lists(
    st.tuples(st.lists(_EDITS, max_size=4), _NAMES, st.booleans()), min_size=1, max_size=7
)
"""The changes before each save, its checkpoint id, and whether the process is new."""

_END_OF_A_LONG_LIST: Final[list[Any]] = [
    ([], None, False),
    ([_assign([0, 1499], 0, "edited"), _assign([0, 1300], 0, "edited")], None, False),
    ([_assign([0], 3, {"n": 1}), _lengthen(1)], None, False),
    ([_keep(700, None)], None, False),
]
_LIST_THAT_SHRANK: Final[list[Any]] = [
    ([], None, False),
    ([_keep(0, 100)], None, False),
    ([_assign([0, 99], 0, "edited"), _assign([0, 0], 0, "edited")], None, False),
    ([_keep(0, 60)], None, False),
    ([_assign([0, 59], 0, "edited"), _assign([0, 0], 0, "again")], None, False),
]


class EditTests(CheckpointerSuite):
    """A checkpoint is the state at the time of its save, whatever the caller changes later."""

    @PROPERTY
    @given(size=st.sampled_from([0, 3, 257, 600]), rounds=_ROUNDS)
    @example(size=1500, rounds=_END_OF_A_LONG_LIST)
    @example(size=400, rounds=_LIST_THAT_SHRANK)
    @example(size=400, rounds=[([], None, False), ([_assign([0, 5], 0, "x")], None, False)])
    async def test_any_change_in_place_is_saved_and_nothing_else(
        self,
        checkpointer: DeltaCheckpointer,
        open_another: Open,
        size: int,
        rounds: list[tuple[list[Edit], str | None, bool]],
    ) -> None:
        await checkpointer.delete("t")
        state = {"messages": list[Any]()}
        _lengthen(size)(state)
        saver, opened = checkpointer, list[DeltaCheckpointer]()
        expected: dict[str, Any] = {}
        for edits, name, is_new in rounds:
            for edit in edits:
                edit(state)
            if is_new and checkpointer.capabilities.persistent_checkpoint_ids:
                saver = await open_another()
                opened.append(saver)
            saved = await saver.save(state, "t", name)
            expected.pop(saved, None)
            expected[saved] = copy.deepcopy(state)
        for saved, before in expected.items():
            assert same(await saver.load("t", saved), before)
        assert await saver.list_checkpoints("t", 20) == list(expected)[::-1]
        # A server has only so many connections, and there are many examples.
        for saver in opened:
            await saver.close()

    @PROPERTY
    @given(size=st.sampled_from([3, 600]), edits=st.lists(_EDITS, min_size=1, max_size=4))
    async def test_what_is_recalled_is_what_was_saved(
        self, checkpointer: DeltaCheckpointer, size: int, edits: list[Edit]
    ) -> None:
        state: dict[str, Any] = {"messages": []}
        _lengthen(size)(state)
        for _ in range(2):
            await checkpointer.save(state, "t")
            saved = copy.deepcopy(state)
            (info,) = await checkpointer.list_with_metadata("t", 1)
            for edit in edits:
                edit(state)
            recalled = checkpointer.recall(info)
            assert recalled is not None
            assert same(recalled, saved)
            recalled.clear()
            assert same(checkpointer.recall(info), saved)

    async def test_a_mapping_in_a_message_is_changed_in_place(self, open_another: Open) -> None:
        checkpointer: DeltaCheckpointer = await open_another(state_type=AgentState)
        call = ToolCall(name="search", arguments={"words": ["sloop"], "limit": 1})
        old = [Message.user("hi"), Message.assistant(tool_calls=[call])]
        state = AgentState().with_messages([*old, *map(Message.user, map(str, range(300)))])
        await checkpointer.save(state, "t")
        changes: list[Callable[[], Any]] = [
            lambda: old[0].metadata.update(seen=1),
            lambda: old[0].metadata.update(seen=True),
            lambda: call.arguments["words"].append("ship"),
            lambda: call.arguments.update(limit=1.0),
            lambda: state.metadata.update(plan=[]),
            lambda: state.metadata["plan"].append("go"),
            old[0].metadata.clear,
        ]
        for change in changes:
            change()
            saved = await checkpointer.save(state, "t")
            loaded: Any = await checkpointer.load("t", saved)
            assert same(loaded.to_checkpoint(), state.to_checkpoint())
