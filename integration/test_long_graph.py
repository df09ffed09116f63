"""One long life of a real graph on each server: interrupts, resumes, restarts, a fork."""

from __future__ import annotations

import pytest

from locus_memory.testing.servers import PostgreSQLServer, RedisServer
from tests.integrations.langgraph.saver.test_long_graph import live


@pytest.mark.parametrize(
    "kind", [pytest.param(PostgreSQLServer, id="postgresql"), pytest.param(RedisServer, id="redis")]
)
async def test_two_hundred_turns_with_stops_restarts_and_a_fork(kind):
    with kind() as server:
        await live(server.url)
