"""Checkpoints in Oracle Database: a save is one pipeline, and the load of a chain is one query.

Every write to a thread locks its row first. The keys of the tables keep the rest: a base exists,
and no two records of a thread have one name. A save that replaces a record, or that was refused,
needs a transaction of several round trips.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Generic, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.base import OverConnection
from locus_memory.backends.oracle.connection.connection import (
    OraclePool,
    Query,
    Session,
    Write,
)
from locus_memory.backends.oracle.connection.driver import Binds, Pool, Row
from locus_memory.backends.oracle.connection.driver_errors import (
    NO_PARENT,
    NULL_GUARD,
    NULL_GUARD_IN_UPDATE,
    UNIQUE_VIOLATED,
)
from locus_memory.backends.oracle.items.naming import BEYOND, LONGEST, cut, first_of, is_cut
from locus_memory.backends.oracle.options import OracleKeywords, OracleOptions
from locus_memory.backends.oracle.records import (
    ADVANCE,
    APPEND,
    CHAIN_OF_NAMED,
    CHAIN_OF_NEWEST,
    CLAIM,
    FIND_NAMED,
    FIND_NEWEST,
    HEADS_OF_ALL,
    LIST,
    LOCK,
    NEWEST,
    OVERWRITE,
    RECORDS,
    REMOVE,
    REMOVE_ALL,
    REMOVE_NAMED,
    REMOVE_THREAD,
    RENEW,
    SEQUENCE,
    SEQUENCES,
    SET_LONG_NAME,
    THREADS,
    name_of,
    read_head,
    read_record,
    read_thread,
    thread_row,
    to_rewrite,
    to_row,
)
from locus_memory.backends.record_rows import LARGEST, chain_from, check_name, clamped, digest_of
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import (
    DeltaStorage,
    check_range,
    check_replacement,
    check_room,
    copied,
)
from locus_memory.errors import BackendError, CheckpointConflictError
from locus_memory.store.encoding import encode_text, prefix_upper_bound
from locus_memory.store.filters import Condition, matches

__all__ = ["OracleCheckpointer", "OracleDeltaStorage"]

_PAGE: Final = 200

_NO_PARENT: Final = b"\0"
"""The name of no checkpoint; a NULL would have no type."""

_REFUSALS: Final = (UNIQUE_VIOLATED, NULL_GUARD, NULL_GUARD_IN_UPDATE, NO_PARENT)
"""The errors of an append that one pipeline cannot do."""


class OracleDeltaStorage(OverConnection[OraclePool], DeltaStorage):
    """Records in an Oracle Database, safe for many tasks, event loops and processes.

    Args:
        dsn: See `OraclePool`.
        pool: A pool of oracledb, or an `OraclePool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with an `OraclePool`.
        **keywords: The fields of `OracleOptions` by name, in place of `options`.
    """

    @checked
    def __init__(
        self,
        dsn: str | None = None,
        *,
        pool: Pool | OraclePool | None = None,
        options: OracleOptions | None = None,
        **keywords: Unpack[OracleKeywords],
    ) -> None:
        self._connect(OraclePool, OracleOptions, dsn, options, keywords, pool=pool)

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        sequence = None if rebased else await self._append(record, expected_parent)
        if sequence is None:
            sequence = await self._connection.transact(
                lambda session: self._make_room(session, record, expected_parent, rebased)
            )
        return sequence

    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append in one round trip; `None` if one is not enough."""
        thread = digest_of(record.thread_id)
        claim = _claim(record, expected_parent)
        found = {"thread": thread, "revision": record.revision}

        async def work(session: Session) -> int:
            ((row,),) = await session.run(
                Write(CLAIM, [claim]),
                Write(ADVANCE, [_advance(record, expected_parent)]),
                Write(APPEND, [{"thread": thread, **to_row(record)}]),
                Query(SEQUENCE, found),
                commit=True,
            )
            return int(row[0])

        if is_cut(claim["name"]) and await self.find(record.thread_id) is None:
            # The whole name of a new thread is too long for the pipeline.
            return None
        try:
            return await self._connection.transact(work)
        except BackendError as error:
            if any(code in str(error) for code in _REFUSALS):
                return None
            raise

    async def _make_room(
        self,
        session: Session,
        record: Record,
        expected_parent: str | Unset | None,
        rebased: Sequence[Record],
    ) -> int:
        """Append a record that replaces the one of its name, or whose pipeline was refused."""
        thread = digest_of(record.thread_id)
        claim: Binds = {**_claim(record, UNSET), "may_begin": 1}
        await session.run(Write(CLAIM, [claim]))
        if is_cut(claim["name"]):
            long_name = thread_row(record.thread_id)["long_name"]
            await session.execute(SET_LONG_NAME, {"long_name": long_name, "digest": thread})
        heads = await self._heads(session, record.thread_id)
        check_room(heads, record, expected_parent, rebased)
        row = {"thread": thread, **to_row(record)}
        found = Query(SEQUENCE, {"thread": thread, "revision": record.revision})
        (((sequence,),),) = await session.run(
            *_overwrites(thread, rebased),
            Write(REMOVE_NAMED, [{"thread": thread, "name": row["name"]}]),
            Write(APPEND, [row]),
            found,
            commit=True,
        )
        return int(sequence)

    async def _heads(self, session: Session, thread_id: str) -> list[RecordHead]:
        """Return the heads of a thread whose row is locked, newest first."""
        binds = {"thread": digest_of(thread_id), "before": LARGEST, "most": LARGEST}
        return [read_head(thread_id, row) for row in await session.fetch(LIST, binds)]

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        chain = await self.retrieve_chain(thread_id, checkpoint_id)
        return chain[-1] if chain else None

    @override
    async def find(self, thread_id: str, checkpoint_id: str | None = None) -> RecordHead | None:
        statement, binds = FIND_NEWEST, {"thread": digest_of(thread_id)}
        if checkpoint_id is not None:
            statement, binds = FIND_NAMED, {**binds, "name": name_of(checkpoint_id)}
        rows = await self._connection.fetch(statement, binds)
        return check_name(read_head(thread_id, rows[0]), checkpoint_id) if rows else None

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        statement, binds = CHAIN_OF_NEWEST, {"thread": digest_of(thread_id)}
        if checkpoint_id is not None:
            statement, binds = CHAIN_OF_NAMED, {**binds, "name": name_of(checkpoint_id)}
        rows = await self._connection.fetch(statement, binds)
        return chain_from([read_record(thread_id, row) for row in rows], checkpoint_id)

    @override
    async def list_checkpoints(
        self, thread_id: str, limit: int | None = 10, *, before: int | None = None
    ) -> list[RecordHead]:
        binds = {
            "thread": digest_of(thread_id),
            "before": clamped(before),
            "most": clamped(limit),
        }
        return [read_head(thread_id, row) for row in await self._connection.fetch(LIST, binds)]

    @override
    async def sequences(self, thread_id: str) -> list[int]:
        rows = await self._connection.fetch(SEQUENCES, {"thread": digest_of(thread_id)})
        return [int(row[0]) for row in rows]

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        thread = digest_of(thread_id)

        async def work(session: Session) -> int:
            if not await session.fetch(LOCK, {"digest": thread}):
                return 0
            if revisions is None:
                count = await session.execute(REMOVE_ALL, {"thread": thread})
            else:
                heads = await self._heads(session, thread_id)
                check_replacement(heads, removed=revisions, rebased=rebased)
                # The newest first: a base is older than its deltas.
                gone = [head.revision for head in heads if head.revision in revisions]
                rows = [{"thread": thread, "revision": revision} for revision in gone]
                writes = [*_overwrites(thread, rebased), Write(REMOVE, rows)]
                await session.run(*(each for each in writes if each.rows))
                count = len(gone)
            await self._renew(session, thread)
            await session.commit()
            return count

        return await self._connection.transact(work)

    async def _renew(self, session: Session, thread: bytes) -> None:
        """Name the newest record of a thread in its row, or delete the row."""
        rows = await session.fetch(NEWEST, {"thread": thread})
        if rows:
            await session.execute(RENEW, {"newest": rows[0][0], "digest": thread})
        else:
            await session.execute(REMOVE_THREAD, {"digest": thread})

    @override
    async def list_threads(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        check_range(prefix, after)
        start = encode_text(prefix or "").encode()
        bound = prefix_upper_bound(encode_text(prefix)) if prefix else None
        high = BEYOND if bound is None else bound.encode()
        low = start if after is None else max(start, encode_text(after).encode() + b"\x01")
        binds: Binds = {"low": first_of(low) or _NO_PARENT, "most": clamped(limit)}
        binds["high"] = high if len(high) <= LONGEST else first_of(high) + BEYOND
        rows = await self._connection.fetch(THREADS, binds)
        if not any(is_cut(name) for name, _ in rows) and len(low) <= LONGEST:
            return [read_thread(*row) for row in rows]
        # Names that are cut are in no order: all of them are sorted here.
        rows = await self._connection.fetch(THREADS, {**binds, "most": LARGEST})
        wanted = {whole or name: (name, whole) for name, whole in rows}
        found = sorted(each for each in wanted if low <= each < high)
        return [read_thread(*wanted[each]) for each in found[:limit]]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        last = clamped(through)

        async def work(session: Session) -> int:
            after, count = -1, 0
            while rows := await self._records(session, source, after, last):
                records = [copied(read_record(source, row), target, through) for row in rows]
                if not count:
                    await self._begin_copy(session, records[0])
                await self._append_copies(session, records)
                after, count = records[-1].sequence, count + len(records)
            if count:
                await self._renew(session, digest_of(target))
            await session.commit()
            return count

        try:
            return await self._connection.transact(work)
        except BackendError as error:
            existing = await self.find(target)
            if existing is not None and any(code in str(error) for code in _REFUSALS):
                raise CheckpointConflictError(target, None, existing.checkpoint_id) from None
            raise

    async def _records(
        self, session: Session, thread_id: str, after: int, through: int
    ) -> list[Row]:
        binds = {"thread": digest_of(thread_id), "after": after, "through": through}
        return await session.fetch(RECORDS, {**binds, "most": _PAGE})

    async def _begin_copy(self, session: Session, first: Record) -> None:
        """Create the thread of a copy; it must not exist."""
        claim = _claim(first, None)
        await session.run(Write(CLAIM, [claim]), Write(ADVANCE, [_advance(first, None)]))
        if is_cut(claim["name"]):
            long_name = thread_row(first.thread_id)["long_name"]
            binds = {"long_name": long_name, "digest": claim["digest"]}
            await session.execute(SET_LONG_NAME, binds)

    async def _append_copies(self, session: Session, records: Sequence[Record]) -> None:
        # One after the other, so that their sequences are in order.
        thread = digest_of(records[0].thread_id)
        rows = [{"thread": thread, **to_row(record)} for record in records]
        await session.run(*(Write(APPEND, [row]) for row in rows))

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        found: list[RecordHead] = []
        before = LARGEST
        while len(found) < limit:
            binds = {"before": before, "most": _PAGE}
            rows = await self._connection.fetch(HEADS_OF_ALL, binds)
            heads = [read_head(read_thread(row[9], row[10]), row) for row in rows]
            found += [head for head in heads if matches(condition, None, head.metadata)]
            if len(rows) < _PAGE:
                break
            before = heads[-1].sequence
        return found[:limit]


def _claim(record: Record, expected_parent: str | Unset | None) -> Binds:
    """Return the binds of `CLAIM` for a record that becomes the newest of its thread."""
    named = isinstance(expected_parent, str)
    return {
        "digest": digest_of(record.thread_id),
        "name": cut(encode_text(record.thread_id).encode()),
        "nothing": _NO_PARENT,
        # A delta has a base, so its thread exists.
        "may_begin": int(not named and record.base is None),
    }


def _advance(record: Record, expected_parent: str | Unset | None) -> Binds:
    """Return the binds of `ADVANCE`."""
    return {
        "any_parent": int(expected_parent is UNSET),
        "parent": name_of(expected_parent) if isinstance(expected_parent, str) else _NO_PARENT,
        "newest": name_of(record.checkpoint_id),
        "digest": digest_of(record.thread_id),
    }


def _overwrites(thread: bytes, rebased: Sequence[Record]) -> list[Write]:
    if not rebased:
        return []
    return [Write(OVERWRITE, [{"thread": thread, **to_rewrite(record)} for record in rebased])]


class OracleCheckpointerKeywords(
    OracleKeywords, CheckpointerOptions[StateT], Generic[StateT], total=False
):
    """The keyword arguments of `OracleCheckpointer` beside its own parameters."""


class OracleCheckpointer(DeltaCheckpointer[StateT]):
    """Checkpoints in an Oracle Database.

    Args:
        dsn: See `OraclePool`.
        database: The same, as the Locus SDK names it.
        pool: A pool of oracledb, or an `OraclePool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with an `OraclePool`.
        **keywords: The options of `DeltaCheckpointer`, and the fields of `OracleOptions` by name,
            in place of `options`.
    """

    @checked
    def __init__(
        self,
        dsn: str | None = None,
        *,
        database: str | None = None,
        pool: Pool | OraclePool | None = None,
        options: OracleOptions | None = None,
        **keywords: Unpack[OracleCheckpointerKeywords[StateT]],
    ) -> None:
        named = Keywords(self, keywords)
        options = named.into(OracleOptions, options=options)
        storage = OracleDeltaStorage(dsn or database, pool=pool, options=options)
        super().__init__(storage, **named.rest)
