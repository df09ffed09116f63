"""redis-py's client of one event loop: its bounds, its end, and what is left of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import MaxConnectionsError

__all__ = ["Client", "LoopClient", "Maker"]

Client = Redis | RedisCluster

_IDLE: Final = 0.05
"""Seconds without a command after which the loop looks for connections that ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """How a client is made; its `repr` would show the password.

    Attributes:
        url: As the driver reads it.
        pool_size: Connections a loop, and a node of a cluster.
        connect_timeout: Seconds.
    """

    url: str
    pool_size: int
    connect_timeout: float

    def __repr__(self) -> str:
        return "Maker(...)"

    def make(self, *, cluster: bool) -> Client:
        """Return a new client, which connects when it is used.

        It never sends a command twice on its own, for it cannot know which of them it may.

        Raises:
            RedisClusterException: The url has what a cluster does not.
        """
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": None,
            "socket_connect_timeout": self.connect_timeout,
            "max_connections": self.pool_size,
            "driver_info": None,
        }
        if cluster:
            return RedisCluster.from_url(self.url, **options)
        return Redis.from_url(self.url, **options)


class LoopClient:
    """A client together with the event loop that its connections belong to.

    Made and used inside that loop. When the loop shuts down its asynchronous generators, as
    `asyncio.run` does at its end, the client is closed in good order.

    Args:
        client: The client.
        owned: Whether it is closed here.
        size: How many commands may run at one moment.
        acquire_timeout: Seconds that a command waits for its turn.
    """

    def __init__(self, client: Client, *, owned: bool, size: int, acquire_timeout: float) -> None:
        self.client = client
        self.ready = False
        self.opening = asyncio.Lock()
        self._owned = owned
        self._size = min(size, _bound(client))
        self._turns = asyncio.Semaphore(self._size)
        self._acquire_timeout = acquire_timeout
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._ended = False
        self._guard = self._until_the_loop_ends()

    async def start(self) -> None:
        """Let the loop know that there is something to close."""
        await anext(self._guard)

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncGenerator[Client]:
        """Wait for a connection to be free and give the client.

        Raises:
            MaxConnectionsError: None became free in time.
        """
        await self._acquire()
        try:
            if self._loop.time() - self._used > _IDLE:
                await self._look()
            yield self.client
        finally:
            self._used = self._loop.time()
            self._turns.release()

    async def _acquire(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(self._acquire_timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise MaxConnectionsError(
                f"all {self._size} connections stayed busy for {self._acquire_timeout:g} s; "
                "raise pool_size"
            ) from None

    async def _look(self) -> None:
        """Let the loop see which connections the server ended while nobody used them."""
        # The first pass reads the sockets, the second runs what they have to say.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if isinstance(self.client, RedisCluster):
            # The client of a cluster, unlike the other one, does not look before it sends.
            for connection in _connections(self.client):
                reader = connection._reader  # noqa: SLF001 - nothing public tells
                if reader is not None and reader.at_eof():
                    connection.mark_for_reconnect()

    async def forget_connections(self) -> None:
        """Make every later command connect anew, and so find the server that is in charge."""
        for connection in _connections(self.client):
            connection.mark_for_reconnect()
        if isinstance(self.client, Redis):
            # This one looks at the mark only when a connection comes back.
            await self.client.connection_pool.disconnect(inuse_connections=False)

    async def replace(self, client: Client) -> None:
        """Go on with another client; the one before is closed."""
        before, self.client = self.client, client
        await _close(before)

    async def close(self, patience: float | None) -> None:
        """Wait for the commands that run, for so many seconds, and close the client."""
        if self._ended:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                for _ in range(self._size):
                    await self._turns.acquire()
        if not self._ended:
            await self._guard.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._ended = True
            if self._owned:
                await _close(self.client)

    def abandon(self) -> None:
        """Release the sockets of a client whose loop is closed, so that it cannot be awaited."""
        self._ended = True
        if self._owned:
            for connection in _connections(self.client):
                _sever(connection)
            client: Any = self.client
            if isinstance(self.client, RedisCluster):
                client._initialize = True  # noqa: SLF001 - it takes itself for open otherwise


def _bound(client: Client) -> int:
    """Return how many connections the client itself allows."""
    if isinstance(client, RedisCluster):
        return int(client.connection_kwargs["max_connections"] or 1)
    return client.connection_pool.max_connections


def _connections(client: Client) -> list[Any]:
    """Return every connection that a client has made; nothing public lists them."""
    if isinstance(client, RedisCluster):
        manager = client.nodes_manager
        nodes: set[Any] = {*manager.nodes_cache.values(), *manager.startup_nodes.values()}
        return [each for node in nodes for each in node._connections]  # noqa: SLF001
    pool: Any = client.connection_pool
    return [*pool._available_connections, *pool._in_use_connections]  # noqa: SLF001


async def _close(client: Client) -> None:
    if not isinstance(client, RedisCluster):
        await client.aclose()
        return
    await client.aclose()
    # Between a failure and the next command it takes itself for closed, with its sockets open.
    await client.nodes_manager.aclose()
    await client.nodes_manager.aclose("startup_nodes")


def _sever(connection: Any) -> None:
    """Close the socket of a connection without its event loop, which is closed."""
    writer = connection._writer  # noqa: SLF001 - what closes it needs the loop
    connection._reader = connection._writer = None  # noqa: SLF001
    transport: Any = None if writer is None else writer.transport
    while transport is not None:
        with contextlib.suppress(RuntimeError):
            transport.abort()
        sock = getattr(transport, "_sock", None)
        if sock is not None:
            sock.close()
            transport._sock = None  # noqa: SLF001 - or it warns of what is closed by now
        # TLS is a transport around the one that has the socket.
        transport = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
