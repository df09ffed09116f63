"""The frameworks of the page "Any framework" get an answer of the MCP server."""

from __future__ import annotations

import json
import sys

import pytest

mcp = pytest.importorskip("haystack_integrations.tools.mcp", reason="make frameworks")


def test_what_one_framework_remembers_another_recalls(tmp_path):
    command = ["-m", "locus_memory", "mcp", "--user", "ada", "--url", f"sqlite:{tmp_path}/any.db"]
    server = mcp.StdioServerInfo(command=sys.executable, args=command)
    for tool, given in (
        ("remember", {"content": "Ada lives in Vienna."}),
        ("recall", {"query": "Where does Ada live?"}),
    ):
        tools = mcp.MCPToolset(server, eager_connect=True)
        answer = next(each for each in tools if each.name == tool).invoke(**given)
        tools.close()
    assert "Vienna" in json.loads(answer)["content"][0]["text"]
