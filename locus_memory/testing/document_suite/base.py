"""The base of all parts of the document suite: an index of each kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import pytest
import pytest_asyncio
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


class WatchedStore(StoreWrapper):
    """A store that is looked at before each of its writes, and after each."""

    def __init__(
        self, store: BaseStore, before: Callable[[], Awaitable[None]], *, after: bool = True
    ) -> None:
        super().__init__(store)
        self._looks = before, before if after else _rest

    async def _watched(self, write: Callable[[Any], Awaitable[_T]], items: Any) -> _T:
        before, after = self._looks
        await before()
        done = await write(items)
        await after()
        return done

    @override
    async def put_batch(self, items: Any) -> list[int]:
        return await self._watched(super().put_batch, items)

    @override
    async def write_batch(self, operations: Any) -> list[int | bool]:
        return await self._watched(super().write_batch, operations)

    @override
    async def delete_batch(self, keys: Any) -> int:
        return await self._watched(super().delete_batch, keys)


async def _rest() -> None:
    """Do nothing."""


class HaltingStore(WatchedStore):
    """A store whose process is killed before one of its writes."""

    def __init__(self, store: BaseStore, writes: int) -> None:
        super().__init__(store, self._count, after=False)
        self._left = iter(range(writes))

    async def _count(self) -> None:
        if next(self._left, None) is None:
            raise Halt


class DocumentSuite(StoreSuite):
    """The fixtures of the suite; see `locus_memory.testing.DocumentConformance`."""

    @pytest.fixture(params=["text", "dense", "hybrid"])
    def kind(self, request: pytest.FixtureRequest) -> Kind:
        """The kind of the index."""
        kind: Kind = request.param
        return kind

    @pytest_asyncio.fixture
    async def index(self, store: BaseStore, kind: Kind) -> DocumentIndex:
        """An empty index."""
        return await self.make_index(store, kind)

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
