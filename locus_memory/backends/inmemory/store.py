"""The in-memory store: the reference that every other store is compared with."""

from __future__ import annotations

import itertools
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from typing_extensions import override

from locus_memory._internal.options import checked
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
from locus_memory.errors import BackendClosedError, ConfigurationError, VersionConflictError
from locus_memory.store.base import BaseStore, as_names, as_operations, as_puts
from locus_memory.store.filters import parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_embedding,
    check_key,
    check_limit,
    check_namespace,
    check_text,
    check_threshold,
    check_ttl,
    check_version,
)
from locus_memory.store.listing import Listing
from locus_memory.store.long_texts import from_query, prepared
from locus_memory.store.text import query_words

__all__ = ["InMemoryStore"]


class InMemoryStore(BaseStore):
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
            semantic_search=True,
            embedding_dimension=self._dimension,
            ttl=True,
            list_namespaces=True,
            batch_operations=True,
            transactions=True,
        )

    @override
    async def put(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        operation = Put(
            namespace=namespace,
            key=key,
            value=value,
            metadata=metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
        )
        return (await self._write([operation]))[0]

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        _check_name(namespace, key)
        with self._locked():
            return self._find(namespace, key)

    @override
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        operation = Delete(namespace=namespace, key=key, if_version=if_version)
        return bool((await self._write([operation]))[0])

    @override
    async def scan(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
        descending: bool = False,
    ) -> list[StoreItem]:
        check_namespace(namespace)
        check_limit(limit)
        check_text(prefix, "prefix")
        check_text(after, "after")
        with self._locked():
            space = self._spaces.get(namespace)
            if space is None:
                return []
            keys = space.between(prefix or "", after, descending=descending)
            return [space.item(key) for key in itertools.islice(keys, min(limit, sys.maxsize))]

    @override
    async def list_namespaces(
        self,
        prefix: Namespace | None = None,
        limit: int = 100,
        *,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        after: Namespace | None = None,
    ) -> list[Namespace]:
        listing = Listing.of(prefix, suffix, max_depth, after)
        check_limit(limit)
        with self._locked():
            found = {cut for namespace in self._spaces if (cut := listing.cut(namespace))}
        return sorted(found)[:limit]

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        with self._locked():
            spaces = self._within(namespace, recursive=recursive)
            names = [(space.namespace, key) for space in spaces for key in space.keys]
            for name in names:
                self._set(*name, None)
            return len(names)

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return [int(version) for version in await self._write(as_puts(items))]

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        names = [_check_name(namespace, key) for namespace, key in as_names(keys)]
        with self._locked():
            found = {name: self._find(*name) for name in names}
        return {name: item.value for name, item in found.items() if item is not None}

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        operations = [Delete(namespace=namespace, key=key) for namespace, key in as_names(keys)]
        return sum(await self._write(operations))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        return await self._write(as_operations(operations))

    @override
    async def search(
        self,
        namespace: Namespace,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[StoreItem]:
        condition = parse_filter(filter)
        check_limit(limit)
        check_limit(offset, "offset")
        words = None if query is None else await from_query(query_words, query)
        with self._locked():
            spaces = self._within(namespace, recursive=recursive)
            hits = newest(spaces) if words is None else ranked(spaces, words)
            return [hit.item() for hit in best(hits, condition, offset, limit)]

    @override
    async def put_with_embedding(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        embedding: Sequence[float],
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        # None, which is no embedding, would pass for a plain put.
        check_embedding(embedding, self._dimension)
        operation = Put(
            namespace=namespace,
            key=key,
            value=value,
            metadata=metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
            embedding=embedding,
        )
        return (await self._write([operation]))[0]

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        _check_name(namespace, key)
        with self._locked():
            record = self._record(namespace, key)
        vector = None if record is None else record.content.embedding
        return None if vector is None else list(struct.unpack(f"<{len(vector) // 4}f", vector))

    @override
    async def search_by_embedding(
        self,
        namespace: Namespace,
        query_embedding: Sequence[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        *,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[SemanticSearchResult]:
        query = check_embedding(query_embedding, self._dimension)
        nearest = check_threshold(threshold)
        condition = parse_filter(metadata_filter)
        check_limit(limit)
        check_limit(offset, "offset")
        with self._locked():
            spaces = self._within(namespace, recursive=recursive)
            hits = similar(spaces, query, nearest)
            return [hit.semantic() for hit in best(hits, condition, offset, limit)]

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
        check_namespace(namespace)
        if recursive:
            depth = len(namespace)
            return [space for name, space in self._spaces.items() if name[:depth] == namespace]
        return [self._spaces[namespace]] if namespace in self._spaces else []

    def _set(self, namespace: Namespace, key: str, record: Record | None) -> None:
        """Make `record` what is stored under the name, in every index; `None`: nothing."""
        space = self._spaces.setdefault(namespace, Space(namespace))
        if key in space.records:
            space.remove(key)
        if record is not None:
            space.add(key, record)
        elif not space.records:
            del self._spaces[namespace]
        self._expiry.set((namespace, key), None if record is None else record.expires_at)

    async def _write(self, operations: Sequence[Put | Delete]) -> list[int | bool]:
        """Do all the operations or, if one of them conflicts, none."""
        contents = await prepared(self._contents, operations)
        undo: list[tuple[Namespace, str, Record | None]] = []
        results: list[int | bool] = []
        with self._locked() as now:
            try:
                for operation, content in zip(operations, contents, strict=True):
                    namespace, key = operation.namespace, operation.key
                    old = self._expect(namespace, key, operation.if_version)
                    new = self._renew(old, operation, content, now)
                    undo.append((namespace, key, old))
                    self._set(namespace, key, new)
                    results.append(old is not None if new is None else new.version)
            except VersionConflictError:
                for name_and_record in reversed(undo):
                    self._set(*name_and_record)
                raise
        return results

    def _contents(self, operations: Sequence[Put | Delete]) -> list[Content | None]:
        return list(map(self._prepare, operations))

    def _prepare(self, operation: Put | Delete) -> Content | None:
        """Check an operation; return what a put brings."""
        _check_name(operation.namespace, operation.key)
        check_version(operation.if_version)
        if isinstance(operation, Delete):
            return None
        check_ttl(operation.ttl)
        return Content.of(operation, self._dimension)

    def _expect(self, namespace: Namespace, key: str, if_version: int | None) -> Record | None:
        """Return the record under the name, if it is at the expected version."""
        record = self._record(namespace, key)
        actual = 0 if record is None else record.version
        if if_version is not None and if_version != actual:
            raise VersionConflictError(if_version, actual, namespace, key)
        return record

    def _renew(
        self, old: Record | None, operation: Put | Delete, content: Content | None, now: float
    ) -> Record | None:
        if content is None or isinstance(operation, Delete):
            return None
        return Record(
            content,
            created_at=now if old is None else old.created_at,
            updated_at=now,
            expires_at=None if operation.ttl is None else now + operation.ttl,
            version=1 if old is None else old.version + 1,
            sequence=next(self._sequence),
        )


def _check_name(namespace: Namespace, key: str) -> tuple[Namespace, str]:
    return check_namespace(namespace), check_key(key)
