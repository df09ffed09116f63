"""The servers start, keep what they acknowledged when they are killed, and leave nothing."""

from __future__ import annotations

import os
import socket

import pytest

from locus_memory.errors import BackendUnavailableError, MissingDriverError
from locus_memory.testing.servers import PostgreSQLServer, RedisServer, ValkeyServer

pytestmark = pytest.mark.server


def ask(server, *words):
    """Return the server's answer to an inline command of Redis."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(" ".join(words).encode() + b"\r\n")
        return client.recv(4096).decode().strip()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RedisServer, ValkeyServer])
def test_redis_keeps_what_it_acknowledged(kind):
    with kind() as server:
        folder, port, pid = server.folder, server.port, server.pid
        assert ask(server, "SET", "key", "value") == "+OK"
        server.kill()
        with pytest.raises(BackendUnavailableError):
            _ = server.pid
        server.start()
        assert server.port == port
        assert ask(server, "GET", "key").splitlines() == ["$5", "value"]
        server.restart()
        assert ask(server, "GET", "key").splitlines() == ["$5", "value"]
        pid = server.pid
    assert not folder.exists()
    assert not is_alive(pid)


def test_redis_asks_for_a_password():
    with RedisServer(password="secret") as server:
        assert ask(server, "GET", "key").startswith("-NOAUTH")


@pytest.mark.slow
def test_postgresql_keeps_what_it_acknowledged():
    with PostgreSQLServer() as server:
        folder, port = server.folder, server.port
        server.run("CREATE TABLE numbers AS SELECT 7 AS number")
        server.kill()
        server.start()
        assert server.port == port
        assert server.run("SELECT number FROM numbers") == "7"
        pid = server.pid
    assert not folder.exists()
    assert not is_alive(pid)


def test_postgresql_has_its_extensions(postgresql_server):
    names = "SELECT name FROM pg_available_extensions WHERE name IN ('vector', 'unaccent')"
    assert sorted(postgresql_server.run(names).splitlines()) == ["unaccent", "vector"]


def test_a_server_that_cannot_start_says_why():
    with pytest.raises(BackendUnavailableError, match="nonsense") as caught:
        RedisServer(nonsense="yes").__enter__()
    assert "RedisServer does not start" in str(caught.value)


def test_a_missing_package_is_named():
    class Missing(ValkeyServer):
        package = "no-such-package"

    with pytest.raises(MissingDriverError, match="pip install no-such-package"):
        Missing().__enter__()
