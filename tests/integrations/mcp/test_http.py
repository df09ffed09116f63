"""The memory server over streamable HTTP: a real server on a free port, and the official client."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from locus_memory.errors import ConfigurationError
from locus_memory.integrations.mcp import Caller, HTTPOptions, MemoryServer, TokenCallers
from tests.integrations.mcp.conftest import call

ADA, BOB, EVE = "ada-token-0123456789", "bob-token-0123456789", "eve-token-0123456789"
TOKENS = {ADA: Caller("ada"), BOB: Caller("bob"), EVE: Caller("ada", read_only=True)}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def serving(where="memory", *, options=None, **given):
    """The URL of a server that listens on a free port."""
    url = asyncio.get_running_loop().create_future()
    settings = HTTPOptions(port=0, on_listening=url.set_result, **(options or {}))
    async with MemoryServer(where, **given) as server:
        task = asyncio.create_task(server.serve_http(settings))
        await asyncio.wait([task, url], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        try:
            yield url.result()
        finally:
            task.cancel()
            await asyncio.wait([task])


@asynccontextmanager
async def client_of(url, token=None, mode="auto"):
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_remembers_over_http(mode):
    async with serving(caller=Caller("ada")) as url, client_of(url, mode=mode) as client:
        await call(client, "remember", content="I live in Berlin.")
        assert "Berlin" in await call(client, "recall", query="home")
        [resource] = (await client.list_resources()).resources
        assert resource.uri == "memory://memories/user/home"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_each_token_has_its_own_memories(mode):
    async with (
        serving(callers=TokenCallers.of(TOKENS)) as url,
        client_of(url, ADA, mode) as ada,
        client_of(url, BOB, mode) as bob,
        client_of(url, EVE, mode) as eve,
    ):
        await asyncio.gather(
            call(ada, "remember", content="I live in Berlin."),
            call(bob, "remember", content="I live in Oslo."),
        )
        for client, own, other in ((ada, "Berlin", "Oslo"), (bob, "Oslo", "Berlin")):
            listed = await call(client, "list_memories")
            assert own in listed
            assert other not in listed
        assert "Berlin" in await call(eve, "list_memories")
        assert "remember" not in {each.name for each in (await eve.list_tools()).tools}


async def test_no_session_answers_to_another_token():
    async with serving(callers=TokenCallers.of(TOKENS)) as url, httpx2.AsyncClient() as http:
        headers = {**ACCEPT, "authorization": f"Bearer {ADA}"}
        opened = await http.post(url, json=HELLO, headers=headers)
        assert opened.status_code == 200
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        headers |= session
        assert (await http.post(url, json=listing, headers=headers)).status_code == 200
        headers["authorization"] = f"Bearer {BOB}"
        assert (await http.post(url, json=listing, headers=headers)).status_code == 404


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer nonsense-nonsense"}])
async def test_without_a_valid_token_nothing_is_answered(header):
    async with serving(callers=TokenCallers.of(TOKENS)) as url, httpx2.AsyncClient() as http:
        answer = await http.post(url, json=HELLO, headers={**ACCEPT, **header})
    assert answer.status_code == 401
    assert "www-authenticate" in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:{port}"}, 200),
        ({"host": "evil.example:{port}"}, 421),
        ({"host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"host": "localhost:1"}, 421),
        ({"origin": "http://localhost:{port}"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "ai.example.org", "origin": "https://ai.example.org"}, 200),
    ],
)
async def test_pages_of_other_hosts_are_refused(headers, status):
    options = {
        "allowed_hosts": ("ai.example.org",),
        "allowed_origins": ("https://ai.example.org",),
    }
    async with serving(options=options) as url, httpx2.AsyncClient() as http:
        port = httpx2.URL(url).port
        given = {name: value.format(port=port) for name, value in headers.items()}
        answer = await http.post(url, json=HELLO, headers={**ACCEPT, **given})
    assert answer.status_code == status


async def test_a_request_that_is_too_large_is_refused():
    async with serving() as url, httpx2.AsyncClient() as http:
        answer = await http.post(url, content=b"x" * 1_100_000, headers=ACCEPT)
    assert answer.status_code == 413


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "ai.example.org"])
async def test_an_address_that_others_reach_needs_tokens(host):
    async with MemoryServer("memory") as server:
        with pytest.raises(ConfigurationError, match="needs tokens"):
            await server.serve_http(HTTPOptions(host=host, port=0))


async def test_an_address_without_a_name_needs_the_names_that_clients_use():
    callers = TokenCallers.of(TOKENS)
    async with MemoryServer("memory", callers=callers) as server:
        with pytest.raises(ConfigurationError, match="allowed_hosts"):
            await server.serve_http(HTTPOptions(host="0.0.0.0", port=0))
    options = {"host": "0.0.0.0", "allowed_hosts": ("ai.example.org",)}
    async with serving(callers=callers, options=options) as url, httpx2.AsyncClient() as http:
        headers = {**ACCEPT, "authorization": f"Bearer {ADA}", "host": "ai.example.org"}
        local = url.replace("0.0.0.0", "127.0.0.1")
        assert (await http.post(local, json=HELLO, headers=headers)).status_code == 200


async def test_tokens_are_refused_over_stdio():
    async with MemoryServer("memory", callers=TokenCallers.of(TOKENS)) as server:
        with pytest.raises(ConfigurationError, match="over stdio"):
            await server.serve_stdio()


async def test_the_server_in_memory_answers_nobody_without_a_token():
    callers = TokenCallers.of(TOKENS)
    async with MemoryServer("memory", callers=callers) as server, Client(server.server) as client:
        with pytest.raises(MCPError, match="bearer token"):
            await client.list_tools()


class TestTokenFiles:
    @staticmethod
    def table(token, rest=""):
        return f'[[token]]\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n{rest}\n'

    async def test_a_file_names_the_callers(self, tmp_path):
        file = tmp_path / "tokens.toml"
        file.write_text(
            self.table(ADA, 'user = "ada"')
            + self.table(EVE, 'user = "ada"\nread_only = true')
            + self.table(BOB)
        )
        callers = TokenCallers.read(file)
        for token, caller in {**TOKENS, BOB: Caller()}.items():
            known = await callers.verify_token(token)
            assert token not in str(known)
            assert callers.caller(known) == caller
        assert await callers.verify_token("nonsense") is None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "token = 1",
            "[[token]]\nuser = 'ada'",
            "[[token]]\nsha256 = 'ADA'",
            "[[token]]\nsha256 = '{0}'\nusr = 'ada'",
            "[[token]]\nsha256 = '{0}'\nuser = ''",
            "[[token]]\nsha256 = '{0}'\nuser = 7",
            "[[token]]\nsha256 = '{0}'\nread_only = 'no'",
            "[[token]]\nsha256 = '{0}'\n[[token]]\nsha256 = '{0}'",
            "[[token]]\nsha256 = '{0}'\n[other]\n",
            "[token]\nsha256 = '{0}'",
            "token = [1]",
            "nonsense",
        ],
    )
    def test_anything_else_is_refused(self, tmp_path, text):
        file = tmp_path / "tokens.toml"
        file.write_text(text.format("0" * 64))
        with pytest.raises(ConfigurationError):
            TokenCallers.read(file)

    def test_a_file_that_is_not_there_is_refused(self, tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            TokenCallers.read(tmp_path / "none.toml")

    @pytest.mark.parametrize("token", ["short", "with a space in it", "ümlaut-ümlaut-ümlaut"])
    def test_a_weak_token_is_refused(self, token):
        with pytest.raises(ConfigurationError, match="16 printable"):
            TokenCallers.of({token: Caller()})
