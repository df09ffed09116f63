"""The connections of one event loop: redis-py's own pool, with our limits and our end.

A write that is cancelled before it is sent is never sent. Once it is on its way, its caller waits
for the answer all the same: a write that lands after a later one, which was acknowledged, would
undo it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from hiredis import pack_command
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import SSLConnection, parse_url
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel, SentinelConnectionPool
from redis.exceptions import ConnectionError as LostError
from redis.exceptions import (
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as LateError
from typing_extensions import override

from locus_memory._internal.cancellation import finished, kept
from locus_memory._internal.running.live import PoolUse
from locus_memory.backends.loops import LoopClient, Turns, sever
from locus_memory.backends.redis.connection.address import RedisAddress
from locus_memory.backends.redis.options import RedisOptions

__all__ = ["Link", "UnconfirmedError", "greeting", "make_ready", "pool_of"]

_AT_ONCE: Final = 32 * 1024
"""Bytes that a silent connection takes without a wait, half of what makes asyncio wait."""

_IDLE: Final = 0.05
"""Seconds without a command after which the loop looks for connections that ended."""


class UnconfirmedError(RedisError):
    """A write that is done, but that too few replicas have."""


class Link(LoopClient):
    """The way to a server from one event loop; made, started and used in that loop.

    When the loop shuts down its asynchronous generators, as `asyncio.run` does at its end, the
    connections are closed in good order.

    Args:
        pool: The pool of redis-py.
        place: What may be shown of the server.
        options: The limits; `pool_size` is how many calls may run at one moment.
        owned: Whether the pool is closed here.
    """

    def __init__(
        self, pool: ConnectionPool, place: str, options: RedisOptions, *, owned: bool
    ) -> None:
        # The driver's own types are incomplete.
        self._pool: Any = pool
        self._options = options
        self._busy = 0
        turns = Turns(
            min(options.pool_size, self._most()), options.acquire_timeout, f"redis {place}"
        )
        super().__init__(turns, f"redis {place}", owned=owned)

    def _most(self) -> int:
        """Return how many connections the driver makes."""
        return int(self._pool.max_connections)

    @property
    def connections(self) -> list[Any]:
        """All that the driver has made; nothing public lists them."""
        pool = self._pool
        return [*pool._available_connections, *pool._in_use_connections]  # noqa: SLF001

    @override
    def use(self) -> PoolUse:
        """Return the use of the connections now."""
        idle = sum(bool(each.is_connected) for each in self.connections) - self._busy
        return PoolUse(self._busy, max(idle, 0), self._turns.size, self._turns.waiting)

    @override
    async def start(self) -> None:
        """Connect, or find out why that cannot be.

        Raises:
            RedisError: It cannot.
            TimeoutError: Not in time.
        """
        await super().start()
        seconds = self._options.connect_timeout + (self._options.command_timeout or 0)
        async with asyncio.timeout(seconds):
            await self._connect()

    async def _connect(self) -> None:
        with contextlib.suppress(NoPermissionError):
            await self.ask_one("PING")

    async def ask_one(self, *command: Any) -> Any:
        """Ask the server, or any of a cluster, what it is.

        Raises:
            RedisError: The connection broke, or the server refused.
            TimeoutError: There was no answer in time.
        """
        (answer,) = await self.ask([command], is_read=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask(
        self,
        commands: Sequence[Sequence[Any]],
        *,
        is_read: bool = False,
        confirmed: bool = False,
    ) -> list[Any]:
        """Send commands at once and return the answers, refusals among them.

        Args:
            commands: The name and the arguments of each.
            is_read: Whether they do no harm late: then a cancelled call ends at once.
            confirmed: Whether replicas have to confirm them first, as many as the options say.

        Raises:
            RedisError: The connection broke, or too few replicas confirmed.
            TimeoutError: There was no answer in time.
        """
        if self._loop.time() - self._used > _IDLE:
            # The first pass reads the sockets, the second runs what they have to say: that the
            # server ended them while nobody used them.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await self._turns.take()
        self._busy += 1
        try:
            return await self._execute(commands, is_read=is_read, confirmed=confirmed)
        finally:
            self._busy -= 1
            self._turns.release()
            self._used = self._loop.time()

    async def _execute(
        self, commands: Sequence[Sequence[Any]], *, is_read: bool, confirmed: bool
    ) -> list[Any]:
        """Send commands over one connection."""
        async with asyncio.timeout(self._options.connect_timeout):
            connection = await self._pool.get_connection()
        try:
            await make_ready(connection)
            return await self._exchange(connection, commands, is_read=is_read, confirmed=confirmed)
        finally:
            await self._pool.release(connection)

    async def _exchange(
        self,
        connection: Any,
        commands: Sequence[Sequence[Any]],
        *,
        is_read: bool,
        confirmed: bool,
    ) -> list[Any]:
        """Send commands and read the answers, which a cancelled write waits for.

        `WAIT` answers when so many replicas have what was written before it over its connection:
        https://redis.io/docs/latest/commands/wait/
        """
        replicas = self._options.wait_replicas if confirmed else 0
        wait = ("WAIT", replicas, max(1, round(self._options.wait_timeout * 1000)))
        sent = [*commands, wait] if replicas else commands
        words: Any = ((*each[0].split(), *each[1:]) for each in sent)
        data = b"".join(map(pack_command, words))
        seconds = self._options.command_timeout
        end = None if seconds is None else self._loop.time() + seconds
        answers: list[Any] = []
        is_large = len(data) > _AT_ONCE and not is_read
        talk = _talk(connection, data, answers, len(sent), end)
        try:
            await (finished(_unasked(talk)) if is_large else talk)
        except asyncio.CancelledError:
            # Without a task of its own until now, for that takes as long as the rest.
            if not is_read and not is_large:
                with contextlib.suppress(Exception):
                    await finished(_unasked(_talk(connection, b"", answers, len(sent), end)))
            raise
        finally:
            if len(answers) < len(sent):
                await connection.disconnect(nowait=True)
        if replicas:
            self._check(answers.pop(), answers)
        return answers

    def _check(self, confirmed: Any, answers: Sequence[Any]) -> None:
        """Refuse to acknowledge what too few replicas have; what was refused wrote nothing."""
        if all(isinstance(answer, Exception) for answer in answers):
            return
        if isinstance(confirmed, Exception):
            raise confirmed
        if confirmed < self._options.wait_replicas:
            raise UnconfirmedError(
                f"the write is done, but within {self._options.wait_timeout:g} s {confirmed} of "
                f"{self._options.wait_replicas} replicas confirmed it, so a failover may lose it"
            )

    async def forget_connections(self) -> None:
        """Make every later command reconnect, and so find the server that is in charge."""
        for connection in self.connections:
            connection.mark_for_reconnect()

    @override
    async def _shut(self) -> None:
        await self._pool.aclose()

    def abandon(self) -> None:
        """Release the sockets of a link whose loop is closed, so that it cannot be awaited."""
        self._ended = True
        for connection in self.connections if self._owned else ():
            writer = connection._writer  # noqa: SLF001 - what closes it needs the loop
            connection._reader = connection._writer = None  # noqa: SLF001
            sever(None if writer is None else writer.transport)


async def make_ready(connection: Any) -> None:
    """Make a connection again that is marked, or that the server ended, and connect a new one.

    The driver does not look where it takes notifications of maintenance.
    """
    if connection.is_connected and (connection.should_reconnect() or await _has_spoken(connection)):
        await connection.disconnect()
    if not connection.is_connected:
        await connection.connect()


async def _has_spoken(connection: Any) -> bool:
    """Whether the server said what nobody asked for: goodbye, as a rule."""
    try:
        return bool(await connection.can_read())
    except (LostError, OSError):
        return True


async def _talk(
    connection: Any, data: bytes, answers: list[Any], count: int, end: float | None
) -> None:
    """Send commands, if there are any, and append answers until there are so many.

    Cancelled, the rest can be read later: the driver keeps what has arrived of an answer.
    """
    async with asyncio.timeout_at(end):
        if data:
            await connection.send_packed_command(data)
        while len(answers) < count:
            try:
                answer: Any = await connection.read_response(disconnect_on_error=False)
            except ResponseError as error:
                answer = error
            # Of protocol 3, which a client of the caller's may speak, maps are as of protocol 2.
            is_map = isinstance(answer, Mapping)
            answers.append([*chain.from_iterable(answer.items())] if is_map else answer)


def _unasked(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Return a task of the work; where its caller is cancelled, nobody asks why it failed."""
    task = kept(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def greeting(limit: float) -> Callable[[Any], Awaitable[None]]:
    """Return what greets a server in so many seconds, for which the driver has no bound."""

    async def greet(connection: Any) -> None:
        try:
            async with asyncio.timeout(limit):
                await connection.on_connect()
                # Without a password, nobody has spoken yet.
                await connection.send_command("PING")
                with contextlib.suppress(NoPermissionError):
                    await connection.read_response()
        except BaseException as error:
            # Or somebody else would read the answers.
            await connection.disconnect(nowait=True)
            if isinstance(error, TimeoutError):
                # The driver looks for another server after an error of its own.
                raise LateError("no answer in time") from None
            raise

    return greet


class _Sentinels(Sentinel):
    """Sentinels that are connected to while they are asked, so that none is left to be closed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)  # type: ignore[no-untyped-call]
        self._lock = asyncio.Lock()

    @override
    async def discover_master(self, service_name: str) -> tuple[str, int]:
        async with self._lock, self:
            with contextlib.suppress(MasterNotFoundError):
                found: tuple[str, int] = await super().discover_master(service_name)
                return found
        # Outside of any `except`: the driver's own words may quote what is secret.
        raise MasterNotFoundError("no sentinel knows a primary of this service that is up")


def pool_of(address: RedisAddress, options: dict[str, Any]) -> ConnectionPool:
    """Return the driver's pool of connections to a server, or to the primary of a service.

    Args:
        address: The server, or the sentinels and the service.
        options: The driver's options of the connections.
    """
    if address.kind != "sentinel":
        return ConnectionPool.from_url(address.urls[0], **options)
    limit = options["socket_connect_timeout"]
    theirs = {**address.sentinels, "socket_timeout": limit, "socket_connect_timeout": limit}
    theirs |= {name: options[name] for name in ("protocol", "retry")}
    if theirs.pop("connection_class", None) is SSLConnection:
        theirs["ssl"] = True
    own: dict[str, Any] = {**parse_url(address.urls[0]), **options}
    own["ssl"] = own.pop("connection_class", None) is SSLConnection
    for name in ("host", "port"):
        own.pop(name, None)
    sentinels = _Sentinels(address.hosts, sentinel_kwargs=theirs)
    return SentinelConnectionPool(address.service, sentinels, **own)  # type: ignore[no-untyped-call]
