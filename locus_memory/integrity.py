"""Verification: a walk over all stored data that finds damage.

`verify` reads the items of a store and the checkpoints of every thread. It names the damaged ones
and continues. After a name that cannot be read, it continues with the next name whose beginning it
can guess.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar

import orjson
from pydantic import TypeAdapter

from locus_memory.backends.base import Backend, store_of
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.encoding.chain_cache import replay_kind
from locus_memory.checkpoint.record import Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage
from locus_memory.errors import (
    BackendCorruptError,
    CheckpointCorruptError,
    EncryptionError,
    InvalidArgumentError,
)
from locus_memory.store.base import BaseStore, side_by_side
from locus_memory.store.item import Namespace

__all__ = ["Finding", "verify", "verify_checkpoints", "verify_items"]

T = TypeVar("T")

_DAMAGE: Final = (BackendCorruptError, CheckpointCorruptError, EncryptionError)
_PARTS: Final = TypeAdapter(list[str])
_PAGE: Final = 100
_ALL: Final = 1_000_000
_START: Final = str(2**63 - 1)
"""A number in a cursor that is above every sequence of a thread."""

_LADDER: Final = (*map(chr, range(0x20, 0x80)), "\u0100", "\u0800", "\u4e00", "\U00010000")
"""Characters that the names after an unreadable one may continue with."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result for one item, checkpoint or database.

    Attributes:
        kind: `"item"`, `"checkpoint"`, or `"database"` for anything else.
        place: The labels and the key of an item, or the thread and the id of a checkpoint; fewer
            if it is not known which of them is damaged.
        reason: Why it is damaged; `None`: it is intact.
        cursor: Pass it as `after` to continue after this finding.
    """

    kind: str
    place: tuple[str, ...]
    reason: str | None
    cursor: str


async def verify(backend: Backend, *, after: str | None = None) -> AsyncGenerator[Finding]:
    """Yield a finding for each stored item and checkpoint: whether it is intact.

    Args:
        backend: The backend to verify.
        after: The `cursor` of a finding of an earlier walk.

    Raises:
        InvalidArgumentError: `after` is not a cursor.
        BackendError: The database fails for another reason than damage.
    """
    kind, *place = _parsed(after)
    if kind == "":
        for problem in await backend.problems():
            yield Finding("database", (), problem, _cursor("item"))
    if kind != "thread" and (store := store_of(backend)) is not None:
        name = (tuple(place[:-1]), place[-1]) if len(place) > 1 else None
        async for finding in verify_items(store, after=name):
            yield finding
    at = (place[0], int(place[1]) if place[1:] else None) if kind == "thread" else None
    async for finding in verify_checkpoints(backend.checkpointer, after=at):
        yield finding


def _cursor(kind: str, *place: str) -> str:
    return orjson.dumps([kind, *place]).decode()


def _parsed(cursor: str | None) -> list[str]:
    """Return the parts of a cursor; the first is empty at the beginning."""
    if cursor is None:
        return [""]
    try:
        kind, *place = parts = _PARTS.validate_json(cursor, strict=True)
        is_thread = kind == "thread" and place and len(list(map(int, place[1:]))) <= 1
        if is_thread or kind in ("", "item"):
            return parts
    except ValueError:
        pass
    raise InvalidArgumentError('after is the cursor of a finding, such as ["thread","t"]')


async def verify_items(
    store: BaseStore, *, after: tuple[Namespace, str] | None = None
) -> AsyncGenerator[Finding]:
    """Yield the items of a store in the order of their names, each with its vector.

    Args:
        store: The store to verify.
        after: Only items after this namespace and key.
    """
    if after is not None:
        async for finding in _items_in(store, *after):
            yield finding

    async def read(limit: int, start: Namespace | None) -> list[Namespace]:
        return await store.list_namespaces(None, limit, after=start)

    walk = _Walk(read, _namespaces_beyond, None if after is None else after[0])
    async for namespace in walk.names():
        if isinstance(namespace, Exception):
            yield Finding("item", walk.last or (), _unread(namespace), _cursor("item"))
            continue
        async for finding in _items_in(store, namespace, None):
            yield finding


async def _items_in(
    store: BaseStore, namespace: Namespace, after: str | None
) -> AsyncGenerator[Finding]:
    keys: list[str] | None = []
    while keys is not None:
        if errors := await _errors_of_vectors(store, namespace, keys):
            for key, error in errors:
                yield _item(namespace, key, error)
            after = keys[-1]
        try:
            items = await store.scan(namespace, _PAGE, after=after)
        except _DAMAGE:
            break
        keys = [item.key for item in items] or None
        if after is not None and keys is not None and keys[-1] <= after:
            break
    else:
        return

    # An item of this page is damaged: read the items one by one.
    async def read(limit: int, start: str | None) -> list[str]:
        return await store.list_keys(namespace, limit, after=start)

    walk = _Walk(read, _beyond, after)
    async for found in walk.names():
        if isinstance(found, Exception):
            cursor = _cursor("item", *namespace, walk.last or "")
            yield Finding("item", namespace, _unread(found), cursor)
            continue
        error = await _error_of(store.get_item(namespace, found))
        ((_, worse),) = await _errors_of_vectors(store, namespace, [found])
        yield _item(namespace, found, error or worse)


def _item(namespace: Namespace, key: str, error: Exception | None) -> Finding:
    reason = None if error is None else str(error)
    return Finding("item", (*namespace, key), reason, _cursor("item", *namespace, key))


def _unread(error: Exception) -> str:
    return f"{error}; the names that follow it were passed over"


async def _errors_of_vectors(
    store: BaseStore, namespace: Namespace, keys: Sequence[str]
) -> list[tuple[str, Exception | None]]:
    """Return for each key the error of its vector, or `None`."""
    if not store.capabilities.semantic_search:
        return [(key, None) for key in keys]
    errors = await side_by_side(lambda key: _error_of(store.get_embedding(namespace, key)), keys)
    return list(zip(keys, errors, strict=True))


async def _error_of(call: Awaitable[Any]) -> Exception | None:
    try:
        await call
    except _DAMAGE as error:
        return error
    return None


async def verify_checkpoints(
    checkpointer: BaseCheckpointer, *, after: tuple[str, int | None] | None = None
) -> AsyncGenerator[Finding]:
    """Yield the checkpoints of every thread: threads by name, checkpoints newest first.

    Args:
        checkpointer: The checkpointer to verify.
        after: Only what follows this thread, or this sequence of it.
    """

    async def read(limit: int, start: str | None) -> list[str]:
        return await checkpointer.list_threads(limit, after=start)

    thread, before = after or (None, None)
    if thread is not None and before is not None:
        async for finding in _findings_in(checkpointer, thread, before):
            yield finding
    walk = _Walk(read, _beyond, thread)
    async for found in walk.names():
        if isinstance(found, Exception):
            yield Finding("checkpoint", (), _unread(found), _cursor("thread", walk.last or ""))
            continue
        count = 0
        async for finding in _findings_in(checkpointer, found, None):
            yield finding
            count += 1
        # A thread that was deleted meanwhile is no longer listed.
        if not count and found in await _listed(checkpointer, found):
            reason = "it is listed, but none of its checkpoints is found"
            yield Finding("checkpoint", (found,), reason, _cursor("thread", found))


async def _findings_in(
    checkpointer: BaseCheckpointer, thread: str, before: int | None
) -> AsyncIterator[Finding]:
    cursor = _cursor("thread", thread, _START)
    if not isinstance(checkpointer, DeltaCheckpointer):
        # Only the contract is known of this checkpointer.
        for info in await checkpointer.list_with_metadata(thread, _ALL):
            error = await _error_of(checkpointer.load(thread, info.checkpoint_id))
            yield _checkpoint(thread, info.checkpoint_id, error, cursor)
        return
    async for sequence, head in _heads_of(checkpointer.storage, thread, before):
        cursor = cursor if sequence is None else _cursor("thread", thread, str(sequence))
        if isinstance(head, Exception):
            yield _checkpoint(thread, getattr(head, "checkpoint_id", None), head, cursor)
        else:
            name = head.checkpoint_id
            error = await _error_of(checkpointer.storage.with_chain(thread, name, _replayed))
            yield _checkpoint(thread, name, error, cursor)


def _checkpoint(thread: str, name: str | None, error: Exception | None, cursor: str) -> Finding:
    place = (thread,) if name is None else (thread, name)
    return Finding("checkpoint", place, None if error is None else str(error), cursor)


async def _listed(checkpointer: BaseCheckpointer, thread: str) -> list[str]:
    try:
        return await checkpointer.list_threads(1, prefix=thread)
    except _DAMAGE:
        return []


def _replayed(chain: Sequence[Record]) -> int:
    return len(replay_kind(chain)[0])


Place = tuple[int | None, RecordHead | Exception]
"""A sequence (`None` if unknown), and the head or the error of its damage."""


async def _heads_of(storage: DeltaStorage, thread: str, before: int | None) -> AsyncIterator[Place]:
    """Yield the heads of a thread below a sequence, newest first."""
    while True:
        try:
            heads = await storage.list_checkpoints(thread, _PAGE, before=before)
        except _DAMAGE as error:
            async for place in _heads_one_by_one(storage, thread, before, error):
                yield place
            return
        if heads and before is not None and heads[-1].sequence >= before:
            yield None, BackendCorruptError("an index is damaged: checkpoints are out of order")
            return
        for head in heads:
            yield head.sequence, head
        if not heads:
            return
        before = heads[-1].sequence


async def _heads_one_by_one(
    storage: DeltaStorage, thread: str, before: int | None, error: Exception
) -> AsyncIterator[Place]:
    try:
        sequences = await storage.sequences(thread)
    except _DAMAGE:
        yield None, error
        return
    for sequence in sequences:
        if before is not None and sequence >= before:
            continue
        try:
            for head in await storage.list_checkpoints(thread, 1, before=sequence + 1):
                yield sequence, head
        except _DAMAGE as found:
            yield sequence, found


class _Walk(Generic[T]):
    """Names in order, page by page, past any damaged ones.

    Args:
        read: Returns at most N names after a given one.
        beyond: Yields guesses of names after a given one, nearest first, without reading.
        after: The name to start after.
    """

    def __init__(
        self,
        read: Callable[[int, T | None], Awaitable[list[T]]],
        beyond: Callable[[T | None], Iterable[T]],
        after: T | None,
    ) -> None:
        self._read = read
        self._beyond = beyond
        self.last = after

    async def names(self) -> AsyncIterator[T | Exception]:
        """Yield the names, and an error where one cannot be read."""
        limit = _PAGE
        while True:
            try:
                page = await self._read(limit, self.last)
            except _DAMAGE as error:
                if limit > 1:
                    limit //= 2
                    continue
                yield error
                if not await self._skip():
                    return
                continue
            if not page:
                return
            limit = min(2 * limit, _PAGE)
            if not self._is_ahead(page):
                # Continuing would loop forever.
                yield BackendCorruptError("an index is damaged: names come out of their order")
                return
            for name in page:
                self.last = name
                yield name

    def _is_ahead(self, page: list[Any]) -> bool:
        """Whether the names of a page are in order and after the last one."""
        names: list[Any] = [*([] if self.last is None else [self.last]), *page]
        return all(before < name for before, name in pairwise(names))

    async def _skip(self) -> bool:
        """Continue after an unreadable name; return whether there is a place to continue."""
        for name in self._beyond(self.last):
            try:
                found = await self._read(1, name)
            except _DAMAGE:
                continue
            self.last = name
            return bool(found)
        return False


def _beyond(name: str | None) -> Iterator[str]:
    """Yield texts that sort after a name, each further away."""
    name = name or ""
    step = 1
    while step <= len(name):
        head, last = name[: len(name) - step], name[len(name) - step]
        if last < "\ud7ff":
            yield head + chr(ord(last) + 1)
        step *= 2
    yield from (each for each in _LADDER if each > name[:1])


def _namespaces_beyond(namespace: Namespace | None) -> Iterator[Namespace]:
    names = namespace or ()
    for place in range(len(names) - 1, -1, -1):
        for text in _beyond(names[place]):
            yield (*names[:place], text)
    if not namespace:
        yield from ((text,) for text in _LADDER)
