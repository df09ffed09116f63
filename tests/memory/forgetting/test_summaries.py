"""Rolling summaries go with the thread they are of, wherever they are."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.backend import InMemoryBackend
from locus_memory.backends.sqlite.backend import SQLiteBackend
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.conversation.summary.manager import SummarizingManager
from locus_memory.conversation.summary.thread import root_digest
from locus_memory.memory.forgetting.forget import forget
from locus_memory.messages import Message, ToolCall, ToolResult
from locus_memory.state import AgentState


@pytest.fixture(params=["memory", "sqlite"])
async def backend(request, tmp_path):
    made = InMemoryBackend() if request.param == "memory" else SQLiteBackend(tmp_path / "a.db")
    async with made:
        yield made


async def test_summaries_go_with_their_threads(backend):
    said = [Message.user(f"I live in Lyon, number {n}") for n in range(12)]
    kept = [Message.user(f"Quite another, number {n}") for n in range(12)]
    for messages in (said, kept):
        manager = SummarizingManager(10, 3, lambda _: "Lyon again", store=backend.store)
        await manager.async_apply(messages)
    state = AgentState(messages=tuple(said), metadata={"user_id": "ada"})
    await backend.checkpointer.save(state, "t")
    space = ("locus_memory", "summaries")
    assert len(await backend.store.scan(space)) == 2
    planned = await forget(backend, user_id="ada", dry_run=True)
    assert (await forget(backend, user_id="ada")).summaries == planned.summaries == 1
    assert len(await backend.store.scan(space)) == 1


async def summarised(backend, *states, thread="t", **options):
    """Save states of ada's thread, each summarised as an agent does."""
    manager = SummarizingManager(4, 2, store=backend.store, **options)
    for messages in states:
        await manager.async_apply(messages)
        state = AgentState(messages=tuple(messages), metadata={"user_id": "ada"})
        await backend.checkpointer.save(state, thread)


def talk(start, count):
    return [Message.user(f"{start} {number}") for number in range(count)]


SYSTEM = Message.system("Be kind.")
CALLED = [
    Message.user("Lyon"),
    Message.assistant(None, [ToolCall(id="c", name="t")]),
    *talk("Lyon", 5),
]
LATE = Message.tool(ToolResult(tool_call_id="c", name="t", content="late"))


@pytest.mark.parametrize(
    ("states", "options", "asked"),
    [
        pytest.param([[SYSTEM, *talk("Lyon", 9)]], {"preserve_system": False}, {}, id="system"),
        pytest.param(
            [talk("Lyon", 9)],
            {"namespace": ("mine", "sums")},
            {"summary_namespaces": [("mine", "sums")]},
            id="namespace",
        ),
        pytest.param(
            [talk("Lyon", 9)], {"namespace": ("my", "summaries")}, {"prefix": ("my",)}, id="prefix"
        ),
        pytest.param([talk("Lyon", 9)], {}, {"prefix": ("my",)}, id="default beside the prefix"),
        pytest.param(
            [talk("Lyon", 9), [*talk("Lyon", 1), Message.user("elsewhere")]], {}, {}, id="branch"
        ),
        pytest.param([CALLED, [*CALLED, LATE]], {}, {}, id="late result"),
        pytest.param([talk("Lyon", 9), talk("Rome", 9)], {}, {}, id="begun anew"),
        pytest.param(
            [talk("Lyon", 9), talk("Rome", 9), talk("Paris", 9)], {}, {}, id="begun anew twice"
        ),
    ],
)
async def test_no_summary_of_a_thread_is_left(backend, states, options, asked):
    await summarised(backend, *states, **options)
    space = options.get("namespace", ("locus_memory", "summaries"))
    found = len(await backend.store.scan(space))
    assert found
    await backend.store.put(space, "of another", {"text": "Kim", "covered": 2, "root": "r"})
    planned = await forget(backend, user_id="ada", dry_run=True, **asked)
    assert planned.summaries == found
    assert (await forget(backend, user_id="ada", **asked)).summaries == found
    assert [item.key for item in await backend.store.scan(space)] == ["of another"]


@pytest.mark.slow
async def test_more_summaries_than_a_page_holds(backend):
    await summarised(backend, talk("Lyon", 3))
    space, root = ("locus_memory", "summaries"), root_digest(talk("Lyon", 1))
    value = {"text": "Lyon", "covered": 2, "root": root}
    await backend.store.put_batch([(space, f"{n}", value) for n in range(1_100)])
    assert (await forget(backend, user_id="ada")).summaries == 1_100
    assert await backend.store.scan(space) == []


async def test_a_state_that_is_no_conversation_has_no_summary(backend):
    checkpointer = DeltaCheckpointer(state_type=None)
    for number, messages in enumerate(([], [7], [{"role": "no role"}], ["text"], 7, "text")):
        state = {"messages": messages, "metadata": {"user_id": "ada"}}
        await checkpointer.save(state, f"t{number}")
    report = await forget(backend, checkpointer, user_id="ada")
    assert (report.summaries, len(report.threads)) == (0, 6)
