"""redis-py's own clients, where they are needed: for a cluster, and where the caller has one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import MaxConnectionsError, NoPermissionError

from locus_memory._internal.cancellation import finished

__all__ = ["Client", "Driver"]

T = TypeVar("T")

Client = Redis | RedisCluster


class Driver:
    """A client of redis-py, asked as a `Pool` is.

    Args:
        client: The client.
        owned: Whether it is closed here.
        size: How many calls may run at one moment, fewer if the client has fewer connections.
        connect_timeout: Seconds to make a connection.
        acquire_timeout: Seconds that a call waits for its turn.
        command_timeout: Seconds that the server has for an answer; `None`: for ever.
    """

    def __init__(
        self,
        client: Client,
        *,
        owned: bool,
        size: int,
        connect_timeout: float,
        acquire_timeout: float,
        command_timeout: float | None,
    ) -> None:
        self.client = client
        self.owned = owned
        self._size = min(size, _most_connections(client))
        self._turns = asyncio.Semaphore(self._size)
        self._connect_timeout = connect_timeout
        self._acquire_timeout = acquire_timeout
        self._command_timeout = command_timeout

    @property
    def connections(self) -> list[Any]:
        """All that the client has made; nothing public lists them."""
        if isinstance(self.client, RedisCluster):
            manager = self.client.nodes_manager
            # A node may be in both, or be two with one name, which count as equal.
            listed: list[Any] = [*manager.nodes_cache.values(), *manager.startup_nodes.values()]
            nodes = {id(node): node for node in listed}.values()
            return [each for node in nodes for each in node._connections]  # noqa: SLF001
        pool: Any = self.client.connection_pool
        return [*pool._available_connections, *pool._in_use_connections]  # noqa: SLF001

    async def ask(self, command: Sequence[Any], *, is_read: bool = False) -> Any:
        """Send a command and return what redis-py makes of the answer.

        Args:
            command: Its name and arguments.
            is_read: Whether it does no harm late: then a cancelled call ends at once.
        """
        return await self._in_turn(lambda: self._execute(command), is_read=is_read)

    async def _execute(self, command: Sequence[Any]) -> Any:
        return await self.client.execute_command(*command)

    async def ask_many(
        self, commands: Sequence[Sequence[Any]], *, is_read: bool = False
    ) -> list[Any]:
        """Send commands at once and return what redis-py makes of the answers and refusals.

        Args:
            commands: Each as for `ask`.
            is_read: As for `ask`, of all of them.
        """
        return await self._in_turn(lambda: self._execute_many(commands), is_read=is_read)

    async def _execute_many(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        async with self.client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = await pipe.execute(raise_on_error=False)
        return answers

    async def connect(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
            TimeoutError: Not in time.
        """
        async with asyncio.timeout(self._connect_timeout + (self._command_timeout or 0)):
            if isinstance(self.client, RedisCluster):
                await self.client.initialize()
            else:
                with suppress(NoPermissionError):
                    await self.ask(("PING",), is_read=True)

    async def ask_one(self, *command: Any) -> Any:
        """Ask one server, any of them if it is a cluster, whatever the command's keys."""
        if isinstance(self.client, RedisCluster):
            node = self.client.get_default_node()
            return await self._in_turn(lambda: node.execute_command(*command), is_read=True)
        return await self.ask(command, is_read=True)

    async def _in_turn(self, work: Callable[[], Awaitable[T]], *, is_read: bool) -> T:
        """Run `work` when it is its turn; a write goes on to its end though one is cancelled."""
        await self._wait_for_turn()
        if is_read:
            try:
                return await self._run(work)
            finally:
                self._turns.release()
        task = asyncio.ensure_future(self._run(work))
        # Not in the task itself: where the loop ends, it may never begin.
        task.add_done_callback(lambda _: self._turns.release())
        return await finished(task)

    async def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        async with asyncio.timeout(self._command_timeout):
            return await work()

    async def _wait_for_turn(self) -> None:
        try:
            async with asyncio.timeout(self._acquire_timeout):
                await self._turns.acquire()
        except TimeoutError:
            raise MaxConnectionsError(
                f"all {self._size} connections stayed busy for {self._acquire_timeout:g} s; "
                "raise pool_size"
            ) from None

    async def drain(self) -> None:
        """Wait until everything that was asked is answered."""
        for _ in range(self._size):
            await self._turns.acquire()

    async def close(self) -> None:
        """Close the client, unless it is the caller's."""
        if not self.owned:
            return
        await self.client.aclose()
        if isinstance(self.client, RedisCluster):
            # After a failure it takes itself for closed, with its sockets open.
            await self.client.nodes_manager.aclose()
            await self.client.nodes_manager.aclose("startup_nodes")

    def abandon(self) -> None:
        """Do not warn of what was left open, for it is not any more."""
        if isinstance(self.client, RedisCluster):
            client: Any = self.client
            client._initialize = True  # noqa: SLF001 - it takes itself for open otherwise


def _most_connections(client: Client) -> int:
    """Return how many connections a client makes, to each server if it is of a cluster."""
    if isinstance(client, Redis):
        return client.connection_pool.max_connections
    nodes = client.nodes_manager.startup_nodes.values()
    return min((node.max_connections for node in nodes), default=1)
