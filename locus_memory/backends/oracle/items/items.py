"""Items as rows: the database calls of the store's verbs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from locus_memory.backends.oracle.connection.connection import (
    OraclePool,
    Session,
    Write,
)
from locus_memory.backends.oracle.connection.driver import Binds, Row
from locus_memory.backends.oracle.connection.driver_errors import UNIQUE_VIOLATED
from locus_memory.backends.oracle.items import queries
from locus_memory.backends.oracle.items.naming import Address, is_cut, split
from locus_memory.backends.oracle.items.queries import Arguments
from locus_memory.backends.oracle.items.ranges import Scope, key_condition
from locus_memory.backends.oracle.items.rows import (
    ItemRow,
    expiry,
    item_of,
    micros,
    read_vector,
)
from locus_memory.backends.oracle.search.hits import hits_of, selected
from locus_memory.backends.oracle.search.texts import stems_text
from locus_memory.backends.selection import KeyRange, Page
from locus_memory.errors import BackendError, VersionConflictError
from locus_memory.store.encoding import decode_namespace, decode_text, encode_namespace
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem, embedding_numbers

__all__ = [
    "clear",
    "get_values",
    "newest",
    "purge",
    "read_clock",
    "read_item",
    "read_vector_at",
    "scan",
    "scan_keys",
    "write",
]

_TOGETHER: Final = 500
"""Names of a list: Oracle takes 1,000 at most."""

_EPOCH: Final = 2_440_588
"""The day 1970-01-01 in the count of `queries.MOMENT`."""

_RACES: Final = 20
"""How often a write starts over because another one created the same item meanwhile."""


@dataclass(slots=True)
class _State:
    """An item during a write.

    Attributes:
        version: Its version; 0: it does not exist, or is expired.
        created_at: Microseconds since the epoch.
        updated_at: Likewise.
        is_stored: Whether there is a row.
        row: The last put; `None`: a delete, or nothing.
        order: The number of the last put.
    """

    version: int = 0
    created_at: int = 0
    updated_at: int = 0
    is_stored: bool = False
    row: ItemRow | None = None
    order: int = 0


@dataclass(slots=True)
class _Plan:
    """The states of the items of a write, and its results."""

    now: int
    states: dict[bytes, _State]
    results: list[int] = field(default_factory=list[int])

    def do(self, operations: Sequence[ItemRow | Address]) -> None:
        """Do the operations in order, on the states.

        Raises:
            VersionConflictError: One `if_version` does not hold.
        """
        for number, each in enumerate(operations):
            address = each.address if isinstance(each, ItemRow) else each
            state = self.states[address.name]
            if address.if_version not in (None, state.version):
                raise VersionConflictError(
                    address.if_version or 0,
                    state.version,
                    decode_namespace(address.path),
                    decode_text(address.key),
                )
            if isinstance(each, ItemRow):
                if not state.version:
                    state.created_at = state.updated_at = self.now
                state.version += 1
                state.updated_at = max(self.now, state.updated_at)
                if (past := each.past) is not None:
                    state.version, state.created_at = past.version, micros(past.created_at)
                    state.updated_at = micros(past.updated_at)
                state.row, state.order = each, number
                self.results.append(state.version)
            else:
                self.results.append(int(state.version > 0))
                state.version, state.row = 0, None

    def puts(self) -> list[tuple[ItemRow, _State]]:
        """Return the items to write, in the order of their puts."""
        written = [(state.row, state) for state in self.states.values() if state.row is not None]
        return sorted(written, key=lambda each: each[1].order)

    def deletes(self) -> list[Binds]:
        """Return the binds of the rows to delete."""
        return [
            {"name": name}
            for name, state in self.states.items()
            if state.is_stored and state.row is None
        ]


async def write(
    pool: OraclePool, operations: Sequence[ItemRow | Address], now: datetime
) -> list[int]:
    """Put the rows and delete the items at the addresses, all or nothing.

    One round trip locks the rows, and another one writes and commits.

    Returns:
        For each put the new version, for each delete whether the item existed, in order.

    Raises:
        VersionConflictError: One `if_version` does not hold; nothing is written.
    """

    async def once(session: Session) -> list[int]:
        plan = _Plan(micros(now), await _locked(session, operations, micros(now)))
        plan.do(operations)
        writes = _writes(pool, plan, now)
        if writes:
            await session.run(*writes, commit=True)
        return plan.results

    for _ in range(_RACES):
        try:
            return await pool.transact(once)
        except BackendError as error:
            # Another write created one of the items after this one had looked for it. The cause
            # of an error that quotes a value is not kept; its code is in the message.
            if UNIQUE_VIOLATED not in str(error):
                raise
    return await pool.transact(once)


async def _locked(
    session: Session, operations: Sequence[ItemRow | Address], now: int
) -> dict[bytes, _State]:
    """Lock the rows of the items that exist, and return the states of all items."""
    addresses = [each.address if isinstance(each, ItemRow) else each for each in operations]
    states = {address.name: _State() for address in addresses}
    for statement, binds in _in_lists(queries.lock_many, sorted(states)):
        for name, version, created, updated, expires in await session.fetch(statement, binds):
            states[name] = _State(version if expires > now else 0, created, updated, is_stored=True)
    return states


def _in_lists(make: Any, names: Sequence[bytes]) -> Iterable[tuple[str, Binds]]:
    """Yield statements for the names, with their binds; their lengths are powers of two."""
    for start in range(0, len(names), _TOGETHER):
        some = list(names[start : start + _TOGETHER])
        # So there are few different statements for the server to parse.
        count = min(1 << (len(some) - 1).bit_length(), _TOGETHER)
        some += some[-1:] * (count - len(some))
        yield make(count), {f"n{number}": name for number, name in enumerate(some)}


def _writes(pool: OraclePool, plan: _Plan, now: datetime) -> list[Write]:
    """Return the statements for a plan."""
    features, puts = pool.features, plan.puts()
    old = [{"name": row.address.name} for row, state in puts if state.is_stored]
    writes = [
        Write(queries.DELETE, plan.deletes()),
        *_puts(puts, now, native_json=features.native_json),
    ]
    rows = [row for row, _ in puts]
    if features.has_oracle_text:
        stems = [
            {"stems": stems_text(row.words.elements()) or None, "name": row.address.name}
            for row in rows
        ]
        writes.append(Write(queries.SET_STEMS, stems))
    else:
        words = [each for row in rows for each in row.word_rows()]
        writes += [Write(queries.DROP_WORDS, old), Write(queries.ADD_WORDS, words)]
    if features.has_vectors:
        vectors = [each for row in rows if (each := row.vector_row())]
        writes += [Write(queries.DROP_VECTOR, old), Write(queries.INSERT_VECTOR, vectors)]
    return [each for each in writes if each.rows]


def _puts(
    puts: Sequence[tuple[ItemRow, _State]], now: datetime, *, native_json: bool
) -> list[Write]:
    """Return the statements for the items themselves, whose revisions are in the order of puts."""
    found: list[Write] = []
    for is_stored, written in groupby(puts, key=lambda each: each[1].is_stored):
        make, statement = (_binds, queries.UPDATE) if is_stored else (_whole, queries.INSERT)
        rows = [make(row, state, now, native_json=native_json) for row, state in written]
        found.append(Write(statement, rows))
    return found


def _binds(row: ItemRow, state: _State, now: datetime, *, native_json: bool) -> Binds:
    """Return the binds of `queries.UPDATE`."""
    return {
        "name": row.address.name,
        "version": state.version,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "expires_at": expiry(row, now),
        "words": row.words.total(),
        "checksum": row.checksum,
        "fields": row.fields(native_json=native_json),
        "document": row.document,
    }


def _whole(row: ItemRow, state: _State, now: datetime, *, native_json: bool) -> Binds:
    """Return the binds of `queries.INSERT`."""
    place = {"scope": row.address.scope, "long_name": row.address.long_name}
    return _binds(row, state, now, native_json=native_json) | place


async def read_item(pool: OraclePool, address: Address, now: datetime) -> StoreItem | None:
    """Return the item at an address, unless it is expired."""
    rows = await pool.fetch(queries.GET, {"name": address.name, "now": micros(now)})
    return item_of(rows[0]) if rows else None


async def get_values(
    pool: OraclePool, addresses: Sequence[Address], now: datetime
) -> dict[Address, Any]:
    """Return the values of the items that exist, by address."""
    given = {each.name: each for each in addresses}
    found = await _get_items(pool, list(given), micros(now))
    return {given[name]: item.value for name, item in found.items()}


async def _get_items(pool: OraclePool, names: Sequence[bytes], now: int) -> dict[bytes, StoreItem]:
    """Return the items that exist, by name."""
    found: dict[bytes, StoreItem] = {}
    for statement, binds in _in_lists(queries.get_many, names):
        for row in await pool.fetch(statement, {**binds, "now": now}):
            found[row[0]] = item_of(row)
    return found


async def read_vector_at(pool: OraclePool, address: Address, now: datetime) -> list[float] | None:
    """Return the vector of the item at an address, or `None`.

    Raises:
        BackendCorruptError: The vector is damaged.
    """
    rows = await pool.fetch(queries.GET_VECTOR, {"name": address.name, "now": micros(now)})
    return embedding_numbers(read_vector(rows[0])) if rows else None


async def read_clock(pool: OraclePool) -> float:
    """Return the time of the server, in seconds since the epoch."""
    ((text,),) = await pool.fetch(queries.MOMENT, {})
    day, _, second = text.partition(" ")
    return (int(day) - _EPOCH) * 86_400 + float(second)


async def scan(pool: OraclePool, scope: Scope, keys: KeyRange, limit: int) -> list[StoreItem]:
    """Return full items of one namespace in key order."""
    rows = await _page(pool, scope, keys, limit, queries.COLUMNS)
    if not any(is_cut(row[0]) for row in rows):
        return [item_of(row) for row in rows]
    ordered = [name for name, _ in await _in_order(pool, scope, keys, limit)]
    items = await _get_items(pool, ordered, scope.now)
    return [items[name] for name in ordered if name in items]


async def scan_keys(pool: OraclePool, scope: Scope, keys: KeyRange, limit: int) -> list[str]:
    """Return keys of one namespace in order."""
    rows = await _page(pool, scope, keys, limit, 'i."NAME"')
    if not any(is_cut(row[0]) for row in rows):
        return [decode_text(split(row[0])[1]) for row in rows]
    ordered = await _in_order(pool, scope, keys, limit)
    return [decode_text(key) for _, key in ordered]


async def _page(
    pool: OraclePool, scope: Scope, keys: KeyRange, limit: int, columns: str
) -> list[Row]:
    if not limit:
        return []
    arguments = Arguments()
    conditions = _conditions(scope, keys, arguments)
    statement = queries.scan(
        conditions, arguments.bind_new(limit), columns=columns, descending=keys.descending
    )
    return await pool.fetch(statement, arguments.binds)


def _conditions(scope: Scope, keys: KeyRange, arguments: Arguments) -> str:
    parts = (
        scope.condition(arguments),
        scope.live(arguments),
        key_condition(keys, encode_namespace(scope.namespace), arguments),
    )
    return " AND ".join(parts)


async def _in_order(
    pool: OraclePool, scope: Scope, keys: KeyRange, limit: int
) -> list[tuple[bytes, str]]:
    """Return names and encoded keys in order, where some names are cut and in no order.

    It reads the names of all items in the range.
    """
    arguments = Arguments()
    statement = queries.all_names(_conditions(scope, keys, arguments))
    rows = await pool.fetch(statement, arguments.binds)
    found = [(name, split(whole or name)[1]) for name, whole in rows]
    low, high = keys.bounds()
    wanted = [each for each in found if low <= each[1] and (high is None or each[1] < high)]
    return sorted(wanted, key=lambda each: each[1], reverse=keys.descending)[:limit]


async def newest(
    pool: OraclePool, scope: Scope, condition: Condition, page: Page
) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first."""

    async def query(offset: int, size: int) -> list[Row]:
        arguments = Arguments()
        conditions = selected(pool, scope, condition, arguments)
        skip, most = arguments.bind_new(offset), arguments.bind_new(size)
        statement = queries.newest(conditions, offset=skip, most=most)
        return await pool.fetch(statement, arguments.binds)

    return [item for item, _ in await hits_of(scope, condition, query, page)]


async def clear(pool: OraclePool, scope: Scope) -> int:
    """Delete all items in the scope; return how many of them were not expired."""
    if not scope.is_exact:
        return await _clear_by_name(pool, scope)
    bounds = {"low": scope.low, "high": scope.high}

    async def work(session: Session) -> int:
        await session.execute(queries.CLEAR_EXPIRED, {**bounds, "now": scope.now})
        count = await session.execute(queries.CLEAR, bounds)
        await session.commit()
        return count

    return await pool.transact(work)


async def _clear_by_name(pool: OraclePool, scope: Scope) -> int:
    """Delete the items of a scope whose bounds are in names of other namespaces as well."""

    async def work(session: Session) -> int:
        arguments = Arguments()
        statement = queries.all_names(scope.condition(arguments))
        rows = await session.fetch(statement, arguments.binds)
        within = {
            name for name, whole in rows if scope.holds(decode_namespace(split(whole or name)[0]))
        }
        live = 0
        for query, binds in _in_lists(queries.lock_many, sorted(within)):
            found = {row[0]: row[3] > scope.now for row in await session.fetch(query, binds)}
            await session.run(Write(queries.DELETE, [{"name": name} for name in found]))
            live += sum(found.values())
        await session.commit()
        return live

    return await pool.transact(work)


async def purge(pool: OraclePool, now: datetime, limit: int) -> None:
    """Delete some of the expired items."""
    moment = {"now": micros(now)}

    async def work(session: Session) -> None:
        rows = await session.fetch(queries.EXPIRED, {**moment, "most": limit})
        if rows:
            gone = [{"name": name, **moment} for name in sorted(row[0] for row in rows)]
            await session.run(Write(queries.DELETE_EXPIRED, gone), commit=True)

    await pool.transact(work)
