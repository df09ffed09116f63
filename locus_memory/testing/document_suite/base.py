"""The base of all parts of the document suite: an index of each kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import pytest
from typing_extensions import override

from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.documents.index import DocumentIndex, Kind
from locus_memory.documents.layout import chunks_of, sources_of
from locus_memory.store.base import BaseStore, has_semantic_search, scan_all
from locus_memory.store.item import StoreItem
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing.fakes import FakeEmbedder
from locus_memory.testing.store_suite.base import StoreSuite, need

__all__ = ["CHUNKING", "DocumentSuite", "Halt", "HaltingStore", "WatchedStore", "dump"]

CHUNKING: Final = ChunkConfig(chunk_size=64, chunk_overlap=8, min_chunk_size=5)

_DIMENSION: Final = 64

_T = TypeVar("_T")


class Halt(BaseException):
    """The process was killed."""


class HaltingStore(StoreWrapper):
    """A store whose process is killed before one of its writes."""

    def __init__(self, store: BaseStore, writes: int) -> None:
        super().__init__(store)
        self.left = writes

    def _count(self) -> None:
        if self.left == 0:
            raise Halt
        self.left -= 1

    @override
    async def put_batch(self, items: Any) -> list[int]:
        self._count()
        return await super().put_batch(items)

    @override
    async def write_batch(self, operations: Any) -> list[int | bool]:
        self._count()
        return await super().write_batch(operations)

    @override
    async def delete_batch(self, keys: Any) -> int:
        self._count()
        return await super().delete_batch(keys)


class WatchedStore(StoreWrapper):
    """A store that is looked at before each of its writes, and after each."""

    def __init__(self, store: BaseStore, look: Callable[[], Awaitable[None]]) -> None:
        super().__init__(store)
        self._look = look

    async def _watched(self, write: Awaitable[_T]) -> _T:
        await self._look()
        done = await write
        await self._look()
        return done

    @override
    async def put_batch(self, items: Any) -> list[int]:
        return await self._watched(super().put_batch(items))

    @override
    async def write_batch(self, operations: Any) -> list[int | bool]:
        return await self._watched(super().write_batch(operations))

    @override
    async def delete_batch(self, keys: Any) -> int:
        return await self._watched(super().delete_batch(keys))


class DocumentSuite(StoreSuite):
    """The fixtures of the suite; see `locus_memory.testing.DocumentConformance`."""

    @pytest.fixture(params=["text", "dense", "hybrid"])
    def kind(self, request: pytest.FixtureRequest) -> Kind:
        """The kind of the index."""
        kind: Kind = request.param
        return kind

    async def make_index(
        self, store: BaseStore, kind: Kind, chunking: ChunkConfig = CHUNKING
    ) -> DocumentIndex:
        """Return an empty index in a namespace of its own."""
        if kind != "dense":
            need(store, "search")
        if kind != "text" and not await has_semantic_search(store):
            pytest.skip(f"{type(store).__name__} has no vectors")
        dimension = store.capabilities.embedding_dimension or _DIMENSION
        return DocumentIndex(
            store,
            namespace=self.fresh("documents"),
            kind=kind,
            embedder=FakeEmbedder(dimension),
            chunking=chunking,
        )


async def dump(index: DocumentIndex, store: BaseStore) -> dict[str, list[tuple[str, Any, Any]]]:
    """Return all items of an index, without their times and versions."""
    places = {"chunks": chunks_of(index.namespace), "sources": sources_of(index.namespace)}
    return {
        name: [_plain(item) async for item in scan_all(store, place)]
        for name, place in places.items()
    }


def _plain(item: StoreItem) -> tuple[str, Any, Any]:
    return item.key, item.value, item.metadata
