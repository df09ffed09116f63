"""What a host is offered: arguments, annotations, structured answers, prompts."""

from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError

from locus_memory.cli.commands.serving.mcp import _sets
from locus_memory.inspection.errors import UsageError
from tests.integrations.mcp.conftest import call, connected

ALL = ("memory", "conversations", "documents", "resources", "knowledge-graph")


@pytest.mark.parametrize("key", [None, "", "null", "None", "undefined", " NULL "])
async def test_what_hosts_send_in_place_of_a_key_is_none(backend, key):
    async with connected(backend) as client:
        await call(client, "remember", content="I like green tea.", key=key)
        await call(client, "remember", content="My dog is called Rex.", key=key)
        listed = await call(client, "list_memories", type=None, as_of=None)
    assert "green tea" in listed
    assert "Rex" in listed


async def test_each_tool_is_described_for_a_host(backend):
    async with connected(backend, tools=ALL) as client:
        found = (await client.list_tools()).tools
        assert len(found) >= 21
        for each in found:
            assert each.title
            assert each.output_schema["type"] == "object"
            assert each.annotations.idempotent_hint is (each.name != "undo_memory")
            for name, schema in each.input_schema.get("properties", {}).items():
                options = schema.get("anyOf", [])
                assert not any("description" in one for one in options), (each.name, name)
        arguments = next(each.input_schema for each in found if each.name == "remember")
        assert "short name" in arguments["properties"]["key"]["description"]


async def test_an_answer_is_structured_as_well(backend):
    async with connected(backend) as client:
        answer = await client.call_tool("remember", {"content": "I like tea.", "key": "tea"})
        assert answer.structured_content == {"result": "user:tea: remembered"}
        assert answer.content[0].text == "user:tea: remembered"


async def test_the_prompts_of_a_host(backend):
    async with connected(backend) as client:
        listed = {each.name: each for each in (await client.list_prompts()).prompts}
        assert set(listed) == {"recall", "remember", "about_me"}
        got = await client.get_prompt("recall", {"subject": "my {odd} home"})
        [message] = got.messages
        assert message.role == "user"
        assert message.content.text.endswith("\n\nmy {odd} home")
        assert (await client.get_prompt("about_me")).messages[0].content.text
        with pytest.raises(MCPError, match="argument fact"):
            await client.get_prompt("remember", {"fact": ""})
        with pytest.raises(MCPError, match="no prompt 'x'"):
            await client.get_prompt("x")


def test_sets_of_tools_stand_with_commas_or_apart():
    assert _sets(["memory,documents", "resources"]) == ["memory", "documents", "resources"]
    with pytest.raises(UsageError, match="not 'x'"):
        _sets(["memory,x"])
