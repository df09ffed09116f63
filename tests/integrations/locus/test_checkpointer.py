"""The checkpointer by itself: what it gives back, and the SDK's own verbs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from locus.core.messages import Message, Role, ToolCall
from locus.core.protocols import CheckpointerCapabilities, CheckpointerProtocol
from locus.core.state import AgentState, ReasoningStep, ToolExecution
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.registry import get_checkpointer, list_checkpointers

from locus_memory import open_backend
from locus_memory._internal.providers.installing import install_command
from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer
from locus_memory.checkpoint.base import BaseCheckpointer as OurCheckpointer
from locus_memory.errors import (
    BackendClosedError,
    CheckpointConflictError,
    ConfigurationError,
    StateTypeError,
    UnknownOptionError,
    UnknownProviderError,
)
from locus_memory.integrations.locus import LocusCheckpointer, register

marks = st.sampled_from(["$text", "$integer", "$float", "$object", "$written_out"])
# Halves of characters included: a model's broken stream leaves such. Not so in keys, where
# `to_checkpoint` of the SDK replaces them.
texts = st.text(st.characters(), max_size=8)
keys = st.text(max_size=8) | marks
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | floats | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=3)
moments = st.datetimes(timezones=st.just(UTC))
calls = st.builds(
    ToolCall, id=texts, name=texts, arguments=objects, malformed_arguments=st.none() | texts
)
messages = st.builds(
    Message,
    role=st.sampled_from(Role),
    content=st.none() | texts,
    tool_calls=st.lists(calls, max_size=2),
    tool_call_id=st.none() | texts,
    name=st.none() | texts,
    metadata=objects,
)
executions = st.builds(
    ToolExecution,
    tool_name=texts,
    tool_call_id=texts,
    arguments=objects,
    result=st.none() | texts,
    error=st.none() | texts,
    duration_ms=st.none() | floats,
    timestamp=moments,
    idempotent_cache_hit=st.booleans(),
)
steps = st.builds(
    ReasoningStep,
    iteration=st.integers(),
    thought=st.none() | texts,
    tool_calls=st.lists(calls, max_size=2),
    tool_results=st.lists(executions, max_size=2),
    reflection=st.none() | texts,
    confidence_delta=floats,
    timestamp=moments,
)
states = st.builds(
    AgentState,
    agent_id=st.none() | texts,
    messages=st.lists(messages, max_size=4).map(tuple),
    iteration=st.integers(),
    tool_executions=st.lists(executions, max_size=2).map(tuple),
    reasoning_steps=st.lists(steps, max_size=2).map(tuple),
    confidence=floats | st.just(float("inf")),
    confidence_history=st.lists(floats, max_size=3).map(tuple),
    tool_history=st.lists(texts, max_size=3).map(tuple),
    tool_loop_warnings=st.lists(st.tuples(texts, st.integers()), max_size=2).map(tuple),
    terminal_tools=st.frozensets(texts, max_size=3),
    total_tokens_used=st.integers(),
    cost_usd_used=floats,
    token_budget=st.none() | st.integers(),
    errors=st.lists(texts, max_size=2).map(tuple),
    provider_state=st.none() | objects,
    metadata=objects,
    started_at=moments,
    updated_at=moments,
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(history=st.lists(states, min_size=1, max_size=3))
async def test_every_state_comes_back(history):
    async with LocusCheckpointer("memory") as checkpointer:
        names = [await checkpointer.save(state, "t") for state in history]
        assert [await checkpointer.load("t", name) for name in names] == history


async def test_a_state_comes_back_from_every_place(checkpointers):
    call = ToolCall(id="c", name="f", arguments={"wei": 2**70, "half": "\ud83d", "nul": "\x00"})
    state = AgentState(
        messages=(Message.user("é"), Message.assistant(tool_calls=[call])),
        tool_executions=(ToolExecution(tool_name="f", tool_call_id="c", arguments={}),),
        reasoning_steps=(ReasoningStep(iteration=1, thought="hm", tool_calls=[call]),),
        tool_loop_warnings=(("look", 2),),
        confidence=float("inf"),
        provider_state={"id": "r1"},
        metadata={"\x00": [1, {"$text": "x"}]},
    )
    async with checkpointers() as checkpointer:
        await checkpointer.save(state, "t")
        await checkpointer.save(state.with_message(Message.user("more")), "t")
    async with checkpointers() as checkpointer:
        newest, oldest = await checkpointer.list_checkpoints("t")
        assert await checkpointer.load("t", oldest) == state
        assert (await checkpointer.load("t", newest)).messages[:-1] == state.messages


async def test_sets_have_one_order():
    """Each process would write them in another one, and each save would say so."""
    tools = [f"tool {number}" for number in range(20)]
    async with LocusCheckpointer("memory") as checkpointer:
        await checkpointer.save(AgentState(terminal_tools=frozenset(tools)), "t")
        raw = await MemoryCheckpointer.load(checkpointer.checkpointer, "t")
        assert raw.terminal_tools == frozenset(tools)
        document = checkpointer._format.document(raw)
        assert document["terminal_tools"] == sorted(tools)


class Ticket(AgentState):
    priority: int = 0


async def test_a_state_type_of_ones_own(checkpointers):
    async with LocusCheckpointer("memory", state_type=Ticket) as checkpointer:
        await checkpointer.save(Ticket(priority=3), "t")
        loaded = await checkpointer.load("t")
        assert isinstance(loaded, Ticket)
        assert loaded.priority == 3


async def test_a_thread_that_is_no_state_of_the_sdk():
    async with open_backend("memory") as backend:
        await backend.checkpointer.save({"messages": "none"}, "t")
        with pytest.raises(StateTypeError, match="AgentState"):
            await LocusCheckpointer(backend).load("t")


async def test_it_is_a_checkpointer_of_the_sdk(checkpointers):
    async with checkpointers() as checkpointer:
        assert isinstance(checkpointer, BaseCheckpointer)
        assert isinstance(checkpointer, CheckpointerProtocol)
        assert checkpointer.deletes_single_checkpoints is True
        capabilities = checkpointer.capabilities
        assert isinstance(capabilities, CheckpointerCapabilities)
        claimed = {f.name for f in fields(capabilities) if getattr(capabilities, f.name)}
        verbs = {"metadata_query", "vacuum", "branching", "list_threads", "list_with_metadata"}
        assert claimed - {"persistent_checkpoint_ids"} == verbs
        with pytest.raises(NotImplementedError, match="search"):
            await checkpointer.search("words")


async def test_the_verbs_of_the_sdk(checkpointers):
    async with checkpointers() as checkpointer:
        state = AgentState(iteration=1)
        first = await checkpointer.save(state, "a:1", metadata={"kind": "x", "n": 1})
        await checkpointer.save(state.next_iteration(), "a:1", "two", {"kind": "y"})
        await checkpointer.save(state, "b*", metadata={"kind": "x", "n": True})
        assert await checkpointer.list_checkpoints("a:1") == ["two", first]
        assert await checkpointer.list_checkpoints("a:1", limit=1) == ["two"]
        assert (await checkpointer.load("a:1")).iteration == 2
        assert await checkpointer.load("a:1", first) == state
        assert await checkpointer.load("a:1", "none") is None
        assert await checkpointer.load("none") is None
        assert await checkpointer.get_metadata("a:1", first) == {"kind": "x", "n": 1}
        found = await checkpointer.query_by_metadata("kind", "x")
        assert [each["thread_id"] for each in found] == ["b*", "a:1"]
        assert [each["thread_id"] for each in await checkpointer.query_by_metadata("n", 1)] == [
            "a:1"
        ]
        listed = await checkpointer.list_with_metadata(2)
        assert [each["checkpoint_id"] for each in listed][1] == "two"
        assert listed[1]["metadata"] == {"kind": "y"}
        assert datetime.fromisoformat(listed[1]["created_at"]) <= datetime.now(UTC)
        assert await checkpointer.exists("a:1", first)
        assert await checkpointer.delete("a:1", first)
        assert not await checkpointer.delete("a:1", first)
        assert not await checkpointer.exists("a:1", first)
        assert (await checkpointer.load("a:1", "two")).iteration == 2
        assert await checkpointer.delete("a:1")
        assert await checkpointer.list_threads() == ["b*"]


async def test_copies(checkpointers):
    async with checkpointers() as checkpointer:
        for iteration in range(3):
            await checkpointer.save(AgentState(iteration=iteration), "t")
        assert await checkpointer.copy_thread("t", "copy") is True
        assert await checkpointer.copy_thread("none", "other") is False
        assert await checkpointer.list_checkpoints("copy") == (
            await checkpointer.list_checkpoints("t")
        )
        with pytest.raises(CheckpointConflictError):
            await checkpointer.copy_thread("t", "copy")


async def test_old_checkpoints_are_pruned(checkpointers):
    async with checkpointers() as checkpointer:
        for iteration in range(5):
            await checkpointer.save(AgentState(iteration=iteration), "t")
        ours = checkpointer.checkpointer
        assert await ours.prune("t", keep_last=2) == 3
        assert await checkpointer.vacuum(older_than_days=30) == 0
        assert await ours.prune("t", older_than=datetime.now(UTC) + timedelta(days=1)) == 1
        assert (await ours.get_storage_stats("t"))["total_checkpoints"] == 1
        assert (await checkpointer.load("t")).iteration == 4


async def test_a_save_that_expects_another_parent(checkpointers):
    async with checkpointers() as checkpointer:
        first = await checkpointer.save(AgentState(), "t", expected_parent=None)
        await checkpointer.save(AgentState(), "t", expected_parent=first)
        with pytest.raises(CheckpointConflictError):
            await checkpointer.save(AgentState(), "t", expected_parent=first)


async def test_threads_that_match_a_pattern():
    async with LocusCheckpointer("memory") as checkpointer:
        for name in ["user-1", "user-2", "user*", "other", "User-3", *map(str, range(600))]:
            await checkpointer.save(AgentState(), name)
        assert await checkpointer.list_threads(pattern="user-*") == ["user-1", "user-2"]
        assert await checkpointer.list_threads(pattern="*er") == ["other"]
        assert await checkpointer.list_threads(pattern="user[*]") == ["user*"]
        assert await checkpointer.list_threads(pattern="user-?", limit=1) == ["user-1"]
        assert len(await checkpointer.list_threads(1000)) == 605
        assert await checkpointer.list_threads(0) == []


async def test_what_a_string_opened_is_closed_and_opened_again(tmp_path):
    checkpointer = LocusCheckpointer(f"sqlite:{tmp_path}/agent.db")
    await checkpointer.save(AgentState(iteration=7), "t")
    opened = checkpointer.checkpointer
    await checkpointer.close()
    await checkpointer.close()
    with pytest.raises(BackendClosedError):
        await opened.load("t")
    assert (await checkpointer.load("t")).iteration == 7
    await checkpointer.close()


async def test_memory_outlives_a_close():
    checkpointer = LocusCheckpointer("memory")
    await checkpointer.save(AgentState(iteration=7), "t")
    await checkpointer.close()
    assert (await checkpointer.load("t")).iteration == 7
    await checkpointer.checkpointer.close()


async def test_what_was_passed_in_is_never_closed():
    async with open_backend("memory") as backend, MemoryCheckpointer() as given:
        for where in (backend, given, backend.checkpointer):
            async with LocusCheckpointer(where) as checkpointer:
                await checkpointer.save(AgentState(iteration=1), "t")
            assert (await LocusCheckpointer(where).load("t")).iteration == 1


class Plain(OurCheckpointer):
    """A checkpointer that is no `DeltaCheckpointer`, and loads dicts."""

    def __init__(self):
        self.inner = MemoryCheckpointer(state_type=None)


def _passed_on(verb):
    if verb == "capabilities":
        return property(lambda self: self.inner.capabilities)
    return lambda self, *args, **options: getattr(self.inner, verb)(*args, **options)


for verb in OurCheckpointer.__abstractmethods__:
    setattr(Plain, verb, _passed_on(verb))
Plain.__abstractmethods__ = frozenset()


async def test_a_checkpointer_of_ones_own():
    checkpointer = LocusCheckpointer(Plain())
    state = AgentState(metadata={"n": 2**70})
    await checkpointer.save(state, "t")
    assert await checkpointer.load("t") == state


async def test_the_registry_of_the_sdk(tmp_path):
    register()
    assert "locus_memory" in list_checkpointers()
    for where in ("memory", f"sqlite:{tmp_path}/agent.db"):
        checkpointer = get_checkpointer(f"locus_memory:{where}", max_chain_depth=3)
        await checkpointer.save(AgentState(iteration=2), "t")
        assert (await checkpointer.load("t")).iteration == 2
        await checkpointer.close()
    with pytest.raises(ConfigurationError, match="locus_memory:memory"):
        get_checkpointer("locus_memory")


def test_mistakes_are_told_at_once():
    with pytest.raises(UnknownProviderError):
        LocusCheckpointer("sqllite:./agent.db")
    with pytest.raises(UnknownOptionError):
        LocusCheckpointer("memory", compresion_level=1)
    with pytest.raises(ConfigurationError, match="max_chain_depth"):
        LocusCheckpointer(open_backend("memory"), max_chain_depth=1)


def test_a_password_is_never_shown():
    checkpointer = LocusCheckpointer("redis:redis://user:hunter2@localhost:1")
    assert "hunter2" not in repr(checkpointer)


def test_the_extra_is_named_where_it_is_missing():
    code = (
        "import sys\n"
        "sys.modules['locus'] = None\n"
        "from locus_memory import MissingDriverError\n"
        "try:\n"
        "    import locus_memory.integrations.locus\n"
        "except MissingDriverError as error:\n"
        "    print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert install_command("locus") in told.stdout
