"""Checkpoints in PostgreSQL: a save is one statement, and so is the load of a chain.

Every write to a thread locks its row first. A save does this in the statement that appends
the record; only one that replaces another, or that was refused, needs a transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.postgresql import records
from locus_memory.backends.postgresql.connection.connection import (
    Connection,
    PostgreSQLPool,
)
from locus_memory.backends.postgresql.connection.driver import Pool, errors
from locus_memory.backends.postgresql.connection.standbys import reading
from locus_memory.backends.postgresql.options import (
    PostgreSQLKeywords,
    PostgreSQLOptions,
)
from locus_memory.backends.postgresql.search.filters import Arguments
from locus_memory.backends.record_rows import clamped, digest_of
from locus_memory.backends.sql.storage import Binds, SQLDeltaStorage, Steps, taken
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.errors import BackendError, CheckpointConflictError
from locus_memory.events import emit
from locus_memory.store.encoding import encode_text
from locus_memory.store.filters import Condition

__all__ = ["PostgreSQLCheckpointer", "PostgreSQLDeltaStorage"]


T = TypeVar("T")


class PostgreSQLDeltaStorage(SQLDeltaStorage[PostgreSQLPool]):
    """Records in a PostgreSQL database, safe for many tasks, event loops and processes.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg or a `PostgreSQLPool`; the storage does not close it.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        **keywords: The fields of `PostgreSQLOptions` by name, in place of `options`.
    """

    _sql: ClassVar = records

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        **keywords: Unpack[PostgreSQLKeywords],
    ) -> None:
        self._connect(PostgreSQLPool, PostgreSQLOptions, database, options, keywords, pool=pool)

    @override
    async def _read(self, steps: Callable[[], Steps[T]], *blamed: str | None) -> T:
        with reading(of_standbys=False):
            return await taken(steps(), lambda t, b: self._connection.fetch(t, *_arguments(b)))

    @override
    async def _write(self, steps: Callable[[], Steps[T]]) -> T:
        async def work(connection: Connection) -> T:
            async def ask(template: str, binds: Binds | list[Binds]) -> list[Any]:
                rows: list[Any] = await connection.fetch(
                    self._connection.sql(template), *_arguments(binds)
                )
                return rows

            return await taken(steps(), ask)

        return await self._connection.transact(work)

    @override
    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append a record in one statement, or return `None` if there is no room for it."""
        thread = digest_of(record.thread_id)
        values = (thread, *records.to_row(record).values(), expected_parent is UNSET)
        last: bytes | str | None = None
        if record.base is None and not isinstance(expected_parent, str):
            statement, last = records.BEGIN, encode_text(record.thread_id)
        elif isinstance(expected_parent, str):
            statement, last = records.APPEND, records.name_of(expected_parent)
        else:
            statement = records.APPEND
        try:
            sequence: int | None = await self._connection.fetchval(statement, *values, last)
        except BackendError as error:
            if isinstance(error.__cause__, errors.UniqueViolationError):
                # Another save of the same name was faster.
                return None
            raise
        return sequence

    @override
    def _claimed(self, thread_id: str) -> Steps[int]:
        names = {"thread": digest_of(thread_id), "name": encode_text(thread_id)}
        [[thread]] = yield records.CLAIM, names
        return int(thread)

    @override
    def _renewed(self, thread: int) -> Steps[None]:
        [[newest]] = yield records.RENEW, {"thread": thread}
        if newest is None:
            yield records.REMOVE_THREAD, {"thread": thread}

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        known = await self._read(lambda: self._moved(source, target, through))
        masks = {name: records.to_mask(known[name]) for name in ("mask", "fork_mask")}
        names = digest_of(source), digest_of(target), encode_text(target)
        bounds = clamped(through), *(known | masks).values()
        count: int = await self._connection.fetchval(records.COPY, *names, *bounds)
        if count == 0:
            existing = await self.find(target)
            if existing is not None:
                raise CheckpointConflictError(target, None, existing.checkpoint_id)
        return count

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        arguments = Arguments()
        arguments.bind(clamped(limit), "bigint")
        matching = arguments.compile(condition, metadata="document", value=None)
        with reading(of_standbys=False):
            rows = await self._connection.fetch(records.MATCHING % matching, *arguments.values)
        return [records.read_head(records.read_thread(row[11]), row) for row in rows]

    @override
    async def reclaim(self) -> None:
        # For a table of another owner, the server only warns.
        try:
            await self._connection.execute(records.VACUUM)
        except BackendError as error:
            # The server vacuums by itself, sooner or later.
            emit("postgresql.not_vacuumed", error=error)


def _arguments(binds: Binds | list[Binds]) -> list[Any]:
    """Return binds in the order of their numbers; of several, the values of each number."""
    if isinstance(binds, dict):
        return list(binds.values())
    return [list(column) for column in zip(*(each.values() for each in binds), strict=True)]


class PostgreSQLCheckpointerKeywords(
    PostgreSQLKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `PostgreSQLCheckpointer` beside its own parameters."""


class PostgreSQLCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in a PostgreSQL database.

    Args:
        database: See `PostgreSQLPool`.
        pool: A pool to share, of asyncpg or a `PostgreSQLPool`; the checkpointer does not close it.
        options: How to connect, and where the tables are; ignored with a `PostgreSQLPool`.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `PostgreSQLOptions` by
            name, in place of `options`.
    """

    @checked
    def __init__(
        self,
        database: str | None = None,
        *,
        pool: Pool | PostgreSQLPool | None = None,
        options: PostgreSQLOptions | None = None,
        **keywords: Unpack[PostgreSQLCheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(PostgreSQLOptions, options=options)
        storage = PostgreSQLDeltaStorage(database, pool=pool, options=options)
        super().__init__(storage, **named.rest)
