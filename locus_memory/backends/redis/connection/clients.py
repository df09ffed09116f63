"""The way to the server from one event loop: how it is made, its bounds, and its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from redis.asyncio import ConnectionPool, Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.exceptions import TimeoutError as LateError

from locus_memory.backends.loops import sever, until_the_loop_ends
from locus_memory.backends.redis.connection.address import RedisAddress
from locus_memory.backends.redis.connection.cluster import ClusterDriver
from locus_memory.backends.redis.connection.driver import Client, Driver
from locus_memory.backends.redis.connection.pool import Pool
from locus_memory.backends.redis.connection.sentinel import sentinel_pool

__all__ = ["LONGEST_CLOSE", "ClientFactory", "Link", "LoopClient"]

T = TypeVar("T")

Link = Pool | Driver

LONGEST_CLOSE: Final = 10.0
"""Seconds that closing waits for the commands that run."""

_IDLE: Final = 0.05
"""Seconds without a command after which the loop looks for connections that ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFactory:
    """How a link is made, in the event loop that it is for; its `repr` has no password.

    Attributes:
        address: Where it leads to.
        pool_size: Connections a loop, and a node of a cluster.
        connect_timeout: Seconds.
        acquire_timeout: Seconds that a command waits for a connection.
        command_timeout: Seconds that the server has for an answer; `None`: for ever.
    """

    address: RedisAddress
    pool_size: int
    connect_timeout: float
    acquire_timeout: float
    command_timeout: float | None

    def make(self, *, cluster: bool) -> Link:
        """Return a new link, which connects when it is used.

        It never sends a command twice on its own, for it cannot know which of them it may.

        Raises:
            RedisClusterException: The url has what a cluster does not.
        """
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": None,
            "socket_connect_timeout": self._limit,
            "max_connections": self.pool_size,
            "driver_info": None,
        }
        first, *others = self.address.urls
        if cluster:
            hosts = self.address.hosts[1:] if others else []
            nodes = [ClusterNode(host, port) for host, port in hosts]
            client = RedisCluster.from_url(first, startup_nodes=nodes, **options)
            self._bound_greetings(client)
            return self.wrap(client, owned=True)
        if self.address.kind == "sentinel":
            factory: ConnectionPool = sentinel_pool(self.address, options)
        else:
            factory = ConnectionPool.from_url(first, **options)
        return Pool(
            factory,
            size=self.pool_size,
            connect_timeout=self.connect_timeout,
            acquire_timeout=self.acquire_timeout,
            command_timeout=self.command_timeout,
        )

    @property
    def _limit(self) -> float:
        """Seconds for one of several servers, so that the others are tried in time."""
        # The primary that sentinels name is one more.
        several = self.address.kind == "sentinel"
        return self.connect_timeout / (len(self.address.hosts) + several)

    def _bound_greetings(self, client: RedisCluster) -> None:
        """Let no server take for ever over a first answer, which the driver has no bound for."""

        async def greet(connection: Any) -> None:
            try:
                async with asyncio.timeout(self._limit):
                    await connection.on_connect()
                    # Without a password, nobody has spoken yet.
                    await connection.send_command("PING")
                    with contextlib.suppress(NoPermissionError):
                        await connection.read_response()
            except TimeoutError:
                # The driver looks for another server after an error of its own.
                raise LateError("no answer in time") from None

        manager = client.nodes_manager
        factories: list[Any] = [manager, *manager.startup_nodes.values()]
        for known in factories:
            known.connection_kwargs["redis_connect_func"] = greet

    def wrap(self, client: Client, *, owned: bool) -> Driver:
        """Return the link over a client that there is."""
        options: dict[str, Any] = {
            "owned": owned,
            "size": self.pool_size,
            "connect_timeout": self.connect_timeout,
            "acquire_timeout": self.acquire_timeout,
            "command_timeout": self.command_timeout,
        }
        if isinstance(client, RedisCluster):
            return ClusterDriver(client, **options)
        return Driver(client, **options)


class LoopClient:
    """A link together with the event loop that its connections belong to.

    Made and used inside that loop. When the loop shuts down its asynchronous generators, as
    `asyncio.run` does at its end, the link is closed in good order.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._ended = False
        self._guard = until_the_loop_ends(self._end)

    async def start(self) -> None:
        """Let the loop know that there is something to close."""
        await anext(self._guard)

    async def use(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Run `work` over connections that are alive, as far as one can know."""
        if self._loop.time() - self._used > _IDLE:
            await self._look()
        try:
            return await work(self.link)
        finally:
            self._used = self._loop.time()

    async def _look(self) -> None:
        """Let the loop see which connections the server ended while nobody used them."""
        # The first pass reads the sockets, the second runs what they have to say.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if isinstance(self.link, ClusterDriver):
            # The client of a cluster does not look before it sends.
            for connection in self.link.connections:
                reader = connection._reader  # noqa: SLF001 - nothing public tells
                if reader is not None and reader.at_eof():
                    connection.mark_for_reconnect()

    async def forget_connections(self) -> None:
        """Make every later command reconnect, and so find the server that is in charge."""
        for connection in self.link.connections:
            connection.mark_for_reconnect()
        if isinstance(self.link, Driver) and isinstance(self.link.client, Redis):
            # This one looks at the mark only when a connection comes back.
            await self.link.client.connection_pool.disconnect(inuse_connections=False)

    async def replace(self, link: Link) -> None:
        """Go on with another link; the one before is closed."""
        before, self.link = self.link, link
        await before.close()

    def has_ended(self) -> bool:
        """Whether the link is closed, since its event loop ended or it was told to."""
        return self._ended

    async def close(self) -> None:
        """Wait for the calls that run, but not for ever, and close the link."""
        if self._ended:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_CLOSE):
                await self.link.drain()
        if not self._ended:
            await self._guard.aclose()

    async def _end(self) -> None:
        self._ended = True
        await self.link.close()

    def abandon(self) -> None:
        """Release the sockets of a link whose loop is closed, so that it cannot be awaited."""
        self._ended = True
        if isinstance(self.link, Driver):
            if not self.link.owned:
                return
            self.link.abandon()
        for connection in self.link.connections:
            _sever(connection)


def _sever(connection: Any) -> None:
    """Close the socket of a connection without its event loop, which is closed."""
    writer = connection._writer  # noqa: SLF001 - what closes it needs the loop
    connection._reader = connection._writer = None  # noqa: SLF001
    sever(None if writer is None else writer.transport)
