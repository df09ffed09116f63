"""Clients of the official SDK, connected to memory servers."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp.server.lowlevel")

from contextlib import asynccontextmanager

from mcp import Client

from locus_memory import open_backend
from locus_memory.integrations.mcp import MemoryServer

ALL = ("memory", "conversations", "documents", "resources", "knowledge-graph")


async def call(client, name, /, **arguments):
    """Return the text of an answer that is no error."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content[0].text
    return result.content[0].text


async def refused(client, name, /, **arguments):
    """Return the text of an answer that is an error."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, result.content[0].text
    return result.content[0].text


@pytest.fixture
async def backend(provider):
    """An open database of each kind."""
    url, options = provider
    async with open_backend(url, **options) as backend:
        yield backend


@asynccontextmanager
async def connected(where, **options):
    """A client that is connected to a server in this process."""
    server = MemoryServer(where, **{"tools": ALL, **options})
    async with server, Client(server.server) as client:
        yield client
