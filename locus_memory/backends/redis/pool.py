"""The connections of one event loop to one server.

redis-py makes them, speaks to the server and parses what it says. Lending them out is simpler
here than there, where it costs more than the command itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import ConnectionPool
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import ResponseError

__all__ = ["Pool"]


class Pool:
    """Connections that are made when they are needed, and lent to one call at a time.

    Whoever asks sees to it that no more than the wanted number of calls run at one moment.

    Args:
        maker: Knows how to make a connection.
    """

    def __init__(self, maker: ConnectionPool) -> None:
        self._maker = maker
        self._free: list[Any] = []
        self.connections: list[Any] = []
        """All of them, for as long as the pool is there."""

    async def ask(self, command: Sequence[Any]) -> Any:
        """Send a command and return the server's answer.

        Raises:
            RedisError: The connection broke, or the server refused.
        """
        connection = await self._take()
        try:
            await connection.send_packed_command(_packed(command))
            return await connection.read_response()
        finally:
            self._free.append(connection)

    async def ask_many(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands at once and return the server's answers, its refusals among them.

        Raises:
            ConnectionError: The connection broke.
        """
        connection = await self._take()
        try:
            await connection.send_packed_command(b"".join(map(_packed, commands)))
            return [await _answer(connection) for _ in commands]
        finally:
            self._free.append(connection)

    async def connect(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
        """
        self._free.append(await self._take())

    async def ask_one(self, *command: Any) -> Any:
        """Ask the server, as `ask` does."""
        return await self.ask(command)

    async def _take(self) -> Any:
        """Return a connection that is open and silent."""
        if self._free:
            connection = self._free.pop()
        else:
            connection = self._maker.make_connection()  # type: ignore[no-untyped-call]
            self.connections.append(connection)
        try:
            if not connection.is_connected:
                await connection.connect()
            elif connection.should_reconnect() or await _has_spoken(connection):
                await connection.disconnect()
                await connection.connect()
        except BaseException:
            self._free.append(connection)
            raise
        return connection

    async def close(self) -> None:
        """End all connections."""
        for connection in self.connections:
            await connection.disconnect()


async def _has_spoken(connection: Any) -> bool:
    """Whether the server said what nobody asked for: goodbye, as a rule."""
    try:
        return bool(await connection.can_read())
    except (LostError, OSError):
        return True


async def _answer(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _packed(command: Sequence[Any]) -> bytes:
    """Return a command as it is sent; the driver's own way grows with the square of its parts."""
    # As with the driver, the name may be of two words.
    words = (*str(command[0]).split(), *command[1:])
    parts = [b"*%d\r\n" % len(words)]
    for part in words:
        data = part if isinstance(part, bytes) else str(part).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)
