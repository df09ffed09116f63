"""What stands beside a message: tools, and sentences that begin with another word."""

from __future__ import annotations

import pytest

from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message, ToolCall, ToolResult

HOME = Memory(MemoryType.USER, "home", "The user lives in Vienna.")


async def test_a_password_that_only_the_next_message_names_is_none_across_tools():
    call = ToolCall(id="c", name="look")
    said = [
        Message.user("I live in Xanadu."),
        Message.assistant(tool_calls=[call]),
        Message.tool(ToolResult(tool_call_id="c", name="look", content="nothing")),
        Message.assistant("Done."),
        Message.user("That was my password, please forget it."),
    ]
    assert list(await HeuristicExtractor().extract(said, [])) == []
    assert [each.key for each in await HeuristicExtractor().extract(said[:4], [])] == ["home"]


@pytest.mark.parametrize(
    "text",
    ["Sorry, I live in Graz, not in Vienna.", "I live in Graz, not in Vienna."],
)
async def test_a_correction_is_read_whatever_stands_before_it(text):
    changes = await HeuristicExtractor().extract([Message.user(text)], [HOME])
    assert [each.content for each in changes if each.op != "delete"] == ["The user lives in Graz."]
