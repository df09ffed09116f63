"""A PostgreSQL database, shared by any number of tasks and event loops."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.driver_errors import repeated
from locus_memory.backends.postgresql.connection.address import (
    attributes,
    check_standbys,
    described,
)
from locus_memory.backends.postgresql.connection.connecting import (
    connected,
    connected_to_standby,
    connection_arguments,
)
from locus_memory.backends.postgresql.connection.driver import (
    DRIVER_ERRORS,
    Connection,
    Pool,
    Record,
)
from locus_memory.backends.postgresql.connection.driver_errors import (
    is_lost,
    is_readonly,
    is_repeatable,
    translated,
    was_never_sent,
)
from locus_memory.backends.postgresql.connection.opening import NOTHING_THERE, Features, prepare
from locus_memory.backends.postgresql.connection.pool import (
    BorrowedPool,
    LoopPool,
    OwnPool,
    is_gone,
)
from locus_memory.backends.postgresql.connection.standbys import WRITTEN, Standbys, is_reading
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.schema import Names
from locus_memory.backends.sql.database import SQLDatabase
from locus_memory.errors import (
    BackendError,
)

__all__ = ["Connection", "Features", "PostgreSQLPool", "Record", "pool_for"]

T = TypeVar("T")


class PostgreSQLPool(SQLDatabase[LoopPool, Names, Features]):
    """Connections to a PostgreSQL database, opened on first use.

    Each event loop has connections of its own, at most `pool_size`. The tables are made, or
    brought up to date, before the first statement. Nothing relies on the state of a session:
    no settings, no `search_path`.

    Args:
        database: A name, or a URL (`postgresql://...`), which goes to asyncpg untouched. Of
            several hosts, `postgresql://host1,host2/mydb`, one that takes writes is used. What
            it leaves open, `None` everything, comes from libpq's environment variables.
        pool: A pool of the caller's to use instead, in its own event loop; it is never closed
            here, and the options of the connection are ignored.
        options: How to connect, and where the tables are.
        **keywords: The fields of `PostgreSQLOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | None = None,
        options: PostgreSQLOptions | None = None,
        **keywords: Unpack[PostgreSQLKeywords],
    ) -> None:
        where = described(database)
        options = Keywords(self, keywords).all_into(PostgreSQLOptions, options=options)
        self._arguments = connection_arguments(
            database,
            timeout=options.connect_timeout,
            command_timeout=options.command_timeout,
            statement_cache_size=0 if options.pooler else options.statement_cache_size,
        )
        self._arguments |= attributes(database)
        self._borrowed = pool
        self.pool_size = options.pool_size
        self._acquire_timeout = options.acquire_timeout
        self._standbys: Standbys | None = None
        if options.standby_reads:
            check_standbys(database, borrowed=pool is not None)
            self._standbys = Standbys(
                partial(self._make_own_pool, connected_to_standby), self._position, where
            )
        names = Names(options.schema, options.table_prefix)
        super().__init__(where, names, translated, owned=pool is None)

    @property
    def prefix(self) -> str:
        """The beginning of the name of every table and index."""
        return self._names.prefix

    async def fetch(self, template: str, *arguments: Any) -> list[Record]:
        """Return the rows of one statement, which is its own transaction.

        Raises:
            BackendError: The database failed; see `locus_memory.errors`.
        """
        rows: list[Record] = await self._call("fetch", template, arguments)
        return rows

    async def fetchmany(self, template: str, rows: Sequence[Sequence[Any]]) -> list[Record]:
        """Return what one statement returns for several rows of arguments, all or nothing.

        They take one round trip and one transaction; see `fetch`.
        """
        found: list[Record] = await self._call("fetchmany", template, (rows,))
        return found

    async def fetchrow(self, template: str, *arguments: Any) -> Record | None:
        """Return the first row of one statement, or `None`; see `fetch`."""
        row: Record | None = await self._call("fetchrow", template, arguments)
        return row

    async def fetchval(self, template: str, *arguments: Any) -> Any:
        """Return the first value of the first row, or `None`; see `fetch`."""
        return await self._call("fetchval", template, arguments)

    async def execute(self, template: str, *arguments: Any) -> str:
        """Return the tag of one statement, such as `DELETE 3`; see `fetch`."""
        tag: str = await self._call("execute", template, arguments)
        return tag

    async def _call(self, verb: str, template: str, arguments: tuple[Any, ...]) -> Any:
        with translated(self.where):
            loop_pool = await self._ready()
            statement = self.sql(template)
            if self._standbys is not None and is_reading():
                return await self._read(self._standbys, loop_pool, verb, statement, arguments)
            try:
                return await repeated(
                    lambda: _call_once(loop_pool, verb, statement, arguments), _may_repeat_call
                )
            finally:
                if self._standbys is not None:
                    self._standbys.wrote()

    async def _read(
        self,
        standbys: Standbys,
        primary: LoopPool,
        verb: str,
        statement: str,
        arguments: tuple[Any, ...],
    ) -> Any:
        """Ask a standby, or the primary where none is ready or one fails."""
        found = await standbys.acquire()
        if found is not None:
            try:
                return await _asked(*found, verb, statement, arguments)
            except DRIVER_ERRORS as error:
                if not is_repeatable(error):
                    standbys.failed(error)
        return await repeated(
            lambda: _call_once(primary, verb, statement, arguments), _may_repeat_call
        )

    async def peek(self, template: str) -> list[Record]:
        """Return the rows of a query, without bringing the tables up to date before.

        Returns:
            The rows; none if a table of the query does not exist.

        Raises:
            BackendError: As for `fetch`.
        """
        loop_pool = self._make_pool()
        with translated(self.where):
            await loop_pool.open()
            try:
                found = await _call_once(loop_pool, "fetch", self._names.fill(template), ())
            except NOTHING_THERE:
                return []
            finally:
                await loop_pool.close()
        rows: list[Record] = found
        return rows

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """Lend a connection inside a transaction, committed if the block does not raise.

        Statements for it go through `sql` first.

        Raises:
            BackendError: The database failed, and nothing of the block is kept; only where the
                connection was lost while it committed, that is not known.
        """
        with translated(self.where):
            loop_pool = await self._ready()
            if self._standbys is not None and not is_reading():
                self._standbys.wrote()
            found = await self._standby()
            if found is None:
                connection = await repeated(lambda: _begun(loop_pool), _may_begin_again)
            else:
                loop_pool, connection = found
                await _begin(loop_pool, connection)
            try:
                yield connection
                await connection.execute("COMMIT")
            except (Exception, asyncio.CancelledError):
                await loop_pool.settle(connection)
                raise
            except BaseException:
                await loop_pool.release(connection, broken=True)
                raise
            finally:
                if self._standbys is not None and not is_reading():
                    self._standbys.wrote()
            await loop_pool.release(connection)

    async def transact(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Return what `work` does in a transaction, again if the server rolls it back.

        Raises:
            BackendError: As for `transaction`.
        """

        async def once() -> T:
            async with self.transaction() as connection:
                return await work(connection)

        try:
            return await repeated(once, _may_repeat_transaction)
        except BackendError as error:
            if self._standbys is None or not is_reading():
                raise
            self._standbys.failed(error)
        return await repeated(once, _may_repeat_transaction)

    async def _standby(self) -> tuple[LoopPool, Connection] | None:
        """Return a connection of a standby for a task that only reads, if there is one."""
        if self._standbys is None or not is_reading():
            return None
        return await self._standbys.acquire()

    @contextlib.asynccontextmanager
    async def outside(self) -> AsyncGenerator[Connection]:
        """Lend a connection for long work, which is none of `pool_size`; it is closed afterwards.

        A caller's pool lends one of its own instead, and needs others for the calls.

        Raises:
            BackendError: As for `transaction`.
        """
        with translated(self.where):
            loop_pool = await self._ready()
            connecting = partial(connected, self.where, self._arguments)
            connection = await loop_pool.outside(connecting)
            try:
                yield connection
            finally:
                await loop_pool.end_outside(connection)

    @override
    def _make_pool(self) -> LoopPool:
        if self._borrowed is not None:
            return BorrowedPool(
                self._borrowed, acquire_timeout=self._acquire_timeout, where=self.where
            )
        return self._make_own_pool(connected)

    def _make_own_pool(
        self, connect: Callable[[str, dict[str, Any]], Awaitable[Connection]]
    ) -> OwnPool:
        connecting = partial(connect, self.where, self._arguments)
        return OwnPool(
            connecting, size=self.pool_size, acquire_timeout=self._acquire_timeout, where=self.where
        )

    async def _position(self) -> int:
        """Return the position of the primary in its log."""
        loop_pool = await self._ready()
        found: int = await repeated(
            lambda: _call_once(loop_pool, "fetchval", WRITTEN, ()), _may_repeat_call
        )
        return found

    @override
    async def _prepare(self, loop_pool: LoopPool) -> Features:
        connection = await loop_pool.acquire()
        try:
            features = await prepare(connection, self._names, self.where)
        except asyncio.CancelledError:
            await loop_pool.settle(connection)
            raise
        except BaseException:
            await loop_pool.release(connection, broken=True)
            raise
        await loop_pool.release(connection)
        self._names = Names(self._names.schema, self._names.prefix, features.vector_schema)
        self._statements.clear()
        return features

    @override
    async def close(self) -> None:
        if self._standbys is not None:
            await self._standbys.close()
        await super().close()


def pool_for(
    database: str | None,
    pool: Pool | PostgreSQLPool | None,
    options: PostgreSQLOptions,
) -> tuple[PostgreSQLPool, bool]:
    """Return the pool to use, and whether whoever uses it is to close it.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool of asyncpg's, or one of ours, which is then shared.
        options: How to connect; ignored where `pool` is one of ours.
    """
    if isinstance(pool, PostgreSQLPool):
        return pool, False
    return PostgreSQLPool(database, pool=pool, options=options), True


async def _call_once(
    loop_pool: LoopPool, verb: str, statement: str, arguments: tuple[Any, ...]
) -> Any:
    return await _asked(loop_pool, await loop_pool.acquire(), verb, statement, arguments)


async def _asked(
    loop_pool: LoopPool,
    connection: Connection,
    verb: str,
    statement: str,
    arguments: tuple[Any, ...],
) -> Any:
    try:
        result = await getattr(connection, verb)(statement, *arguments)
    except (TimeoutError, asyncio.CancelledError):
        # The server may still be busy with it.
        await loop_pool.settle(connection)
        raise
    except DRIVER_ERRORS as error:
        # A primary that takes no writes any more may have been replaced by another host.
        await loop_pool.release(connection, broken=is_gone(connection) or is_readonly(error))
        raise
    except BaseException:
        await loop_pool.release(connection, broken=True)
        raise
    await loop_pool.release(connection)
    return result


async def _begun(loop_pool: LoopPool) -> Connection:
    connection = await loop_pool.acquire()
    await _begin(loop_pool, connection)
    return connection


async def _begin(loop_pool: LoopPool, connection: Connection) -> None:
    """Begin a transaction, or give the connection back."""
    try:
        await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
    except asyncio.CancelledError:
        await loop_pool.settle(connection)
        raise
    except BaseException:
        await loop_pool.release(connection, broken=True)
        raise


def _may_repeat_call(error: BaseException) -> bool:
    return was_never_sent(error) or is_repeatable(error)


def _may_begin_again(error: BaseException) -> bool:
    # Nothing is done yet that could be done twice; what the pool raises is final.
    return is_lost(error) and not isinstance(error, BackendError)


def _may_repeat_transaction(error: BaseException) -> bool:
    return isinstance(error, BackendError) and is_repeatable(error.__cause__)
