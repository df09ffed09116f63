from __future__ import annotations

import gc
import subprocess
import sys
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

import pytest

pytest.register_assert_rewrite("locus_memory.testing")

from locus_memory.errors import MissingDriverError  # noqa: E402 - as the next one
from locus_memory.testing.servers import (  # noqa: E402 - once its assertions are rewritten
    PostgreSQLServer,
    RedisServer,
    ValkeyServer,
)


def pytest_collection_finish():
    """Spare each collection of garbage, and each look at all objects, all that is there now."""
    gc.freeze()


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch):
    monkeypatch.delenv("LOCUS_MEMORY_URL", raising=False)
    monkeypatch.delenv("LOCUS_MEMORY_EMBEDDER", raising=False)
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


@pytest.fixture(scope="session")
def redisearch_server():
    """A Valkey server with RediSearch, and without vector sets, for the whole run."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(ValkeyServer(search=True))
        except MissingDriverError as error:
            pytest.skip(f"{error}; it exists for Linux on x86-64 only")
        yield server


@pytest.fixture(scope="session")
def model_endpoint():
    """The address of an OpenAI-compatible endpoint whose model goes by rules."""
    script = Path(__file__).with_name("model_endpoint.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        yield f"localhost:{int(process.stdout.readline())}"
        process.terminate()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def provider(request, tmp_path):
    """A backend of each kind, empty: its provider string and its options."""
    name = "t_" + blake2b(bytes(tmp_path), digest_size=8).hexdigest()
    if request.param == "memory":
        return "memory", {}
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'test.db'}", {}
    server = request.getfixturevalue(f"{request.param}_server")
    if request.param == "postgresql":
        return server.url, {"schema": name}
    return server.url, {"key_prefix": f"{name}:"}
