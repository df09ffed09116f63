"""The connections of one event loop to one server.

redis-py makes them, speaks to the server and parses what it says. Lending them out is done
here: calls that come together share a connection and a packet, for with small commands the
system's share of the work is larger than the server's.

A write that is cancelled before it is sent is never sent. Once it is on its way, its caller waits
for the answer all the same: a write that lands after a later one, which was acknowledged, would
undo it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio import ConnectionPool
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import MaxConnectionsError, ResponseError

from locus_memory._internal.cancellation import finished
from locus_memory._internal.running.live import POOLS, PoolUse
from locus_memory.backends.redis.connection.packets import Wait, packed, read_answers
from locus_memory.backends.waiting import WaitingLine

__all__ = ["Pool"]

_TOGETHER: Final = 8
"""Commands that share a packet: few enough that the server works while the next are made."""

_AT_ONCE: Final = 32 * 1024
"""Bytes that a silent connection takes without a wait, half of what makes asyncio wait."""


@dataclass(slots=True, eq=False)
class _Request:
    """Commands that wait to be sent.

    Attributes:
        data: The commands, packed.
        count: How many.
        answers: Where the answers go.
        delivery: The task that has sent it.
    """

    data: bytes
    count: int
    answers: asyncio.Future[list[Any]]
    delivery: asyncio.Task[Any] | None = None


class Pool:
    """Connections that are made when they are needed, and shared by what is asked at once.

    Args:
        factory: Knows how to make a connection.
        size: How many connections there may be.
        connect_timeout: Seconds to make one, what the server is told first included.
        acquire_timeout: Seconds that a command waits for one.
        command_timeout: Seconds that the server has for an answer; `None`: for ever.
    """

    def __init__(
        self,
        factory: ConnectionPool,
        *,
        size: int,
        connect_timeout: float,
        acquire_timeout: float,
        command_timeout: float | None,
    ) -> None:
        self.connections: list[Any] = []
        """All of them, for as long as the pool is there."""
        self._factory = factory
        self._size = size
        self._connect_timeout = connect_timeout
        self._acquire_timeout = acquire_timeout
        self._command_timeout = command_timeout
        self._loop = asyncio.get_running_loop()
        self._free: list[Any] = []
        self._queue: WaitingLine[_Request] = WaitingLine(acquire_timeout, self._waited_too_long)
        self._busy = 0
        self._sending = False
        self._carriers: set[asyncio.Task[None]] = set()
        self._silence = asyncio.Event()
        self._silence.set()
        POOLS.add(self, _name_of(factory))

    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        idle = sum(bool(each.is_connected) for each in tuple(self._free))
        return PoolUse(self._busy, idle, self._size, len(self._queue))

    async def connect(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
            TimeoutError: Not in time.
        """
        self._free.append(await self._take())

    async def ask(
        self, command: Sequence[Any], *, is_read: bool = False, wait: Wait | None = None
    ) -> Any:
        """Send a command and return the server's answer.

        Args:
            command: Its name and arguments.
            is_read: Whether it does no harm late: then a cancelled call ends at once.
            wait: What replicas have to confirm first.

        Raises:
            RedisError: The connection broke, the server refused, or too few replicas confirmed.
            TimeoutError: There was no answer in time.
        """
        (answer,) = await self.ask_many([command], is_read=is_read, wait=wait)
        if isinstance(answer, ResponseError):
            raise answer
        return answer

    async def ask_many(
        self,
        commands: Sequence[Sequence[Any]],
        *,
        is_read: bool = False,
        wait: Wait | None = None,
    ) -> list[Any]:
        """Send commands at once and return the server's answers, its refusals among them.

        Args:
            commands: Each as for `ask`.
            is_read: As for `ask`, of all of them.
            wait: As for `ask`, of all of them.

        Raises:
            RedisError: The connection broke.
            TimeoutError: There was no answer in time.
        """
        if not commands:
            # From Python 3.12 on, a connection that was sent nothing cannot be closed any more.
            return []
        data = b"".join(map(packed, commands))
        if wait is None:
            return await self._send(data, len(commands), is_read=is_read)
        *answers, confirmed = await self._send(data + wait.data, len(commands) + 1, is_read=is_read)
        wait.check(confirmed, answers)
        return answers

    async def ask_one(self, *command: Any) -> Any:
        """Ask the server what it is, as `ask` does."""
        return await self.ask(command, is_read=True)

    async def _send(self, data: bytes, count: int, *, is_read: bool) -> list[Any]:
        if self._busy or self._queue:
            return await self._send_later(data, count, is_read=is_read)
        self._enter()
        try:
            async with asyncio.timeout(self._command_timeout) as time:
                connection = await self._take()
                answers: list[Any] = []
                try:
                    await self._talk(connection, data, (answers, count), time, is_read=is_read)
                finally:
                    await self._give_back(connection, is_silent=len(answers) == count)
        finally:
            self._leave()
        return answers

    async def _send_later(self, data: bytes, count: int, *, is_read: bool) -> list[Any]:
        answers: asyncio.Future[list[Any]] = self._loop.create_future()
        request = _Request(data, count, answers)
        self._queue.join(request, answers)
        self._post()
        try:
            return await answers
        except asyncio.CancelledError:
            if request.delivery is not None and not is_read:
                await asyncio.wait([request.delivery])
            raise

    async def _talk(
        self,
        connection: Any,
        data: bytes,
        wanted: tuple[list[Any], int],
        time: asyncio.Timeout,
        *,
        is_read: bool,
    ) -> None:
        """Send commands and read the answers, which a cancelled write waits for."""
        if is_read:
            await connection.send_packed_command(data)
            await read_answers(connection, *wanted)
            return
        end = time.when()
        left = None if end is None else end - self._loop.time()
        if len(data) > _AT_ONCE:
            await finished(_exchanged(connection, data, wanted, left))
            return
        # Without a task of its own, for it takes as long as the rest.
        await connection.send_packed_command(data)
        try:
            await read_answers(connection, *wanted)
        except asyncio.CancelledError:
            if not time.expired():
                left = None if end is None else end - self._loop.time()
                await finished(_exchanged(connection, b"", wanted, left))
            raise

    async def _give_back(self, connection: Any, *, is_silent: bool) -> None:
        """Let others use a connection; on a new one if its answers are still to come."""
        if not is_silent:
            await connection.disconnect(nowait=True)
        self._free.append(connection)

    def _post(self) -> None:
        """Send what waits once everybody who runs now has said what they want."""
        if self._queue and self._busy < self._size and not self._sending:
            self._sending = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._sending = False
        while self._busy < self._size and (requests := self._next()):
            self._enter()
            delivery = self._loop.create_task(self._deliver(requests))
            self._carriers.add(delivery)
            delivery.add_done_callback(self._carriers.discard)
        if not self._queue and not self._busy:
            # Nobody wants an answer any more.
            self._silence.set()

    def _next(self) -> list[_Request]:
        requests: list[_Request] = []
        count = 0
        while count < _TOGETHER and (request := self._queue.take()) is not None:
            requests.append(request)
            count += request.count
        return requests

    async def _deliver(self, requests: list[_Request]) -> None:
        """Send requests over one connection and bring the answers back."""
        try:
            async with asyncio.timeout(self._command_timeout):
                await self._exchange(requests)
        except Exception as error:  # noqa: BLE001 - it is for whoever asked
            for request in requests:
                if not request.answers.done():
                    request.answers.set_exception(error)
        finally:
            for request in requests:
                request.answers.cancel()
            self._leave()

    async def _exchange(self, requests: list[_Request]) -> None:
        connection = await self._take()
        # Whoever asked may have been cancelled meanwhile.
        wanted = [request for request in requests if not request.answers.done()]
        heard = 0
        try:
            for request in wanted:
                request.delivery = asyncio.current_task()
            if wanted:
                await connection.send_packed_command(b"".join(each.data for each in wanted))
            for request in wanted:
                answers: list[Any] = []
                await read_answers(connection, answers, request.count)
                heard += 1
                if not request.answers.done():
                    request.answers.set_result(answers)
        finally:
            await self._give_back(connection, is_silent=heard == len(wanted))

    def _enter(self) -> None:
        self._busy += 1
        self._silence.clear()

    def _leave(self) -> None:
        self._busy -= 1
        if self._queue:
            self._post()
        elif not self._busy:
            self._silence.set()

    def _waited_too_long(self) -> MaxConnectionsError:
        return MaxConnectionsError(
            f"all {self._size} connections stayed busy for {self._acquire_timeout:g} s; "
            "raise pool_size"
        )

    async def _take(self) -> Any:
        """Return a connection that is open and silent."""
        if self._free:
            connection = self._free.pop()
        else:
            connection = self._factory.make_connection()  # type: ignore[no-untyped-call]
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
        self._queue.end()
        for connection in self.connections:
            await connection.disconnect()


def _name_of(factory: ConnectionPool) -> str:
    """Return the name of the pool of a server, without a password."""
    options = factory.connection_kwargs
    place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"redis {place}"


async def _has_spoken(connection: Any) -> bool:
    """Whether the server said what nobody asked for: goodbye, as a rule."""
    try:
        return bool(await connection.can_read())
    except (LostError, OSError):
        return True


async def _exchanged(
    connection: Any, data: bytes, wanted: tuple[list[Any], int], left: float | None
) -> None:
    """Send commands, if there are any, and read the answers in so many seconds."""
    async with asyncio.timeout(left):
        if data:
            await connection.send_packed_command(data)
        await read_answers(connection, *wanted)
