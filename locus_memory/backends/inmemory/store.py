"""The in-memory store: the reference that every other store is compared with."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from typing_extensions import override

from locus_memory._internal.options import checked
from locus_memory.backends.checked_store import CheckedStore
from locus_memory.backends.inmemory.index import Expiry
from locus_memory.backends.inmemory.space import (
    Content,
    Record,
    Space,
    best,
    newest,
    ranked,
    similar,
)
from locus_memory.backends.selection import KeyRange, Page, Past, Selection
from locus_memory.errors import BackendClosedError, ConfigurationError, VersionConflictError
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    embedding_numbers,
)
from locus_memory.store.listing import Listing

__all__ = ["InMemoryStore"]


class _Change(NamedTuple):
    """An operation, and what it brings; a delete brings nothing."""

    operation: Put | Delete
    content: Content | None


class InMemoryStore(CheckedStore[_Change]):
    """Items in dictionaries, gone with the process; for tests and for short-lived agents.

    Each verb holds one lock and never awaits, so a store may be shared by tasks and threads.

    Args:
        embedding_dimension: The only vector length to take, or `None` for any; then a search
            sees the vectors that are as long as the query.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: An `embedding_dimension` below 1.
    """

    @checked
    def __init__(
        self,
        *,
        embedding_dimension: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if embedding_dimension is not None and embedding_dimension < 1:
            raise ConfigurationError("memory: needs embedding_dimension >= 1")
        self._dimension = embedding_dimension
        self._clock = clock
        self._lock = threading.Lock()
        self._spaces: dict[Namespace, Space] = {}
        self._expiry = Expiry()
        self._sequence = itertools.count(1)
        self._closed = False

    def __repr__(self) -> str:
        return "InMemoryStore()"

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        """Everything."""
        return StoreCapabilities(
            search=True,
            prefix_search=True,
            semantic_search=True,
            embedding_dimension=self._dimension,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    @override
    def _encode(self, operation: Put | Delete, vector: bytes | None) -> _Change:
        if isinstance(operation, Delete):
            return _Change(operation, None)
        return _Change(operation, Content.of(operation, vector))

    @override
    async def _write(self, operations: Sequence[_Change]) -> list[int]:
        undo: list[tuple[Namespace, str, Record | None]] = []
        results: list[int] = []
        with self._locked() as now:
            try:
                for change in operations:
                    namespace, key = change.operation.namespace, change.operation.key
                    old = self._expect(namespace, key, change.operation.if_version)
                    new = self._renew(old, change, now)
                    undo.append((namespace, key, old))
                    self._set(namespace, key, new)
                    results.append(old is not None if new is None else new.past.version)
            except VersionConflictError:
                for name_and_record in reversed(undo):
                    self._set(*name_and_record)
                for namespace in {name for name, _, _ in undo} & self._spaces.keys():
                    self._spaces[namespace].restore_order()
                raise
        return results

    @override
    async def _get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        with self._locked():
            return self._find(namespace, key)

    @override
    async def _get_values(
        self, names: Sequence[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        with self._locked():
            found = {name: self._find(*name) for name in names}
        return {name: item.value for name, item in found.items() if item is not None}

    @override
    async def _scan(self, namespace: Namespace, keys: KeyRange, limit: int) -> list[StoreItem]:
        with self._locked():
            space = self._spaces.get(namespace)
            if space is None:
                return []
            found = space.between(keys.prefix or "", keys.after, descending=keys.descending)
            return [space.item(key) for key in itertools.islice(found, min(limit, sys.maxsize))]

    @override
    async def _list_namespaces(self, listing: Listing, limit: int) -> list[Namespace]:
        with self._locked():
            found = {cut for namespace in self._spaces if (cut := listing.cut(namespace))}
        return sorted(found)[:limit]

    @override
    async def _clear(self, namespace: Namespace, *, recursive: bool) -> int:
        with self._locked():
            spaces = self._within(namespace, recursive=recursive)
            names = [(space.namespace, key) for space in spaces for key in space.keys]
            for name in names:
                self._set(*name, None)
            return len(names)

    @override
    async def _newest(self, selection: Selection, page: Page) -> list[StoreItem]:
        with self._locked():
            hits = newest(self._selected(selection))
            return [hit.item() for hit in best(hits, selection.condition, page)]

    @override
    async def _search_text(
        self, selection: Selection, page: Page, words: list[str]
    ) -> list[StoreItem]:
        with self._locked():
            hits = ranked(self._selected(selection), words)
            return [hit.item() for hit in best(hits, selection.condition, page)]

    @override
    async def _get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        with self._locked():
            record = self._record(namespace, key)
        vector = None if record is None else record.content.embedding
        return None if vector is None else embedding_numbers(vector)

    @override
    async def _search_vectors(
        self, selection: Selection, page: Page, vector: bytes, threshold: float | None
    ) -> list[SemanticSearchResult]:
        with self._locked():
            hits = similar(self._selected(selection), vector)
            return [hit.semantic() for hit in best(hits, selection.condition, page)]

    @override
    async def open(self) -> None:
        with self._locked():
            pass  # it raises if the store is closed

    @override
    async def close(self) -> None:
        with self._lock:
            self._closed = True
            self._spaces.clear()

    @contextmanager
    def _locked(self) -> Generator[float]:
        """Hold the lock, let go of what has expired, and yield the moment."""
        with self._lock:
            if self._closed:
                raise BackendClosedError("the store is closed")
            now = self._clock()
            for namespace, key in self._expiry.due(now):
                self._set(namespace, key, None)
            yield now

    def _record(self, namespace: Namespace, key: str) -> Record | None:
        space = self._spaces.get(namespace)
        return None if space is None else space.records.get(key)

    def _find(self, namespace: Namespace, key: str) -> StoreItem | None:
        space = self._spaces.get(namespace)
        return space.item(key) if space is not None and key in space.records else None

    def _within(self, namespace: Namespace, *, recursive: bool) -> list[Space]:
        if recursive:
            depth = len(namespace)
            return [space for name, space in self._spaces.items() if name[:depth] == namespace]
        return [self._spaces[namespace]] if namespace in self._spaces else []

    def _selected(self, selection: Selection) -> list[Space]:
        return self._within(selection.namespace, recursive=selection.recursive)

    def _set(self, namespace: Namespace, key: str, record: Record | None) -> None:
        """Make `record` what is stored under the name, in every index; `None`: nothing."""
        space = self._spaces.setdefault(namespace, Space(namespace))
        if key in space.records:
            space.remove(key)
        if record is not None:
            space.add(key, record)
        elif not space.records:
            del self._spaces[namespace]
        self._expiry.set((namespace, key), None if record is None else record.past.expires_at)

    def _expect(self, namespace: Namespace, key: str, if_version: int | None) -> Record | None:
        """Return the record under the name, if it is at the expected version."""
        record = self._record(namespace, key)
        actual = 0 if record is None else record.past.version
        if if_version is not None and if_version != actual:
            raise VersionConflictError(if_version, actual, namespace, key)
        return record

    def _renew(self, old: Record | None, change: _Change, now: float) -> Record | None:
        operation, content = change
        if content is None or isinstance(operation, Delete):
            return None
        if isinstance(operation, Restored):
            return Record(content, Past.of(operation), next(self._sequence))
        expires_at = None if operation.ttl is None else now + operation.ttl
        past = Past(1, now, now, expires_at)
        if old is not None:
            version, created_at, updated_at, _ = old.past
            past = Past(version + 1, created_at, max(now, updated_at), expires_at)
        return Record(content, past, next(self._sequence))
