"""A conversation goes on although the server ends every connection before each turn."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from langchain_core.messages import HumanMessage

from locus_memory import open_backend
from locus_memory.integrations.langgraph import LocusSaver
from locus_memory.testing.servers import RedisServer

TURNS = 20
ADA = {"configurable": {"thread_id": "ada"}}
NAME = "langgraph_lost"


@asynccontextmanager
async def on_postgresql(request, tmp_path):
    """Yield the place of a backend, and a function that ends all of its connections."""
    asyncpg = pytest.importorskip("asyncpg")
    server = request.getfixturevalue("postgresql_server")
    schema = request.getfixturevalue("schema_of")(tmp_path)
    admin = await asyncpg.connect(server.url)
    others = f"FROM pg_stat_activity WHERE application_name = '{NAME}'"

    async def kill():
        await admin.fetch(f"SELECT pg_terminate_backend(pid, 60000) {others}")
        assert not await admin.fetchval(f"SELECT count(*) {others}")

    yield f"{server.url}?application_name={NAME}", {"schema": schema}, kill
    await admin.close()


@asynccontextmanager
async def on_redis(_request, _tmp_path):
    """Yield the place of a backend, and a function that ends all of its connections."""
    redis = pytest.importorskip("redis.asyncio")
    # Its own server, since all connections are ended.
    with RedisServer() as server:
        async with redis.Redis.from_url(server.url) as admin:

            async def kill():
                await admin.client_kill_filter(_type="normal", skipme=True)
                assert len(await admin.client_list(_type="normal")) == 1

            yield server.url, {}, kill


@pytest.mark.parametrize("place", [on_postgresql, on_redis])
async def test_every_connection_is_ended_before_each_turn(conversation, request, tmp_path, place):
    async with place(request, tmp_path) as (url, options, kill):
        async with open_backend(url, **options) as backend, LocusSaver(backend) as saver:
            graph = conversation(saver)
            for turn in range(TURNS):
                await kill()
                state = await graph.ainvoke({"messages": [HumanMessage(f"question {turn}")]}, ADA)
                assert len(state["messages"]) == 2 * turn + 2
        async with open_backend(url, **options) as backend, LocusSaver(backend) as saver:
            graph = conversation(saver)
            said = (await graph.aget_state(ADA)).values["messages"]
            assert [each.content for each in said[::2]] == [f"question {n}" for n in range(TURNS)]
            assert len([each async for each in graph.aget_state_history(ADA)]) == 3 * TURNS
