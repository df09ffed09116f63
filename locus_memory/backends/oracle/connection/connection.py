"""An Oracle Database, shared by any number of tasks and event loops."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, NamedTuple, TypeVar, Unpack

import oracledb
from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.driver_errors import repeated
from locus_memory.backends.oracle.connection.address import Address, parse_address
from locus_memory.backends.oracle.connection.driver import (
    Binds,
    Connection,
    Pool,
    Row,
    connect,
    create_pool,
)
from locus_memory.backends.oracle.connection.driver_errors import (
    is_readable_again,
    is_repeatable,
    translated,
)
from locus_memory.backends.oracle.connection.opening import Features, Opening
from locus_memory.backends.oracle.connection.pool import LoopPool
from locus_memory.backends.oracle.options import OracleKeywords, OracleOptions
from locus_memory.backends.oracle.schema import Names
from locus_memory.backends.sql.database import SQLDatabase
from locus_memory.errors import BackendUnavailableError, ConfigurationError

__all__ = ["Features", "OraclePool", "Query", "Session", "Write", "arrays"]

T = TypeVar("T")

_FETCHED: Final = 500
"""Rows of one round trip."""

_INLINE: Final = 32_767
"""Bytes: a longer value is sent on its own, not in an array of rows."""

_TOGETHER: Final = 500
"""Rows of one array: the buffers of the driver and the server have a limit in bytes."""

_QUERY: Final = re.compile(r"\s*(SELECT|WITH)\b")

_TO_CREATE: Final = 3
"""Connections for the creation of tables: for the call, the lock and the statements of DDL."""


class Query(NamedTuple):
    """A query, with its binds."""

    template: str
    binds: Binds


class Write(NamedTuple):
    """A statement that changes rows, with the binds of each execution."""

    template: str
    rows: Sequence[Binds]


class Session:
    """A connection that is lent to one call, with the names of the tables.

    Args:
        connection: The connection.
        sql: Returns a statement with the names of the tables in it.
    """

    def __init__(self, connection: Connection, sql: Callable[[str], str]) -> None:
        self._connection = connection
        self._sql = sql

    async def fetch(self, template: str, binds: Binds) -> list[Row]:
        """Return the rows of a query."""
        return await self._connection.fetchall(
            self._sql(template), binds, _FETCHED, fetch_lobs=False
        )

    async def execute(self, template: str, binds: Binds) -> int:
        """Return the number of rows that a statement changes."""
        with self._connection.cursor() as cursor:
            await cursor.execute(self._sql(template), binds)
            return int(cursor.rowcount)

    async def step(self, template: str, binds: Binds | list[Binds]) -> list[Row]:
        """Return the rows of a query, or a row with the count of a write; of many, nothing.

        Args:
            template: The statement.
            binds: Its binds, or those of each of its runs.
        """
        if isinstance(binds, list):
            await self.run(Write(template, binds))
            return []
        if _QUERY.match(template):
            return await self.fetch(template, binds)
        return [(await self.execute(template, binds),)]

    async def run(self, *operations: Query | Write, commit: bool = False) -> list[list[Row]]:
        """Run operations in one round trip, from 23ai on; return the rows of each query.

        The first error ends the pipeline, so that nothing after it is done, nor committed. An
        older server gets one operation after the other.
        """
        pipeline = oracledb.create_pipeline()
        for each in operations:
            statement = self._sql(each.template)
            if isinstance(each, Query):
                pipeline.add_fetchall(statement, each.binds, _FETCHED, fetch_lobs=False)
                continue
            for rows in arrays(each.rows):
                if _is_large(rows[0]):
                    pipeline.add_execute(statement, rows[0])
                else:
                    pipeline.add_executemany(statement, rows)
        if commit:
            pipeline.add_commit()
        results = await self._connection.run_pipeline(pipeline)
        return [list(result.rows) for result in results if result.rows is not None]

    async def commit(self) -> None:
        """Commit."""
        await self._connection.commit()


class OraclePool(SQLDatabase[LoopPool, Names, Features]):
    """Connections to an Oracle Database, opened on first use.

    Each event loop has connections of its own, at most `pool_size`. The tables are created, or
    brought up to date, before the first statement. Nothing relies on the state of a session: no
    `NLS` parameter, no time zone, no current schema. Isolation is READ COMMITTED, Oracle's default,
    and the end of each call is a commit or a rollback.

    Args:
        dsn: An alias of `tnsnames.ora`, `host:1521/service`, or a connect descriptor, with
            `user@` or `user:password@` before it, or a URL `oracle://...`.
        pool: A pool of oracledb to use instead, in its own event loop; it is never closed here,
            and the options of the connection are ignored.
        options: How to connect, and where the tables are.
        **keywords: The fields of `OracleOptions` by name, in place of `options`.

    Raises:
        ConfigurationError: An option that cannot work.
    """

    @checked
    def __init__(
        self,
        dsn: str | None = None,
        *,
        pool: Pool | None = None,
        options: OracleOptions | None = None,
        **keywords: Unpack[OracleKeywords],
    ) -> None:
        self._options = Keywords(self, keywords).all_into(OracleOptions, options=options)
        address = Address("", None, None, "oracle") if pool is not None else parse_address(dsn)
        names = Names(self._options.schema, self._options.table_prefix)
        super().__init__(address.place, names, translated, owned=pool is None)
        self._arguments = _arguments(address, self._options)
        self._borrowed = pool

    @property
    def options(self) -> OracleOptions:
        """How to connect, and where the tables are."""
        return self._options

    async def fetch(self, template: str, binds: Binds) -> list[Row]:
        """Return the rows of one query; a lost connection is replaced, and it runs again.

        Raises:
            BackendError: The database failed; see `locus_memory.errors`.
        """
        return await self._run(
            lambda session: session.fetch(template, binds), may_repeat=is_readable_again
        )

    async def versions(self) -> list[tuple[int, int]]:
        """Return the version of each part of the tables, and the newest one known here.

        The tables are only read, and not brought up to date before.

        Raises:
            BackendError: As for `fetch`.
        """
        loop_pool = self._make_pool()
        with translated(self.where):
            try:
                return await loop_pool.run(self._opening().versions)
            finally:
                await loop_pool.close()

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Return the result of `work`, which commits; again if the server gives it up.

        What it does not commit is rolled back.

        Raises:
            BackendError: The database failed. Nothing is kept, except that this is not known if
                the connection was lost during a commit.
        """
        return await self._run(work, may_repeat=is_repeatable)

    async def _run(
        self,
        work: Callable[[Session], Awaitable[T]],
        *,
        may_repeat: Callable[[BaseException], bool],
    ) -> T:
        with translated(self.where):
            loop_pool = await self._ready()
            return await repeated(
                lambda: loop_pool.run(lambda c: work(Session(c, self.sql))), may_repeat
            )

    @override
    async def _prepare(self, loop_pool: LoopPool) -> Features:
        return await loop_pool.run(self._opening().prepare)

    def _opening(self) -> Opening:
        return Opening(
            self._connect_again, self._end_connection, self._names, self._options, self.where
        )

    async def _connect_again(self) -> Connection:
        if self._borrowed is None:
            with self._options_checked():
                return await connect(self._arguments)
        try:
            async with asyncio.timeout(self._options.acquire_timeout):
                connection: Any = await self._borrowed.acquire()
        except TimeoutError:
            raise BackendUnavailableError(
                f"{self.where}: no connection came back within {self._options.acquire_timeout:g} s"
                f"; the pool passed in needs {_TO_CREATE} to create the tables"
            ) from None
        return connection  # type: ignore[no-any-return] # it has every method of a connection

    async def _end_connection(self, connection: Connection) -> None:
        if self._borrowed is None:
            connection.terminate()
        else:
            given: Any = connection
            await self._borrowed.drop(given)

    @override
    def _make_pool(self) -> LoopPool:
        options, borrowed = self._options, self._borrowed
        with translated(self.where), self._options_checked():
            return LoopPool(
                lambda: borrowed or create_pool(self._arguments, options.pool_size),
                size=borrowed.max if borrowed is not None else options.pool_size,
                acquire_timeout=options.acquire_timeout,
                call_timeout=None if borrowed is not None else _milliseconds(options.call_timeout),
                where=self.where,
                is_own=borrowed is None,
            )

    @contextlib.contextmanager
    def _options_checked(self) -> Generator[None]:
        try:
            yield
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{self.where}: the driver cannot use the options ({type(error).__name__})"
            ) from None


def _arguments(address: Address, options: OracleOptions) -> dict[str, Any]:
    """Return the arguments of `oracledb.connect_async`."""
    given = {
        "dsn": address.dsn,
        "user": address.user or options.user,
        "password": options.password if address.password is None else address.password,
        "config_dir": options.config_dir,
        "wallet_location": options.wallet_location,
        "wallet_password": options.wallet_password,
        "edition": options.edition,
        "tcp_connect_timeout": options.connect_timeout,
    }
    return {name: value for name, value in given.items() if value is not None}


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))


def arrays(rows: Sequence[Binds]) -> list[list[Binds]]:
    """Return the arrays of rows to send, in the order of the rows; a large row is alone."""
    found: list[list[Binds]] = []
    for row in rows:
        last = found[-1] if found else []
        is_full = not last or len(last) == _TOGETHER
        if is_full or _is_large(row) or _is_large(last[0]):
            found.append([row])
        else:
            last.append(row)
    return found


def _is_large(row: Binds) -> bool:
    """Return whether a value of the row is sent as a LONG, of which an array holds none."""
    return any(isinstance(value, bytes | str) and len(value) > _INLINE for value in row.values())
