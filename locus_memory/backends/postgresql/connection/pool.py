"""The connections of one event loop, in a pool of asyncpg's: one of its own, or the caller's.

Beside what `sql.pool` says, two things are not left to asyncpg. A connection that the server closed
while it was idle is replaced before a statement runs on it. And a driver that connects is not
interrupted: it would report an error to the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import select
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final
from weakref import WeakSet

from typing_extensions import override

from locus_memory.backends.loops import sever
from locus_memory.backends.postgresql.connection.address import each_host, is_url
from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    OwnConnection,
    Pool,
    asyncpg,
    errors,
)
from locus_memory.backends.postgresql.connection.driver_errors import is_readonly, translated
from locus_memory.backends.sql import pool as sql
from locus_memory.errors import BackendError, ConfigurationError

__all__ = ["LoopPool", "connected", "connected_to_standby", "connection_arguments"]

_PLAN_LIFETIME: Final = 60
"""Seconds until a statement is prepared again: the server keeps its plan for the tables as they
were, and a plan for empty tables reads all of a namespace."""

_FAREWELL: Final = 5.0
"""Seconds to close a connection whose statement was cancelled."""

_LEAST_TO_SHARE: Final = 4
"""The least size of a caller's pool that lends two connections for long."""

_NO_FIT: Final = errors.TargetServerAttributeNotMatched
_PREFERS_STANDBY: Final = re.compile(r"[?&]target_session_attrs=prefer-standby\b")


async def _connect(arguments: dict[str, Any]) -> OwnConnection:
    connection: OwnConnection = await asyncpg.connect(connection_class=OwnConnection, **arguments)
    return connection


def connection_arguments(database: str | None, **options: float | None) -> dict[str, Any]:
    """Return the arguments of `connected`: those of `asyncpg.connect`, with a URL for each host."""
    arguments: dict[str, Any] = {**options, "max_cached_statement_lifetime": _PLAN_LIFETIME}
    if database is not None and is_url(database):
        arguments["urls"] = each_host(database)
    elif database is not None:
        arguments["database"] = database
    return arguments


async def connected(where: str, arguments: dict[str, Any]) -> OwnConnection:
    """Return a new connection, to the first host that answers and fits.

    A host that is silent takes its part of the time only. The one that answered is the first to be
    tried the next time.

    Args:
        where: The database, for messages.
        arguments: See `connection_arguments`; the order of the hosts is changed here.

    Raises:
        ConfigurationError: The driver cannot read the URL or the environment.
        BackendError: The server cannot be reached, or refuses the user.
    """
    # Of the pool itself nothing is held here, so that one that is dropped is collected.
    with translated(where):
        try:
            return await _connected(arguments)
        except errors.ClientConfigurationError:
            raise
        except (ValueError, OverflowError) as error:
            # Its message quotes what may be a part of the password.
            raise ConfigurationError(
                f"{where}: the driver cannot read the URL or the environment "
                f"({type(error).__name__}); a password's special characters are written as "
                "%40 for @, %2F for / and so on"
            ) from None


async def _connected(arguments: dict[str, Any]) -> OwnConnection:
    options = dict(arguments)
    urls: list[str] = options.pop("urls", [])
    if len(urls) < 2:  # noqa: PLR2004 - several
        return await _connect({**options, "dsn": urls[0]} if urls else options)
    options["timeout"] /= len(urls)
    failures: list[Exception] = []
    # The driver knows the other hosts no more, of which it would prefer one.
    prefers = _PREFERS_STANDBY.search(urls[0]) is not None
    for wanted in ("standby", "any") if prefers else (None,):
        chosen = options if wanted is None else {**options, "target_session_attrs": wanted}
        for url in urls:
            try:
                connection = await _connect({**chosen, "dsn": url})
            except (OSError, errors.CannotConnectNowError, _NO_FIT) as error:
                failures.append(error)
            else:
                arguments["urls"] = [url, *(each for each in urls if each != url)]
                return connection
    # That a host does not fit is no reason why another one failed.
    raise next((e for e in failures if not isinstance(e, _NO_FIT)), failures[-1])


async def connected_to_standby(where: str, arguments: dict[str, Any]) -> OwnConnection:
    """Return a new connection to one of the standbys, in any order; see `connected`."""
    urls = arguments["urls"]
    chosen = {"urls": random.sample(urls, len(urls)), "target_session_attrs": "standby"}
    return await connected(where, {**arguments, **chosen})


class LoopPool(sql.LoopPool[Connection]):
    """Lends connections to the calls of one event loop.

    Args:
        connect: Opens a connection.
        size: The most that are open at once.
        acquire_timeout: Seconds to wait for one.
        where: The database, for messages.
        borrowed: The caller's pool, which is never closed here; it has a size of its own.

    Raises:
        ConfigurationError: The caller's pool belongs to another event loop.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[OwnConnection]],
        *,
        size: int,
        acquire_timeout: float,
        where: str,
        borrowed: Pool | None = None,
    ) -> None:
        # asyncpg does not say which loop a pool belongs to.
        if borrowed and getattr(borrowed, "_loop", None) is not asyncio.get_running_loop():
            raise ConfigurationError(
                f"{where}: the asyncpg pool passed in belongs to another event loop; use it "
                "there, or pass the database's URL instead"
            )
        self._connect = connect
        self._connections: WeakSet[OwnConnection] = WeakSet()
        self._pool: Pool = borrowed or asyncpg.create_pool(
            min_size=0,
            max_size=size,
            max_inactive_connection_lifetime=sql.LONGEST_IDLE,
            connect=self._connected,
            connection_class=OwnConnection,
        )
        super().__init__(
            size=self._pool.get_max_size(),
            acquire_timeout=acquire_timeout,
            where=where,
            is_own=borrowed is None,
        )

    @override
    async def open(self) -> None:
        if self._is_own:
            await self._pool
        await super().open()

    async def _connected(self, *_: Any, **__: Any) -> OwnConnection:
        """Open a connection for the pool; one that nobody waits for any more is closed again."""
        opening = asyncio.ensure_future(self._connect())
        try:
            await asyncio.wait([opening])
        except BaseException:
            opening.add_done_callback(_drop)
            raise
        self._connections.add(opening.result())
        return opening.result()

    @override
    async def _take(self) -> Connection | None:
        timeout = None if self._is_own else self._acquire_timeout
        connection = await self._pool.acquire(timeout=timeout)
        is_alive = False
        try:
            is_alive = await _is_alive(connection) and not self._closed
        finally:
            if not is_alive:
                _terminate(connection)
        return connection if is_alive else None

    @override
    async def _put(self, connection: Connection) -> None:
        # It waits until a statement that was cancelled is over.
        with contextlib.suppress(*DRIVER_ERRORS):
            if self._loop.is_closed():
                _sever(connection)
            elif _is_gone(connection) or not connection.is_in_transaction():
                await self._pool.release(connection, timeout=sql.SETTLING)
            else:
                await asyncio.shield(self._rolled_back(connection))

    async def _rolled_back(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(sql.SETTLING):
                await connection.execute("ROLLBACK")
        except DRIVER_ERRORS:
            _terminate(connection)
        await self._pool.release(connection)

    @override
    def _opened(self) -> int:
        return int(self._pool.get_size())

    @override
    async def _shut(self) -> None:
        with contextlib.suppress(*DRIVER_ERRORS):
            async with asyncio.timeout(sql.SETTLING):
                await self._pool.close()

    @override
    async def _stop(self) -> None:
        self._pool.terminate()

    @override
    def abandon(self) -> None:
        self._closed = True
        for connection in list(self._connections):
            _sever(connection)

    @contextlib.asynccontextmanager
    async def lent(self) -> AsyncGenerator[Connection]:
        """Lend a connection to a block; see `acquire`."""
        connection = await self.acquire()
        try:
            yield connection
        except DRIVER_ERRORS as error:
            # A primary that takes no writes any more may have been replaced by another host.
            if is_readonly(error):
                _terminate(connection)
            raise
        finally:
            await self.release(connection)

    @contextlib.asynccontextmanager
    async def outside(self) -> AsyncGenerator[Connection]:
        """Lend a connection that `close` does not wait for, unless that leaves too few.

        Raises:
            BackendError: The caller's pool is too small.
        """
        if self._is_own:
            own = await self._connect()
            try:
                yield own
            finally:
                await _left(own)
        elif self._size < _LEAST_TO_SHARE:
            raise BackendError(
                f"{self._where}: an index needs two connections while it is built, and the pool "
                f"passed in has fewer than {_LEAST_TO_SHARE}; call compact() of a store that "
                "opens its own"
            )
        else:
            lent = await self._pool.acquire(timeout=self._acquire_timeout)
            try:
                yield lent
            finally:
                await self._put(lent)


async def _left(connection: Connection) -> None:
    """Close a connection; the server is told to end a cancelled statement."""
    try:
        async with asyncio.timeout(_FAREWELL):
            await connection.close()
    except (*DRIVER_ERRORS, asyncio.CancelledError):
        connection.terminate()
        raise


def _drop(opening: asyncio.Future[OwnConnection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().terminate()


def _is_gone(connection: Connection) -> bool:
    """Return whether a connection is closed, or went back to its pool as it was."""
    try:
        return bool(connection.is_closed())
    except errors.InterfaceError:
        return True


def _terminate(connection: Connection) -> None:
    if not _is_gone(connection):
        connection.terminate()


async def _is_alive(connection: Connection) -> bool:
    """Return whether the other side has not closed the connection meanwhile."""
    for _ in range(sql.TURNS):
        if _is_gone(connection):
            return False
        if not _has_something_to_read(connection):
            return True
        # The server is silent unless it is asked: this is most likely its farewell.
        await asyncio.sleep(0)
    return not _is_gone(connection)


def _has_something_to_read(connection: Connection) -> bool:
    socket = _transport(connection).get_extra_info("socket")
    if socket is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(socket.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _sever(connection: Connection) -> None:
    transport = _transport(connection)
    with contextlib.suppress(Exception):
        connection.terminate()
    sever(transport)


def _transport(connection: Connection) -> Any:
    return connection._transport  # noqa: SLF001 - asyncpg hides it
