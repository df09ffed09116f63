from __future__ import annotations

import pytest

pytest.register_assert_rewrite("locus_memory.testing")

from locus_memory.testing.servers import (  # noqa: E402 - once its assertions are rewritten
    PostgreSQLServer,
    RedisServer,
    ValkeyServer,
)


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch):
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    monkeypatch.delenv("LOCUS_MEMORY_DEBUG", raising=False)


@pytest.fixture(scope="session")
def postgresql_server():
    """A PostgreSQL server with pgvector for the whole run."""
    with PostgreSQLServer(max_connections=200) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server():
    """A Redis 8 server with vector sets for the whole run."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server():
    """A Valkey server, which has no modules, for the whole run."""
    with ValkeyServer() as server:
        yield server
