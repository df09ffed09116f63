"""Several nodes, some of which are silent: they are reached, and never answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from locus_memory.backends.opensearch.connection.connection import OpenSearchConnection


@asynccontextmanager
async def node(*, silent=False):
    """A node that notes what it is asked; yields its address, the requests, and a switch."""
    asked, state = [], {"silent": silent}

    async def answer(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = next(
                (int(each[15:]) for each in head.lower().split(b"\r\n") if b"-length:" in each), 0
            )
            await reader.readexactly(size)
            if state["silent"]:
                await asyncio.Event().wait()
            asked.append(head.split(b" HTTP")[0].decode())
            body = b"" if head.startswith(b"HEAD") else b'{"ok": true}'
            kind = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            writer.write(kind + b"content-length: %d\r\n\r\n" % len(body) + body)

    async def serve(reader, writer):
        tasks.append(asyncio.current_task())
        try:
            await answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    tasks = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked, state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def connected(*addresses):
    """Yields a function that sends a request, a write that must not run twice by default."""
    connection = OpenSearchConnection(
        ",".join(addresses), connect_timeout=0.4, command_timeout=20, retries=3
    )
    try:
        yield lambda method="POST": connection.request(
            method, "/_bulk", {"a": 1}, again=method == "GET"
        )
    finally:
        await connection.close()


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_where_one_is_silent_the_next_is_asked(method):
    async with node(silent=True) as (silent, _, _), node() as (other, asked, _):
        async with connected(silent, other) as send, asyncio.timeout(5):
            for _ in range(5):
                assert await send(method) == {"ok": True}
        assert asked == ["HEAD /", *[f"{method} /_bulk"] * 5]


async def test_one_that_falls_silent_is_not_asked_again(monkeypatch):
    monkeypatch.setattr("locus_memory.backends.opensearch.connection.driver._FRESH", 0.0)
    async with (
        node() as (first, before, state),
        node() as (other, asked, _),
        connected(first, other) as send,
        asyncio.timeout(10),
    ):
        for _ in range(4):
            await send()
        assert "POST /_bulk" in before
        assert "POST /_bulk" in asked
        state["silent"], count = True, len(before)
        for _ in range(6):
            await send()
        assert len(before) == count


async def test_where_all_are_silent_the_error_comes_in_time():
    async with (
        node(silent=True) as (first, _, _),
        node(silent=True) as (other, _, _),
        connected(first, other) as send,
        asyncio.timeout(15),
    ):
        with pytest.raises(Exception, match="no answer"):
            await send()


async def test_one_node_is_not_greeted():
    async with node() as (only, asked, _), connected(only) as send:
        await send()
    assert asked == ["POST /_bulk"]
