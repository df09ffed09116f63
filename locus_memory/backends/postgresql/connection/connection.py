"""A PostgreSQL database, shared by any number of tasks and event loops."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from typing import Any, Final, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.driver_errors import repeated
from locus_memory.backends.postgresql.connection.address import (
    attributes,
    check_standbys,
    described,
)
from locus_memory.backends.postgresql.connection.driver import (
    Connection,
    OwnConnection,
    Pool,
    Record,
)
from locus_memory.backends.postgresql.connection.driver_errors import (
    is_lost,
    is_repeatable,
    translated,
    was_never_sent,
)
from locus_memory.backends.postgresql.connection.opening import NOTHING_THERE, Features, prepare
from locus_memory.backends.postgresql.connection.pool import (
    LoopPool,
    connected,
    connected_to_standby,
    connection_arguments,
)
from locus_memory.backends.postgresql.connection.standbys import (
    WRITTEN,
    Standbys,
    is_reading,
    may_ask_standby,
    reading,
)
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.schema import Names
from locus_memory.backends.sql.database import SQLDatabase
from locus_memory.errors import (
    BackendError,
)

__all__ = ["Connection", "Features", "PostgreSQLPool", "Record"]

T = TypeVar("T")
Connect = Callable[[str, dict[str, Any]], Awaitable[OwnConnection]]

_BEGIN: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"


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
                partial(self._loop_pool, connected_to_standby), self._position, where
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

            def call(connection: Connection) -> Awaitable[Any]:
                asked: Awaitable[Any] = getattr(connection, verb)(statement, *arguments)
                return asked

            async def once() -> Any:
                async with loop_pool.lent() as connection:
                    return await call(connection)

            if (answer := await self._answer(call)) is not None:
                return answer[0]
            with self._writing():
                return await repeated(once, _Repeatable())

    async def _answer(self, work: Callable[[Connection], Awaitable[T]]) -> tuple[T] | None:
        """Return what a standby answers to a task that only reads; `None`: the primary is asked."""
        if self._standbys is None or not may_ask_standby():
            return None
        return await self._standbys.answer(work)

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """Let the next read of a standby see what the block writes, in part or in whole."""
        if self._standbys is None or is_reading():
            yield
            return
        self._standbys.wrote()
        try:
            yield
        finally:
            self._standbys.wrote()

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
                async with loop_pool.lent() as connection:
                    rows: list[Record] = await connection.fetch(self._names.fill(template))
                    return rows
            except NOTHING_THERE:
                return []
            finally:
                await loop_pool.close()

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """Lend a connection inside a transaction, committed if the block does not raise.

        Statements for it go through `sql` first.

        Raises:
            BackendError: The database failed, and nothing of the block is kept; only where the
                connection was lost while it committed, that is not known.
        """
        with translated(self.where), self._writing():
            loop_pool = await self._ready()
            async with contextlib.AsyncExitStack() as stack:
                # Nothing is done yet that could be done twice; what the pool raises is final.
                connection = await repeated(
                    lambda: stack.enter_async_context(_begun(loop_pool)),
                    lambda error: is_lost(error) and not isinstance(error, BackendError),
                )
                yield connection
                await connection.execute("COMMIT")

    async def transact(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Return what `work` does in a transaction, again if the server rolls it back.

        Raises:
            BackendError: As for `transaction`.
        """

        async def read(connection: Connection) -> T:
            # What it sets in its transaction is gone once that is rolled back.
            await connection.execute(_BEGIN)
            return await work(connection)

        async def once() -> T:
            async with self.transaction() as connection:
                return await work(connection)

        await self._ready()
        if (answer := await self._answer(read)) is not None:
            return answer[0]
        return await repeated(once, _Repeatable())

    @contextlib.asynccontextmanager
    async def outside(self) -> AsyncGenerator[Connection]:
        """Lend a connection for long work, which is none of `pool_size`; it is closed afterwards.

        A caller's pool lends one of its own instead, and needs others for the calls.

        Raises:
            BackendError: As for `transaction`.
        """
        with translated(self.where):
            loop_pool = await self._ready()
            async with loop_pool.outside() as connection:
                yield connection

    @override
    def _make_pool(self) -> LoopPool:
        return self._loop_pool(connected, self._borrowed)

    def _loop_pool(self, connect: Connect, borrowed: Pool | None = None) -> LoopPool:
        return LoopPool(
            partial(connect, self.where, self._arguments),
            size=self.pool_size,
            acquire_timeout=self._acquire_timeout,
            where=self.where,
            borrowed=borrowed,
        )

    async def _position(self) -> int:
        """Return the position of the primary in its log."""
        with reading(of_standbys=False):
            position: int = await self.fetchval(WRITTEN)
        return position

    @override
    async def _prepare(self, loop_pool: LoopPool) -> Features:
        async with loop_pool.lent() as connection:
            features = await prepare(connection, self._names, self.where)
        self._use(Names(self._names.schema, self._names.prefix, features.vector_schema))
        return features

    @override
    async def close(self) -> None:
        if self._standbys is not None:
            await self._standbys.close()
        await super().close()


@contextlib.asynccontextmanager
async def _begun(loop_pool: LoopPool) -> AsyncGenerator[Connection]:
    """Lend a connection inside a transaction, which is rolled back unless it was committed."""
    async with loop_pool.lent() as connection:
        await connection.execute(_BEGIN)
        yield connection


class _Repeatable:
    """Whether a call may be repeated after an error: nothing is done, or it reads, once more."""

    def __init__(self) -> None:
        self._reads = is_reading()

    def __call__(self, error: BaseException) -> bool:
        cause = error.__cause__ if isinstance(error, BackendError) else error
        if cause is None or was_never_sent(cause) or is_repeatable(cause):
            return cause is not None
        may_repeat, self._reads = self._reads and is_lost(cause), False
        return may_repeat
