"""FastMCP on our databases: session state, cached responses, events and OAuth storage."""

from __future__ import annotations

import pytest

pytest.importorskip("fastmcp.server", reason="no FastMCP takes this py-key-value")

from fastmcp import Client, Context, FastMCP
from fastmcp.client.auth.oauth import TokenStorageAdapter
from fastmcp.server.auth import OAuthProxy
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.server.event_store import EventStore
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types import JSONRPCNotification

from locus_memory import open_backend
from locus_memory.integrations.key_value import LocusKeyValue


def notes(store):
    """Return a server with two tools over the state of a session."""
    server = FastMCP("notes", session_state_store=store)

    @server.tool
    async def note(text: str, context: Context) -> int:
        noted = [*(await context.get_state("notes") or []), text]
        await context.set_state("notes", noted)
        return len(noted)

    @server.tool
    async def forget(context: Context) -> None:
        await context.delete_state("notes")

    @server.tool
    async def hold(context: Context) -> None:
        await context.set_state("held", object())

    return server


class TestSessions:
    async def test_the_state_of_a_session_is_kept(self, stores):
        store = stores()
        async with Client(notes(store), mode="legacy") as client:
            assert (await client.call_tool("note", {"text": "tea"})).data == 1
            assert (await client.call_tool("note", {"text": "milk"})).data == 2
            [key] = await store.keys("fastmcp_state")
            value, ttl = await store.ttl(key, collection="fastmcp_state")
            assert value == {"value": ["tea", "milk"]}
            assert ttl > 3600
            async with Client(notes(store), mode="legacy") as other:
                assert (await other.call_tool("note", {"text": "salt"})).data == 1
            await client.call_tool("forget")
            assert (await client.call_tool("note", {"text": "tea"})).data == 1

    async def test_what_json_cannot_hold_is_the_error_of_the_tool(self, stores):
        async with Client(notes(stores())) as client:
            held = await client.call_tool("hold", raise_on_error=False)
            assert held.is_error
            assert "not serializable" in held.content[0].text


class TestCachedResponses:
    @pytest.mark.slow
    async def test_a_second_server_answers_from_the_cache(self, stores):
        calls = []
        for _ in range(2):
            server = FastMCP("prices")
            server.add_middleware(ResponseCachingMiddleware(cache_storage=stores()))

            @server.tool
            def price(of: str) -> str:
                calls.append(of)
                return f"{of}: 3"

            async with Client(server) as client:
                assert (await client.call_tool("price", {"of": "tea"})).data == "tea: 3"
                assert [each.name for each in await client.list_tools()] == ["price"]
        assert calls == ["tea"]


class TestEvents:
    async def test_events_are_replayed_by_another_process(self, stores):
        first = EventStore(storage=stores(), max_events_per_stream=3)
        ids = [
            await first.store_event("s", JSONRPCNotification(jsonrpc="2.0", method=f"m{number}"))
            for number in range(4)
        ]
        sent = []

        async def send(event):
            sent.append((event.event_id, event.message.method))

        second = EventStore(storage=stores())
        assert await second.replay_events_after(ids[1], send) == "s"
        assert sent == [(ids[2], "m2"), (ids[3], "m3")]
        # Only three were kept.
        assert await second.replay_events_after(ids[0], send) is None


def proxy(store):
    return OAuthProxy(
        upstream_authorization_endpoint="https://login.example/authorize",
        upstream_token_endpoint="https://login.example/token",
        upstream_client_id="notes",
        upstream_client_secret="secret of the upstream",
        token_verifier=StaticTokenVerifier({}),
        base_url="https://notes.example",
        jwt_signing_key="a key for the tests alone",
        client_storage=store,
    )


class TestOAuth:
    @pytest.mark.slow
    async def test_a_registered_client_is_known_to_another_process(self, stores):
        client = OAuthClientInformationFull(
            client_id="ada",
            client_secret="secret of the client",
            redirect_uris=["http://localhost:7777/callback"],
            grant_types=["authorization_code", "refresh_token"],
        )
        await proxy(stores()).register_client(client)
        found = await proxy(stores()).get_client("ada")
        assert (found.client_id, found.grant_types) == ("ada", client.grant_types)
        assert [str(each) for each in found.redirect_uris] == ["http://localhost:7777/callback"]
        assert await proxy(stores()).get_client("bob") is None

    async def test_a_client_keeps_its_tokens(self, provider):
        where, options = provider
        async with open_backend(where, **options) as backend:
            tokens = TokenStorageAdapter(LocusKeyValue(backend), server_url="https://notes.example")
            await tokens.set_tokens(OAuthToken(access_token="a", token_type="Bearer"))
            again = TokenStorageAdapter(LocusKeyValue(backend), server_url="https://notes.example")
            assert (await again.get_tokens()).access_token == "a"
            await again.clear()
            assert await tokens.get_tokens() is None
