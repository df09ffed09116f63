"""A client of redis-py that the caller has, asked as a `Pool` is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from redis.asyncio import Redis, RedisCluster
from redis.exceptions import MaxConnectionsError, NoPermissionError

from locus_memory._internal.cancellation import finished
from locus_memory.backends.redis.connection.packets import Wait

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
        pool: Any = cast("Redis", self.client).connection_pool
        return [*pool._available_connections, *pool._in_use_connections]  # noqa: SLF001

    async def ask(
        self, command: Sequence[Any], *, is_read: bool = False, wait: Wait | None = None
    ) -> Any:
        """Send a command and return what redis-py makes of the answer.

        Args:
            command: Its name and arguments.
            is_read: Whether it does no harm late: then a cancelled call ends at once.
            wait: What replicas have to confirm first.
        """
        return await self._in_turn(lambda: self._execute(command, wait), is_read=is_read)

    async def _execute(self, command: Sequence[Any], wait: Wait | None) -> Any:
        if wait is None:
            return await self.client.execute_command(*command)
        (answer,) = await self._execute_many([command], wait)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_many(
        self,
        commands: Sequence[Sequence[Any]],
        *,
        is_read: bool = False,
        wait: Wait | None = None,
    ) -> list[Any]:
        """Send commands at once and return what redis-py makes of the answers and refusals.

        Args:
            commands: Each as for `ask`.
            is_read: As for `ask`, of all of them.
            wait: As for `ask`, of all of them.
        """
        return await self._in_turn(lambda: self._execute_many(commands, wait), is_read=is_read)

    async def _execute_many(
        self, commands: Sequence[Sequence[Any]], wait: Wait | None
    ) -> list[Any]:
        """Send commands over one connection."""
        async with self.client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            if wait is not None:
                pipe.execute_command(*wait.command)
            answers: list[Any] = await pipe.execute(raise_on_error=False)
        if wait is not None:
            wait.check(answers.pop(), answers)
        return answers

    async def connect(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
            TimeoutError: Not in time.
        """
        async with asyncio.timeout(self._connect_timeout + (self._command_timeout or 0)):
            await self._connect()

    async def _connect(self) -> None:
        with suppress(NoPermissionError):
            await self.ask(("PING",), is_read=True)

    async def ask_one(self, *command: Any) -> Any:
        """Ask the server what it is, as `ask` does."""
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
        if self.owned:
            await self.client.aclose()

    def abandon(self) -> None:
        """Do not warn of what was left open, for it is not any more."""


def _most_connections(client: Client) -> int:
    """Return how many connections a client makes, to each server if it is of a cluster."""
    if isinstance(client, Redis):
        return client.connection_pool.max_connections
    nodes = client.nodes_manager.startup_nodes.values()
    return min((node.max_connections for node in nodes), default=1)
