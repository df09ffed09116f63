from __future__ import annotations

import asyncio
import copy
import datetime as dt
import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory._internal.sameness import same
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.checkpoint.encoding import large_states
from locus_memory.checkpoint.encoding.large_states import freeze, is_large, read_json
from locus_memory.errors import ValueNotSerializableError
from locus_memory.messages import Message
from locus_memory.state import AgentState
from locus_memory.testing.checkpoint_suite.edits import EditTests
from locus_memory.testing.checkpoint_suite.saving import SavingTests, StateTests
from locus_memory.testing.store_suite.base import json_objects

quick = settings(deadline=None, max_examples=200)


@pytest.fixture(scope="module", autouse=True)
def everything_is_large():
    """Take all states for large ones, and cut them into the smallest pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_states, "LARGE", -1)
        patch.setattr(large_states, "_LONG", -1)
        patch.setattr(large_states, "_PIECE", 10)
        yield


class TestLarge(SavingTests, StateTests, EditTests):
    """What holds of any state holds of a large one."""

    def make_checkpointer(self, clock, tmp_path, **options):
        return MemoryCheckpointer(clock=clock, **options)


@pytest.mark.slow
@quick
@given(json_objects, st.sampled_from([1, 3, 10, 1000]))
def test_a_copy_in_pieces_is_the_same_and_its_own(document, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_states, "_PIECE", piece)
        document = {"many": [document] * 20, "by name": {str(n): document for n in range(20)}}
        before = copy.deepcopy(document)
        frozen = freeze(document)
        document["many"].append("later")
        document["by name"]["0"] = "later"
        assert same(frozen.checked({}), before)
        assert list(frozen.checked({})["by name"]) == list(before["by name"])
        again = frozen.checked({"messages": [1]})
        assert same(again, {**before, "messages": [1]})


@pytest.mark.slow
@quick
@given(json_objects | st.lists(json_objects))
def test_json_is_read_as_it_is_otherwise(document):
    assert same(read_json(orjson.dumps(document)), document)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[", '{"a"', '{"a":', '{"a":1', '{"a":1,', "[1", "[1,", "[1]]", "{}x", "nul", "[]]"],
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the two readers say it differently
        read_json(text.encode())


@pytest.mark.parametrize("lost", [math.nan, (1,), {1}, dt.date(2026, 5, 1), {1: 2}, 2**64])
async def test_what_is_not_json_is_named_by_its_place_in_the_whole(lost):
    state = {"rows": [{"n": [n]} for n in range(200)]}
    state["rows"][150]["n"][0] = lost
    async with MemoryCheckpointer() as checkpointer:
        with pytest.raises(ValueNotSerializableError) as caught:
            await checkpointer.save(state, "t")
        assert caught.value.path.startswith("$.rows[150].n[0]")
        message = Message.user("hi").model_copy(update={"metadata": {"x": lost}})
        with pytest.raises(ValueNotSerializableError) as caught:
            await checkpointer.save(AgentState(messages=(message,)), "t")
        assert caught.value.path.startswith("$.messages[0].metadata.x")
        assert not await checkpointer.exists("t")


@pytest.mark.slow
async def test_a_state_that_changes_while_it_is_saved_is_saved_as_it_was():
    async with MemoryCheckpointer(state_type=None) as checkpointer:
        # So many that the thread is not done before it is interrupted for the first time.
        state = {f"key {n}": [n] for n in range(20_000)}
        for round_ in range(3):
            before = copy.deepcopy(state)
            saving = asyncio.ensure_future(checkpointer.save(state, "t"))
            await asyncio.sleep(0)
            assert not saving.done()
            state["key 7"].append(round_)
            state[f"new {round_}"] = []
            await saving
            assert await checkpointer.load("t") == before


@pytest.mark.parametrize(
    ("state", "compared", "expected"),
    [
        ({"messages": [{"role": "user", "content": "x"}] * 4000}, False, False),
        ({"messages": [{"role": "user", "content": "x"}] * 40_000}, True, False),
        ({"messages": [{"role": "user", "content": "x"}] * 40_000}, False, True),
        ({str(n): n for n in range(10**5)}, True, True),
        ({"data": {str(n): {"x": [{"y": n}] * 200} for n in range(500)}}, False, True),
        ({"a": {"b": {"c": {"d": {"e": {str(n): n for n in range(10**5)}}}}}}, False, True),
        ({}, False, False),
    ],
)
def test_what_is_large(monkeypatch, state: dict[str, Any], compared, expected):
    monkeypatch.setattr(large_states, "LARGE", 50_000)
    assert is_large(state, compared=compared) is expected
