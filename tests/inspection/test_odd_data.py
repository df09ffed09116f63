"""States and memories as others may have written them: an error of ours, never a failure inside."""

from __future__ import annotations

from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory import LLMMemoryManager, Memory, open_backend
from locus_memory.inspection.errors import CommandError
from locus_memory.inspection.memories import describe
from locus_memory.inspection.sources import Sources
from locus_memory.inspection.threads import write_messages

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3)
    ),
    max_leaves=6,
)
NAMES = ("content", "tool_calls", "metadata", "id", "name", "tool_call_id")
KEPT = st.fixed_dictionaries({}, optional=dict.fromkeys(("role", "parts", "fields"), JSON))
ODD = st.fixed_dictionaries(
    {"role": st.text(max_size=3) | JSON},
    optional={
        **dict.fromkeys(NAMES, JSON),
        "metadata": JSON | st.dictionaries(st.just("openai"), KEPT),
    },
)


@given(st.lists(ODD | JSON, max_size=3), st.booleans())
def test_any_list_is_written_or_refused(messages, bare):
    with suppress(CommandError):
        orjson.dumps(write_messages(messages, bare=bare))


@pytest.mark.parametrize("odd", [3, "x", [3], [None], [{"function": 3}, 3]])
def test_a_call_of_a_tool_that_is_none_is_named(odd):
    with pytest.raises(CommandError, match="message 1 cannot be written"):
        write_messages([{"role": "assistant", "tool_calls": odd}])


@pytest.mark.parametrize(
    "name", ["#" + "9" * 5_000, "#²", "#٣", "#0", "#-1", "#", "", "x" * 10_000]
)
async def test_a_source_that_is_no_message_has_no_place(name):
    async with open_backend("memory", state_type=None) as backend:
        await backend.checkpointer.save({"messages": [{"role": "user", "content": "Hi."}]}, "t")
        told = {"thread_id": "t", "message_ids": [name]}
        manager = LLMMemoryManager(backend.store)
        await manager.save([Memory("user", "k", "I like tea.", told)])
        [memory] = await manager.retrieve()
        row = await describe(manager, Sources(backend), memory, None)
    assert all(each["place"] is None for each in row["sources"])
