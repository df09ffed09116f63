"""What a copy reads of a backend: its parts, its items with their vectors, its checkpoints.

A page of a scan has neither the vectors nor the order of the writes. So the names of a namespace
are sorted first, in a temporary file that SQLite creates and deletes, and the items are read one by
one after that. The memory of the process holds one page, however large the namespace is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from datetime import datetime
from typing import Any, Final

from locus_memory._internal.running.paging import batches, paged
from locus_memory.backends.base import Backend
from locus_memory.checkpoint.base import BaseCheckpointer, RestoredCheckpoint
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.delta import apply
from locus_memory.checkpoint.encoding.chain_cache import replay_kind
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.states import Kind, readable
from locus_memory.checkpoint.storage import DeltaStorage
from locus_memory.errors import CheckpointError, ConfigurationError
from locus_memory.retrieval.embedders.marks import mark_of
from locus_memory.store.base import BaseStore, has_semantic_search, scan_all, side_by_side
from locus_memory.store.item import Namespace, Restored, StoreItem, timestamp

__all__ = [
    "PAGE",
    "Names",
    "all_threads",
    "checkpoints_of",
    "heads_of",
    "identity",
    "items_at",
    "opened",
    "read_all",
    "restorable",
]

PAGE: Final = 200
"""How many items are read, written and held at a time."""

_THREADS: Final = 500


@asynccontextmanager
async def opened(backend: str | Backend) -> AsyncGenerator[Backend]:
    """Yield an open backend; the one of a provider string is closed afterwards."""
    if isinstance(backend, Backend):
        await backend.open()
        yield backend
        return
    from locus_memory.registry import open_backend  # noqa: PLC0415 - it imports the backends

    async with open_backend(backend) as found:
        yield found


class Names:
    """Keys of one namespace, in the order in which their items were written.

    Close it: it holds a temporary file.
    """

    def __init__(self) -> None:
        # A database without a name is in a temporary file, of which only a part is in memory.
        self._database = sqlite3.connect("")
        self._database.execute("CREATE TABLE names (moment REAL, key BLOB)")
        self.close = self._database.close

    def add(self, item: StoreItem) -> None:
        """Add the name of an item; those of the same moment have the order of their keys."""
        row = item.updated_at.timestamp(), item.key.encode()
        self._database.execute("INSERT INTO names VALUES (?, ?)", row)

    def __len__(self) -> int:
        """The number of names."""
        return self._database.total_changes

    def __iter__(self) -> Iterator[str]:
        """Yield the keys, that of the oldest write first."""
        rows = self._database.execute("SELECT key FROM names ORDER BY moment, key")
        return (key.decode() for (key,) in rows)


async def items_at(store: BaseStore, namespace: Namespace, keys: Sequence[str]) -> list[StoreItem]:
    """Return the items that exist under these keys, in their order."""
    found = await side_by_side(lambda key: store.get_item(namespace, key), keys)
    return [item for item in found if item is not None]


async def restorable(
    store: BaseStore, namespace: Namespace, keys: Sequence[str], *, vectors: bool = True
) -> list[Restored]:
    """Return the items that exist, each with its vector, ready for `restore`.

    Args:
        store: The store.
        namespace: The namespace.
        keys: The keys; the items are in their order.
        vectors: Whether to read the vectors.
    """
    items = await items_at(store, namespace, keys)
    found: Sequence[Sequence[float] | None] = [None] * len(items)
    if vectors and await has_semantic_search(store):
        found = await side_by_side(lambda item: store.get_embedding(namespace, item.key), items)
    return [
        Restored(
            namespace=item.namespace,
            key=item.key,
            value=item.value,
            metadata=item.metadata,
            text=mark.text if (mark := mark_of(item.metadata)) else None,
            embedding=vector,
            version=item.version,
            created_at=item.created_at,
            updated_at=item.updated_at,
            expires_at=item.expires_at,
        )
        for item, vector in zip(items, found, strict=True)
    ]


async def read_all(
    store: BaseStore, namespace: Namespace, *, vectors: bool = True
) -> AsyncIterator[list[Restored]]:
    """Yield the items of a namespace in pages, in the order of their writes."""
    with closing(Names()) as names:
        async for item in scan_all(store, namespace):
            names.add(item)
        for keys in batches(names, PAGE):
            yield await restorable(store, namespace, keys, vectors=vectors)


def all_threads(checkpointer: BaseCheckpointer) -> AsyncIterator[str]:
    """Yield the ids of all threads, in ascending order."""
    return paged(lambda after: checkpointer.list_threads(_THREADS, after=after))


def _storage_of(checkpointer: BaseCheckpointer) -> DeltaStorage:
    if isinstance(checkpointer, DeltaCheckpointer):
        return checkpointer.storage
    raise ConfigurationError(
        f"threads are copied from a DeltaCheckpointer, not from {type(checkpointer).__name__}"
    )


async def heads_of(checkpointer: BaseCheckpointer, thread_id: str) -> list[RecordHead]:
    """Return the heads of a thread's records, oldest first.

    Raises:
        ConfigurationError: It is a checkpointer of another kind than those of this library.
    """
    return (await _storage_of(checkpointer).list_checkpoints(thread_id, None))[::-1]


def identity(checkpoint: RecordHead | RestoredCheckpoint) -> tuple[Any, ...]:
    """Return what is the same in all copies of a checkpoint, and of no other save."""
    moment, origin = checkpoint.created_at, checkpoint.forked_from
    saved_at = moment if isinstance(moment, datetime) else timestamp(moment)
    return checkpoint.checkpoint_id, saved_at, dict(checkpoint.metadata), origin


async def checkpoints_of(
    checkpointer: BaseCheckpointer, heads: Sequence[RecordHead], start: int = 0
) -> AsyncIterator[RestoredCheckpoint]:
    """Yield the checkpoints of a thread from a place on, each with its state.

    Each record is read once, and a state is held only as long as a later record builds on it. A
    checkpoint that is deleted meanwhile is left out.

    Args:
        checkpointer: The checkpointer.
        heads: All heads of the thread, as `heads_of` returns them.
        start: The place of the first checkpoint to yield.

    Raises:
        CheckpointCorruptError: A record is damaged.
    """
    storage = _storage_of(checkpointer)
    last_use = {head.base: place for place, head in enumerate(heads)}
    states: dict[int, Any] = {}
    for place, head in enumerate(heads[start:], start):
        record = await storage.retrieve(head.thread_id, head.checkpoint_id)
        found = None if record is None else await _replayed(storage, record, states)
        if record is None or found is None:
            continue
        states[record.revision], kind = found
        yield RestoredCheckpoint(
            checkpoint_id=head.checkpoint_id,
            state=readable(states[record.revision], kind),
            metadata=head.metadata,
            created_at=timestamp(head.created_at),
            forked_from=head.forked_from,
            kind=kind.name.lower(),
        )
        for revision in [each for each in states if last_use.get(each, -1) <= place]:
            del states[revision]


async def _replayed(
    storage: DeltaStorage, record: Record, states: dict[int, Any]
) -> tuple[Any, Kind] | None:
    """Return the state and the kind of a record; `None`: it was deleted meanwhile.

    Args:
        storage: The storage.
        record: The record.
        states: The states of some earlier records, by revision.
    """
    if record.base not in states:
        is_whole = record.base is None
        place = record.thread_id, record.checkpoint_id
        chain = [record] if is_whole else await storage.retrieve_chain(*place)
        documents, kind = replay_kind(chain)
        return (documents[-1], kind) if documents else None
    change, letter = record.unpack()
    try:
        return apply(states[record.base], change), Kind(letter)
    except (CheckpointError, ValueError) as error:
        raise record.corrupt(str(error)) from error
