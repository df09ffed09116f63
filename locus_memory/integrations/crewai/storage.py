"""The storage for CrewAI's memory; public as `integrations.crewai`."""

# CrewAI is installed in an environment of its own.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from crewai.memory.types import MemoryRecord, ScopeInfo

from locus_memory._internal.bridge import shared_bridge
from locus_memory.backends.base import Backend
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import NOT_OURS, get_readable, readable, tell_unreadable
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Put, StoreItem, check_limit, check_namespace

__all__ = ["LocusStorage"]

_NAMESPACE: Final = ("crewai_memory",)
_PAGE: Final = 200
_T = TypeVar("_T")


class LocusStorage:
    """A `StorageBackend` of CrewAI's `Memory` over any store of the library with vectors.

    A scope has its own records and those of the scopes below it: `/a` has `/a/b` and not `/ab`. A
    score is the cosine of two vectors, 0 if it is negative. A record that cannot be read is left
    out, and told by the event `integrations.item_unreadable`. The framework calls these methods
    from threads and from its event loop, and waits for them. All raise `BackendError` if the
    database fails.

    Args:
        where: A provider string, a backend or a store of the library. Only the store of a string is
            closed here.
        namespace: The namespace of the records.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self, where: str | BaseStore | Backend, *, namespace: Namespace = _NAMESPACE
    ) -> None:
        self._records = _Records(where, check_namespace(namespace))

    def save(self, records: list[MemoryRecord]) -> None:
        """Write records; those with the same ids are replaced."""
        _run(self._records.write(records))

    def update(self, record: MemoryRecord) -> None:
        """Replace a record; without a vector, the one that it has stays."""
        _run(self._records.write([record]))

    def search(  # noqa: PLR0917 - as the framework's
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the nearest records that match, each with its score, the best first.

        Raises:
            InvalidEmbeddingError: The vector has a length that no stored one has, or is all zero.
        """
        chosen = _Choice(scope_prefix, categories, metadata_filter)
        return _run(self._records.nearest(query_embedding, chosen, check_limit(limit), min_score))

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that all arguments choose; return how many."""
        chosen = _Choice(scope_prefix, categories, metadata_filter, record_ids, older_than)
        return _run(self._records.delete(chosen))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record, or `None`."""
        return _run(self._records.get(record_id))

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that records are read now."""
        _run(self._records.touch(record_ids))

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return the records of a scope, the newest first."""
        found = sorted(
            self._in(scope_prefix), key=lambda each: _moment(each.created_at), reverse=True
        )
        return found[max(0, offset) :][: max(0, limit)]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number, the categories, the dates and the scopes below of a scope."""
        found = self._in(scope)
        moments = sorted((each.created_at for each in found), key=_moment)
        return ScopeInfo(
            path=f"/{scope.strip('/')}",
            record_count=len(found),
            categories=sorted({name for each in found for name in each.categories}),
            oldest_record=moments[0] if moments else None,
            newest_record=moments[-1] if moments else None,
            child_scopes=_children(found, scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below another one."""
        return _children(self._in(parent), parent)

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the categories in a scope, each with its number of records."""
        return Counter(name for each in self._in(scope_prefix) for name in each.categories)

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope."""
        return len(self._in(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all records of a scope; without one, all, the damaged ones included."""
        everything = _Choice(scope_prefix)
        _run(self._records.delete(everything) if everything.scope else self._records.clear())

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Do what `save` does."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *args: Any, **kwargs: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Return what `search` does."""
        return await asyncio.to_thread(self.search, query_embedding, *args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> int:
        """Do what `delete` does."""
        return await asyncio.to_thread(self.delete, *args, **kwargs)

    def close(self) -> None:
        """Close the store of a provider string; the framework calls this at its end."""
        _run(self._records.close())

    def _in(self, scope: str | None) -> list[MemoryRecord]:
        return _run(self._records.chosen(_Choice(scope)))


class _Choice:
    """Which records are meant; what is left out means all."""

    def __init__(
        self,
        scope: str | None,
        categories: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
        ids: Sequence[str] | None = None,
        older_than: datetime | None = None,
    ) -> None:
        self.scope = (scope or "").strip("/")
        self._categories, self._metadata = categories or (), metadata or {}
        self._ids, self._older_than = ids, older_than

    def has(self, record: MemoryRecord) -> bool:
        """Return whether a record is meant."""
        scope = record.scope.strip("/")
        return (
            (self._ids is None or record.id in self._ids)
            and (not self.scope or scope == self.scope or scope.startswith(f"{self.scope}/"))
            and (not self._categories or not {*self._categories}.isdisjoint(record.categories))
            and self._metadata.items() <= record.metadata.items()
            and (self._older_than is None or _moment(record.created_at) < _moment(self._older_than))
        )


class _Records(OverStore):
    """The records in a store, asynchronously."""

    def __init__(self, where: str | BaseStore | Backend, namespace: Namespace) -> None:
        self._take(where)
        self._namespace = namespace

    async def write(self, records: Sequence[MemoryRecord]) -> None:
        puts = [
            Put(
                namespace=self._namespace,
                key=each.id,
                value=each.model_dump(mode="json"),
                text=each.content,
                # The framework changes a record without its vector.
                embedding=each.embedding
                or await self.store.get_embedding(self._namespace, each.id),
            )
            for each in records
        ]
        await self.store.put_batch(puts)

    async def get(self, key: str) -> MemoryRecord | None:
        found = await get_readable(self.store, self._namespace, key, _record)
        return None if found is None else found[1]

    async def touch(self, keys: Sequence[str]) -> None:
        now = datetime.now(UTC).replace(tzinfo=None)  # As the framework writes moments.
        found = [each for each in [await self.get(key) for key in keys] if each is not None]
        await self.write([each.model_copy(update={"last_accessed": now}) for each in found])

    async def chosen(self, choice: _Choice) -> list[MemoryRecord]:
        return [
            record
            async for _, record in readable(self.store, self._namespace, _record)
            if choice.has(record)
        ]

    async def delete(self, choice: _Choice) -> int:
        keys = [(self._namespace, each.id) for each in await self.chosen(choice)]
        await self.store.delete_batch(keys)
        return len(keys)

    async def clear(self) -> None:
        await self.store.clear_namespace(self._namespace)

    async def nearest(
        self, vector: Sequence[float], choice: _Choice, limit: int, least: float
    ) -> list[tuple[MemoryRecord, float]]:
        found: list[tuple[MemoryRecord, float]] = []
        async for record, score in self._ranked(vector, least):
            if len(found) == limit:
                break
            if choice.has(record):
                found.append((record, score))
        return found

    async def _ranked(
        self, vector: Sequence[float], least: float
    ) -> AsyncIterator[tuple[MemoryRecord, float]]:
        offset = 0
        while hits := await self.store.search_by_embedding(
            self._namespace, vector, _PAGE, least, offset=offset
        ):
            for hit in hits:
                try:
                    yield _record(hit.item), hit.score
                except NOT_OURS as error:
                    tell_unreadable(hit.item.namespace, hit.item.key, error)
            offset += len(hits)


def _record(item: StoreItem) -> MemoryRecord:
    return MemoryRecord.model_validate(item.value)


def _moment(moment: datetime) -> datetime:
    """Return a moment with a time zone; the framework's own are UTC without one."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _children(records: Sequence[MemoryRecord], scope: str) -> list[str]:
    above = f"{scope.strip('/')}/".lstrip("/")
    paths = {each.scope.strip("/") for each in records}
    below = {path[len(above) :].split("/")[0] for path in paths if path.startswith(above)}
    return sorted(f"/{above}{name}" for name in below if name)


def _run(awaitable: Awaitable[_T]) -> _T:
    return shared_bridge().run(awaitable, inside_loop=True)
