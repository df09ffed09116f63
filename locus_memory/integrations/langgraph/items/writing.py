"""LangGraph's puts and deletes, and items with their moments, through the store contract."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from langgraph.store.base import Op, PutOp

from locus_memory.errors import BackendError, VersionConflictError
from locus_memory.events import emit
from locus_memory.integrations.langgraph.items.index import Vector, VectorIndex
from locus_memory.integrations.langgraph.items.notes import (
    Name,
    Notes,
    Owned,
    name_write,
    updated_at,
)
from locus_memory.store.base import BaseStore, side_by_side
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    StoreItem,
    check_key,
    check_ttl,
)
from locus_memory.store.json_values import encode_json

__all__ = ["PastItem", "Restoring", "renew", "restore", "write"]

OperationT = TypeVar("OperationT", bound=Put | Delete)

_MINUTE: Final = 60.0
_MOST_OPERATIONS: Final = 1000
_MOST_NUMBERS: Final = 100_000
"""How many operations, and numbers in vectors, one call of the database gets."""


class Writing(NamedTuple):
    """The writes of an item.

    Attributes:
        vectors: The puts of its further vectors. Without the item they are not found. So they come
            first, and the results are correct if a write stops midway.
        items: The put or delete of the item, and then that of the list of its further vectors.
        outdated: The names of further vectors that it no longer has.
    """

    vectors: Sequence[Put]
    items: Sequence[Put | Delete]
    outdated: Sequence[Name] = ()


async def write(store: BaseStore, index: VectorIndex | None, ops: Iterable[Op]) -> None:
    """Put and delete items, together with their vectors; the last of several for a key counts.

    Other operations are ignored.

    Nothing is written before all operations are valid and every text has its vector.
    """
    last = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
    writings = await prepared(store, index, list(last.values()))
    await _apply(store, [put for writing in writings for put in writing.vectors])
    await _apply(store, [each for writing in writings for each in writing.items])
    await forget_vectors(store, writings)


async def prepared(
    store: BaseStore, index: VectorIndex | None, ops: Sequence[PutOp]
) -> list[Writing]:
    """Return the writes of operations on different items.

    Raises:
        InvalidArgumentError: An operation is invalid.
    """
    texts = [_checked_texts(index, op) for op in ops]
    if index is None:
        return [_writing(op, [], None) for op in ops]
    records = [Owned(op.namespace, op.key, "", 0).record for op in ops]
    vectors, known = await asyncio.gather(
        index.vectors([text for each in texts for text in each], "document"),
        store.get_batch(records),
    )
    return [
        _writing(
            op,
            [vector for text in each if (vector := vectors[text]) is not None],
            Owned.of((op.namespace, op.key), known.get(record)),
        )
        for op, each, record in zip(ops, texts, records, strict=True)
    ]


def _checked_texts(index: VectorIndex | None, op: PutOp) -> list[str]:
    """Return the texts to embed; operations that the store would refuse are refused first."""
    check_key(op.key)
    if op.value is None:
        return []
    encode_json(dict(op.value))
    check_ttl(op.ttl)
    check_ttl(_seconds(op))
    return [] if index is None else index.texts(op)


def _seconds(op: PutOp) -> float | None:
    return None if op.ttl is None else op.ttl * _MINUTE


def _writing(op: PutOp, vectors: list[Vector], before: Owned | None) -> Writing:
    """Return the writes of an operation, given the further vectors that the item had before."""
    made = _made(op, vectors)
    if before is None:
        return made
    kept = made.items if len(made.items) > 1 else (*made.items, _deleted(before.record))
    return Writing(made.vectors, kept, before.vectors)


def _made(op: PutOp, vectors: list[Vector]) -> Writing:
    if op.value is None:
        return Writing((), (_deleted((op.namespace, op.key)),))
    value, further = dict(op.value), vectors[1:]
    notes = Notes(ttl=op.ttl)
    if further:
        notes = replace(notes, write=name_write(value), count=len(further))
    item = Put(
        namespace=op.namespace,
        key=op.key,
        value=value,
        metadata=notes.metadata(),
        ttl=_seconds(op),
        embedding=vectors[0] if vectors else None,
    )
    return _with_vectors(item, notes, dict(enumerate(further)))


def _deleted(name: Name) -> Delete:
    return Delete(namespace=name[0], key=name[1])


def _with_vectors(item: Put, notes: Notes, vectors: Mapping[int, Vector]) -> Writing:
    """Return the writing of an item with its further vectors, by their numbers."""
    if notes.write is None:
        return Writing((), (item,))
    owned = Owned(item.namespace, item.key, notes.write, notes.count)
    puts = [
        _hidden_put(name, {"key": item.key}, item.ttl, vectors[number])
        for number, name in enumerate(owned.vectors)
        if number in vectors
    ]
    record = _hidden_put(owned.record, {"write": owned.write, "count": owned.count}, item.ttl, None)
    return Writing(puts, (item, record))


def _hidden_put(name: Name, value: Any, ttl: float | None, vector: Vector | None) -> Put:
    namespace, key = name
    # No text: text search does not find it.
    return Put(namespace=namespace, key=key, value=value, ttl=ttl, text="", embedding=vector)


async def _apply(store: BaseStore, operations: Sequence[Put | Delete]) -> None:
    for part in parts(operations):
        puts = [each for each in part if isinstance(each, Put)]
        deletes = [each for each in part if isinstance(each, Delete)]
        if puts and deletes and await _has_transactions(store):
            await store.write_batch(part)
            continue
        if puts:
            await store.put_batch(puts)
        if deletes:
            await store.delete_batch([(each.namespace, each.key) for each in deletes])


async def _has_transactions(store: BaseStore) -> bool:
    if not store.capabilities.transactions:
        # Capabilities that depend on the server are known after opening.
        await store.open()
    return store.capabilities.transactions


async def forget_vectors(store: BaseStore, writings: Iterable[Writing]) -> None:
    """Delete further vectors that were replaced."""
    names = [name for writing in writings for name in writing.outdated]
    for start in range(0, len(names), _MOST_OPERATIONS):
        await store.delete_batch(names[start : start + _MOST_OPERATIONS])


def parts(operations: Iterable[OperationT]) -> Iterator[list[OperationT]]:
    """Yield operations in parts of a size that one call of the database takes."""
    part: list[OperationT] = []
    numbers = 0
    for each in operations:
        size = len(each.embedding or ()) if isinstance(each, Put) else 0
        if part and (len(part) >= _MOST_OPERATIONS or numbers + size > _MOST_NUMBERS):
            yield part
            part, numbers = [], 0
        part.append(each)
        numbers += size
    if part:
        yield part


async def renew(store: BaseStore, items: Iterable[StoreItem]) -> None:
    """Restart the TTL of the items that have a TTL of LangGraph.

    A concurrent write of an item takes precedence. The event `langgraph.renewal_failed` reports a
    failure, and the read that caused the renewal continues.
    """
    mortal = [item for item in items if Notes.of(item.metadata).ttl is not None]
    await side_by_side(lambda item: _renew(store, item), mortal)


async def _renew(store: BaseStore, item: StoreItem) -> None:
    try:
        writing = await _renewed(store, item)
        with suppress(VersionConflictError):
            await _apply(store, writing.items[:1])
            await _apply(store, [*writing.vectors, *writing.items[1:]])
    except BackendError as error:
        emit("langgraph.renewal_failed", error=error, namespace=item.namespace, key=item.key)


async def _renewed(store: BaseStore, item: StoreItem) -> Writing:
    """Return the writes that restart the TTL of an item, without another change."""
    notes = Notes.of(item.metadata)
    noted = replace(notes, updated_at=updated_at(item).isoformat(), version=item.version + 1)
    names: list[Name] = [(item.namespace, item.key)]
    if notes.write is not None:
        names += Owned(item.namespace, item.key, notes.write, notes.count).vectors
    own, *further = await _vectors(store, names)
    put = Put(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        metadata={**item.metadata, **noted.metadata()},
        ttl=(notes.ttl or 0) * _MINUTE,
        if_version=item.version,
        embedding=own,
    )
    kept = {number: vector for number, vector in enumerate(further) if vector is not None}
    return _with_vectors(put, notes, kept)


async def _vectors(store: BaseStore, names: Sequence[Name]) -> list[Vector | None]:
    if not store.capabilities.semantic_search:
        return [None for _ in names]
    return await side_by_side(lambda name: store.get_embedding(*name), names)


@dataclass(frozen=True, slots=True)
class PastItem:
    """An item of another store.

    Attributes:
        namespace: Its namespace.
        key: Its key.
        value: Its value.
        created_at: The moment of its first put.
        updated_at: The moment of its last put.
        ttl: Minutes from its last use until it expires, or `None`.
        expires_at: The moment when it expires, or `None`.
    """

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None = None
    expires_at: datetime | None = None

    def put(self) -> PutOp:
        """Return the put of the item."""
        return PutOp(self.namespace, self.key, self.value, ttl=self.ttl)


@dataclass(frozen=True, slots=True)
class Restoring:
    """The items that a call wrote, and those of the store that stayed, since they are newer."""

    written: Sequence[PastItem] = ()
    kept: Sequence[PastItem] = ()


async def restore(
    store: BaseStore, index: VectorIndex | None, items: Sequence[PastItem]
) -> Restoring:
    """Write items as they were; of two versions of an item, the one that was put last stays.

    Args:
        store: The store.
        index: Computes the vectors of the items that are written.
        items: The items, each name at most once, the oldest write first.

    Raises:
        InvalidArgumentError: An item is invalid; nothing was written.
        StoreCapabilityError: The store has no expiry, and an item has one; nothing was written.
        BackendError: The store failed.
    """
    known = await side_by_side(lambda each: store.get_item(each.namespace, each.key), items)
    wanted = [
        (item, 1 if there is None else there.version + 1)
        for item, there in zip(items, known, strict=True)
        if there is None or _is_older(there, item)
    ]
    kept = [
        item
        for item, there in zip(items, known, strict=True)
        if there is not None and updated_at(there) > item.updated_at
    ]
    if wanted:
        await _write(store, index, wanted)
    return Restoring([item for item, _ in wanted], kept)


def _is_older(there: StoreItem, item: PastItem) -> bool:
    """Return whether an item takes the place of one that is there."""
    moment = updated_at(there)
    return moment < item.updated_at or (moment == item.updated_at and there.value != item.value)


async def _write(
    store: BaseStore, index: VectorIndex | None, items: Sequence[tuple[PastItem, int]]
) -> None:
    writings = await prepared(store, index, [item.put() for item, _ in items])
    pairs = list(zip(writings, items, strict=True))
    # As in `write`: vectors without their item are not found.
    await _restore(
        store, [_restored(put, item) for each, (item, _) in pairs for put in each.vectors]
    )
    puts = [
        _restored(put, item, version)
        for each, (item, version) in pairs
        for put in each.items
        if isinstance(put, Put)
    ]
    await _restore(store, puts)
    lists = [each for writing in writings for each in writing.items if isinstance(each, Delete)]
    if lists:
        await store.delete_batch([(each.namespace, each.key) for each in lists])
    await forget_vectors(store, writings)


async def _restore(store: BaseStore, items: Iterable[Restored]) -> None:
    for part in parts(items):
        await store.restore(part)


def _restored(put: Put, item: PastItem, version: int = 1) -> Restored:
    return Restored(
        namespace=put.namespace,
        key=put.key,
        value=put.value,
        metadata=put.metadata,
        text=put.text,
        embedding=put.embedding,
        version=version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
    )
