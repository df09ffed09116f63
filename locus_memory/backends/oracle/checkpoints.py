"""Checkpoints in Oracle Database: a save is one pipeline, and the load of a chain is one query.

Every write to a thread locks its row first. The keys of the tables keep the rest: a base exists,
and no two records of a thread have one name. A save that replaces a record, or that was refused,
needs a transaction of several round trips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar, Unpack

from typing_extensions import override

from locus_memory._internal.options import Keywords, checked
from locus_memory.backends.oracle import records
from locus_memory.backends.oracle.connection.connection import (
    OraclePool,
    Query,
    Session,
    Write,
)
from locus_memory.backends.oracle.connection.driver import Binds, Pool
from locus_memory.backends.oracle.connection.driver_errors import (
    NO_PARENT,
    NULL_GUARD,
    NULL_GUARD_IN_UPDATE,
    UNIQUE_VIOLATED,
)
from locus_memory.backends.oracle.items.naming import BEYOND, LONGEST, cut, first_of, is_cut
from locus_memory.backends.oracle.options import OracleKeywords, OracleOptions
from locus_memory.backends.record_rows import LARGEST, clamped, digest_of
from locus_memory.backends.sql.storage import SQLDeltaStorage, Steps, taken
from locus_memory.checkpoint.base import UNSET, StateT, Unset
from locus_memory.checkpoint.chain import CheckpointerOptions, DeltaCheckpointer
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import check_range, copied
from locus_memory.errors import BackendError, CheckpointConflictError
from locus_memory.store.encoding import encode_text, prefix_upper_bound
from locus_memory.store.filters import Condition, matches

__all__ = ["OracleCheckpointer", "OracleDeltaStorage"]

T = TypeVar("T")

_PAGE: Final = 200

_NO_PARENT: Final = b"\0"
"""The name of no checkpoint; a NULL would have no type."""

_REFUSALS: Final = (UNIQUE_VIOLATED, NULL_GUARD, NULL_GUARD_IN_UPDATE, NO_PARENT)
"""The errors of an append that one pipeline cannot do."""


class OracleDeltaStorage(SQLDeltaStorage[OraclePool]):
    """Records in an Oracle Database, safe for many tasks, event loops and processes.

    Args:
        dsn: See `OraclePool`.
        pool: A pool of oracledb, or an `OraclePool`, to use instead; it is not closed here.
        options: How to connect, and where the tables are; ignored with an `OraclePool`.
        **keywords: The fields of `OracleOptions` by name, in place of `options`.
    """

    _sql: ClassVar = records

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
    async def _read(self, steps: Callable[[], Steps[T]], *blamed: str | None) -> T:
        return await taken(steps(), self._connection.fetch)

    @override
    async def _write(self, steps: Callable[[], Steps[T]]) -> T:
        async def work(session: Session) -> T:
            result = await taken(steps(), session.step)
            await session.commit()
            return result

        return await self._connection.transact(work)

    @override
    async def _append(self, record: Record, expected_parent: str | Unset | None) -> int | None:
        """Append in one round trip; `None` if one is not enough."""
        thread = digest_of(record.thread_id)
        # A delta has a base, so its thread exists.
        may_begin = record.base is None and not isinstance(expected_parent, str)
        claim = _claim(record.thread_id, may_begin=may_begin)
        found = {"thread": thread, "revision": record.revision}

        async def work(session: Session) -> int:
            ((row,),) = await session.run(
                Write(records.CLAIM, [claim]),
                Write(records.ADVANCE, [_advance(record, expected_parent)]),
                Write(records.APPEND, [{"thread": thread, **records.to_row(record)}]),
                Query(records.SEQUENCE, found),
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

    @override
    def _claimed(self, thread_id: str) -> Steps[bytes]:
        claim = _claim(thread_id, may_begin=True)
        yield records.CLAIM, claim
        if is_cut(claim["name"]):
            long_name = records.thread_row(thread_id)["long_name"]
            yield records.SET_LONG_NAME, {"long_name": long_name, "digest": claim["digest"]}
        return digest_of(thread_id)

    @override
    def _renewed(self, thread: bytes) -> Steps[None]:
        newest = yield records.NEWEST, {"thread": thread}
        if newest:
            yield records.RENEW, {"newest": newest[0][0], "digest": thread}
        else:
            yield records.REMOVE_THREAD, {"digest": thread}

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
        rows = await self._connection.fetch(records.THREADS, binds)
        if not any(is_cut(name) for name, _ in rows) and len(low) <= LONGEST:
            return [records.read_thread(*row) for row in rows]
        # Names that are cut are in no order: all of them are sorted here.
        rows = await self._connection.fetch(records.THREADS, {**binds, "most": LARGEST})
        wanted = {whole or name: (name, whole) for name, whole in rows}
        found = sorted(each for each in wanted if low <= each < high)
        return [records.read_thread(*wanted[each]) for each in found[:limit]]

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        last = clamped(through)

        async def work(session: Session) -> int:
            binds, count = {"thread": digest_of(source), "after": -1, "through": last}, 0
            while rows := await session.fetch(records.RECORDS, {**binds, "most": _PAGE}):
                found = [copied(records.read_record(source, row), target, through) for row in rows]
                if not count:
                    # The thread must not exist.
                    await taken(self._claimed(target), session.step)
                    await session.step(records.ADVANCE, _advance(found[0], None))
                # One after the other, so that their sequences are in order.
                copies = [{"thread": digest_of(target), **records.to_row(each)} for each in found]
                await session.run(*(Write(records.APPEND, [copy]) for copy in copies))
                binds["after"], count = found[-1].sequence, count + len(found)
            if count:
                await taken(self._renewed(digest_of(target)), session.step)
            await session.commit()
            return count

        try:
            return await self._connection.transact(work)
        except BackendError as error:
            existing = await self.find(target)
            if existing is not None and any(code in str(error) for code in _REFUSALS):
                raise CheckpointConflictError(target, None, existing.checkpoint_id) from None
            raise

    @override
    async def query_by_metadata(self, condition: Condition, limit: int) -> list[RecordHead]:
        found: list[RecordHead] = []
        before = LARGEST
        while len(found) < limit:
            binds = {"before": before, "most": _PAGE}
            rows = await self._connection.fetch(records.HEADS_OF_ALL, binds)
            heads = [records.read_head(records.read_thread(row[9], row[10]), row) for row in rows]
            found += [head for head in heads if matches(condition, None, head.metadata)]
            if len(rows) < _PAGE:
                break
            before = heads[-1].sequence
        return found[:limit]


def _claim(thread_id: str, *, may_begin: bool) -> Binds:
    """Return the binds of `CLAIM`.

    Args:
        thread_id: The thread.
        may_begin: Whether it is made unless it exists.
    """
    return {
        "digest": digest_of(thread_id),
        "name": cut(encode_text(thread_id).encode()),
        "nothing": _NO_PARENT,
        "may_begin": int(may_begin),
    }


def _advance(record: Record, expected_parent: str | Unset | None) -> Binds:
    """Return the binds of `ADVANCE`."""
    return {
        "any_parent": int(expected_parent is UNSET),
        "parent": records.name_of(expected_parent)
        if isinstance(expected_parent, str)
        else _NO_PARENT,
        "newest": records.name_of(record.checkpoint_id),
        "digest": digest_of(record.thread_id),
    }


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
