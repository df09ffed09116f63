"""What a host is offered: arguments, annotations, structured answers, prompts."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from locus_memory.cli.commands.serving.mcp import _sets
from locus_memory.inspection.errors import UsageError
from locus_memory.integrations.mcp import Caller, server
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


@pytest.mark.parametrize(
    ("options", "prompts"),
    [
        ({"caller": Caller("ada", read_only=True)}, {"recall", "about_me"}),
        ({"tools": ("documents", "knowledge-graph")}, set()),
    ],
)
async def test_a_prompt_needs_its_tool(backend, options, prompts):
    async with connected(backend, **options) as client:
        assert {each.name for each in (await client.list_prompts()).prompts} == prompts
        with pytest.raises(MCPError, match="no prompt 'remember'"):
            await client.get_prompt("remember", {"fact": "I like tea."})


async def test_a_long_call_tells_its_progress(backend, monkeypatch):
    """It ends once two notes are there; a call that is done at once has none."""
    monkeypatch.setattr(server, "_PROGRESS", 0.01)
    told = []
    enough = asyncio.Event()

    async def note(progress, total, message):
        told.append((progress, total, message))
        if len(told) == 2:
            enough.set()

    async def search(*_, **__):
        await enough.wait()
        return "found"

    monkeypatch.setattr(server, "call_function", search)
    async with connected(backend) as client:
        answer = await client.call_tool("recall", {"query": "tea"}, progress_callback=note)
        assert answer.content[0].text == "found"
        assert told[1][0] > told[0][0] > 0
        assert told[0][1:] == (None, "recall is under way")
        # Nobody asked for it.
        assert (await client.call_tool("recall", {"query": "tea"})).content[0].text == "found"


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


@pytest.mark.slow
async def test_python_starts_the_server_where_only_known_commands_are_allowed(tmp_path):
    command = ["-m", "locus_memory", "mcp", "--user", "ada", "--url", f"sqlite:{tmp_path}/a.db"]
    process = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    async with Client(stdio_client(process)) as client:
        assert "recall" in {each.name for each in (await client.list_tools()).tools}
