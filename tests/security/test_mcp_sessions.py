"""No token takes the sessions of the others: each has a share, and its idle ones make room."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

pytest.importorskip("mcp.server.lowlevel")

import httpx2
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.mcp import HTTPOptions, MemoryServer, TokenCallers
from locus_memory.integrations.mcp import http as http_module
from locus_memory.integrations.mcp.http import http_app
from tests.integrations.mcp.test_http import ACCEPT, ADA, BOB, EVE, HELLO, TOKENS

LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@contextlib.asynccontextmanager
async def served(share, *, callers=None):
    """A client in this process of a server in memory; no port is taken."""
    async with MemoryServer("memory", callers=callers) as server:
        options = HTTPOptions(sessions_per_token=share)
        app = http_app(server.server, callers, options, 8765)
        transport = httpx2.ASGITransport(app=app)
        async with (
            server.server.session_manager.run(),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as http,
        ):
            yield http


def _headers(token, session=None):
    given = {} if token is None else {"authorization": f"Bearer {token}"}
    return {**ACCEPT, **given, **({"mcp-session-id": session} if session else {})}


async def _opened(http, token):
    answer = await http.post("/mcp", json=HELLO, headers=_headers(token))
    return answer.headers["mcp-session-id"] if answer.status_code == 200 else answer.status_code


async def _status(http, token, session):
    answer = await http.post("/mcp", json=LISTING, headers=_headers(token, session))
    return answer.status_code


async def test_the_session_that_is_idle_for_longest_makes_room():
    async with served(3, callers=TokenCallers.of(TOKENS)) as http:
        other = await _opened(http, BOB)
        first, second, third = [await _opened(http, ADA) for _ in range(3)]
        assert await _status(http, ADA, first) == 200
        fourth = await _opened(http, ADA)
        found = [await _status(http, ADA, each) for each in (first, second, third, fourth)]
        assert found == [200, 404, 200, 200]
        assert await _status(http, BOB, other) == 200


async def test_many_sessions_of_one_token_leave_room_for_others(monkeypatch):
    monkeypatch.setattr(http_module, "_MOST_SESSIONS", 20)
    async with served(15, callers=TokenCallers.of(TOKENS)) as http:
        mine = [await _opened(http, BOB) for _ in range(3)]
        for token in (ADA, EVE):
            opened = await asyncio.gather(*(_opened(http, token) for _ in range(60)))
            assert all(isinstance(each, (str, int)) for each in opened)
        assert isinstance(await _opened(http, BOB), str)
        assert [await _status(http, BOB, each) for each in mine] == [200] * 3


async def test_without_tokens_all_have_one_share(monkeypatch):
    monkeypatch.setattr(http_module, "_MOST_SESSIONS", 4)
    async with served(1) as http:
        opened = [await _opened(http, None) for _ in range(6)]
        found = [await _status(http, None, each) for each in opened]
        assert found == [404, 404, 200, 200, 200, 200]


async def test_an_ended_session_and_a_wrong_request_take_no_room():
    async with served(2, callers=TokenCallers.of(TOKENS)) as http:
        kept = await _opened(http, ADA)
        for _ in range(5):
            ended = await _opened(http, ADA)
            answer = await http.delete("/mcp", headers=_headers(ADA, ended))
            assert answer.status_code == 200
            assert (await http.post("/mcp", json={}, headers=_headers(ADA))).status_code == 400
            # Nor does the session of another token.
            assert await _status(http, BOB, kept) == 404
        assert await _status(http, ADA, kept) == 200


async def test_headers_that_are_given_twice_open_no_more(monkeypatch):
    """Of two headers with one name, the server reads the first."""
    monkeypatch.setattr(http_module, "_MOST_SESSIONS", 3)
    async with served(1) as http:
        opened = []
        for _ in range(8):
            twice = [("mcp-protocol-version", each) for each in ("2025-06-18", "2099-01-01")]
            answer = await http.post("/mcp", json=HELLO, headers=[*ACCEPT.items(), *twice])
            opened.append(answer.headers["mcp-session-id"])
        assert sum([await _status(http, None, each) == 200 for each in opened]) == 3


async def test_a_session_with_a_request_in_flight_is_not_ended():
    callers = TokenCallers.of(TOKENS)
    async with MemoryServer("memory", callers=callers) as server:
        release = asyncio.Event()

        async def app(scope, receive, send):
            headers = dict(scope["headers"])
            if scope["method"] == "GET":
                await release.wait()
            name = headers.get(b"mcp-session-id", b"new")
            await send(
                {
                    "type": "http.response.start",
                    "status": 200,
                    "headers": [(b"mcp-session-id", name)],
                }
            )

        http_app(server.server, callers, HTTPOptions(sessions_per_token=1), 8765)
        shares = server.server.session_manager.asgi_app
        shares._app = app
        answers = []

        async def ask(method, **headers):
            scope = {
                "type": "http",
                "method": method,
                "headers": [
                    (name.encode().replace(b"_", b"-"), value) for name, value in headers.items()
                ],
            }

            async def keep(message):
                if "status" in message:
                    answers.append(message["status"])

            await shares(scope, None, keep)

        await ask("POST")
        stream = asyncio.create_task(ask("GET", mcp_session_id=b"new"))
        await asyncio.sleep(0)
        shares._share = 1
        await ask("POST")
        assert answers == [200, 503]
        release.set()
        await stream
        await ask("POST")
        assert answers == [200, 503, 200, 200]


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.sampled_from([ADA, BOB, EVE]), st.sampled_from(["open", "use", "end"])),
        max_size=25,
    )
)
def test_nobody_has_more_than_a_share_and_nobody_loses_one_to_others(steps):
    """Whatever clients do, the last sessions of each that fit its share answer."""

    async def run():
        kept = {token: [] for token in (ADA, BOB, EVE)}
        async with served(2, callers=TokenCallers.of(TOKENS)) as http:
            for token, step in steps:
                mine = kept[token]
                if step == "open":
                    mine.append(await _opened(http, token))
                    del mine[:-2]
                elif mine and step == "use":
                    assert await _status(http, token, mine[0]) == 200
                    mine.append(mine.pop(0))
                elif mine:
                    await http.delete("/mcp", headers=_headers(token, mine.pop()))
            for token, mine in kept.items():
                assert [await _status(http, token, each) for each in mine] == [200] * len(mine)

    asyncio.run(run())


def test_a_share_is_a_number():
    with pytest.raises(InvalidArgumentError, match="sessions_per_token"):
        HTTPOptions(sessions_per_token=-1)
