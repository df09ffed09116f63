"""The connections of one event loop to one server.

redis-py makes them, speaks to the server and parses what it says. Lending them out is done
here: calls that come together share a connection and a packet, for with small commands the
system's share of the work is larger than the server's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import ConnectionPool
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import MaxConnectionsError, ResponseError

__all__ = ["Pool"]

_TOGETHER: Final = 8
"""Commands that share a packet: few enough that the server works while the next are made."""


@dataclass(frozen=True, slots=True)
class _Letter:
    """Commands that wait to be sent.

    Attributes:
        data: The commands, packed.
        count: How many.
        answers: Where the answers go.
        deadline: When to give up waiting, in the loop's time.
    """

    data: bytes
    count: int
    answers: asyncio.Future[list[Any]]
    deadline: float


class Pool:
    """Connections that are made when they are needed, and shared by what is asked at once.

    Args:
        maker: Knows how to make a connection.
        size: How many connections there may be.
        connect_timeout: Seconds to make one, what the server is told first included.
        acquire_timeout: Seconds that a command waits for one.
        command_timeout: Seconds that the server has for an answer; `None`: for ever.
    """

    def __init__(
        self,
        maker: ConnectionPool,
        *,
        size: int,
        connect_timeout: float,
        acquire_timeout: float,
        command_timeout: float | None,
    ) -> None:
        self.connections: list[Any] = []
        """All of them, for as long as the pool is there."""
        self._maker = maker
        self._size = size
        self._connect_timeout = connect_timeout
        self._acquire_timeout = acquire_timeout
        self._command_timeout = command_timeout
        self._loop = asyncio.get_running_loop()
        self._free: list[Any] = []
        self._queue: deque[_Letter] = deque()
        self._busy = 0
        self._sending = False
        self._carriers: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._silence = asyncio.Event()
        self._silence.set()

    async def connect(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
            TimeoutError: Not in time.
        """
        self._free.append(await self._take())

    async def ask(self, command: Sequence[Any]) -> Any:
        """Send a command and return the server's answer.

        Raises:
            RedisError: The connection broke, or the server refused.
            TimeoutError: There was no answer in time.
        """
        (answer,) = await self._send(_packed(command), 1)
        if isinstance(answer, ResponseError):
            raise answer
        return answer

    async def ask_many(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send commands at once and return the server's answers, its refusals among them.

        Raises:
            RedisError: The connection broke.
            TimeoutError: There was no answer in time.
        """
        if not commands:
            # From Python 3.12 on, a connection that was sent nothing cannot be closed any more.
            return []
        return await self._send(b"".join(map(_packed, commands)), len(commands))

    async def ask_one(self, *command: Any) -> Any:
        """Ask the server, as `ask` does."""
        return await self.ask(command)

    async def _send(self, data: bytes, count: int) -> list[Any]:
        if self._busy or self._queue:
            answers: asyncio.Future[list[Any]] = self._loop.create_future()
            deadline = self._loop.time() + self._acquire_timeout
            self._queue.append(_Letter(data, count, answers, deadline))
            self._post()
            if self._alarm is None:
                self._alarm = self._loop.call_at(deadline, self._give_up)
            return await answers
        self._enter()
        try:
            async with asyncio.timeout(self._command_timeout):
                connection = await self._take()
                try:
                    await connection.send_packed_command(data)
                    return [await _answer(connection) for _ in range(count)]
                finally:
                    self._free.append(connection)
        finally:
            self._leave()

    def _post(self) -> None:
        """Send what waits once everybody who runs now has said what they want."""
        if self._queue and self._busy < self._size and not self._sending:
            self._sending = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._sending = False
        while self._busy < self._size and (letters := self._next()):
            self._enter()
            carrier = self._loop.create_task(self._carry(letters))
            self._carriers.add(carrier)
            carrier.add_done_callback(self._carriers.discard)
        if not self._queue and not self._busy:
            # Nobody wants an answer any more.
            self._silence.set()

    def _next(self) -> list[_Letter]:
        letters: list[_Letter] = []
        count = 0
        while self._queue and count < _TOGETHER:
            letter = self._queue.popleft()
            # Whoever asked may have been cancelled.
            if not letter.answers.done():
                letters.append(letter)
                count += letter.count
        return letters

    async def _carry(self, letters: list[_Letter]) -> None:
        """Send letters over one connection and bring the answers back."""
        try:
            async with asyncio.timeout(self._command_timeout):
                await self._exchange(letters)
        except Exception as error:  # noqa: BLE001 - it is for whoever asked
            for letter in letters:
                if not letter.answers.done():
                    letter.answers.set_exception(error)
        finally:
            for letter in letters:
                letter.answers.cancel()
            self._leave()

    async def _exchange(self, letters: list[_Letter]) -> None:
        connection = await self._take()
        try:
            await connection.send_packed_command(b"".join(each.data for each in letters))
            for letter in letters:
                answers = [await _answer(connection) for _ in range(letter.count)]
                if not letter.answers.done():
                    letter.answers.set_result(answers)
        finally:
            self._free.append(connection)

    def _enter(self) -> None:
        self._busy += 1
        self._silence.clear()

    def _leave(self) -> None:
        self._busy -= 1
        if self._queue:
            self._post()
        elif not self._busy:
            self._silence.set()

    def _give_up(self) -> None:
        """Refuse what has waited for too long."""
        self._alarm = None
        now = self._loop.time()
        while self._queue and self._queue[0].deadline <= now:
            letter = self._queue.popleft()
            if not letter.answers.done():
                letter.answers.set_exception(
                    MaxConnectionsError(
                        f"all {self._size} connections stayed busy for "
                        f"{self._acquire_timeout:g} s; raise pool_size"
                    )
                )
        if self._queue:
            self._alarm = self._loop.call_at(self._queue[0].deadline, self._give_up)

    async def _take(self) -> Any:
        """Return a connection that is open and silent."""
        if self._free:
            connection = self._free.pop()
        else:
            connection = self._maker.make_connection()  # type: ignore[no-untyped-call]
            self.connections.append(connection)
        try:
            if not connection.is_connected:
                await self._connect(connection)
            elif connection.should_reconnect() or await _has_spoken(connection):
                await connection.disconnect()
                await self._connect(connection)
        except BaseException:
            self._free.append(connection)
            raise
        return connection

    async def _connect(self, connection: Any) -> None:
        try:
            # The driver's own bound ends before the password and the database are sent.
            async with asyncio.timeout(self._connect_timeout):
                await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise

    async def drain(self) -> None:
        """Wait until everything that was asked is answered."""
        await self._silence.wait()

    async def close(self) -> None:
        """End all connections."""
        if self._alarm is not None:
            self._alarm.cancel()
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
