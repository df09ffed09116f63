"""The store suite: expired items are immediately invisible to every verb."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put, timestamp
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import StoreSuite, axis, held, need, refused

__all__ = ["ExpiryTests"]

NS = ("session", "1")


class ExpiryTests(StoreSuite):
    """Every verb, on a namespace whose item `gone` has just expired beside `kept`."""

    @pytest_asyncio.fixture
    async def expired(self, store: BaseStore, clock: FakeClock) -> AsyncIterator[BaseStore]:
        """The store, just after `gone` expired."""
        need(store, "ttl")
        await store.put(NS, "gone", "fox", {"n": 1}, ttl=10)
        await store.put(NS, "gone", "fox", {"n": 1}, ttl=10)
        await store.put(NS, "kept", "fox", {"n": 1})
        await store.put(("session", "2"), "gone", "fox", ttl=10)
        clock.advance(10)
        yield store

    async def test_it_lives_until_its_time(self, store: BaseStore, clock: FakeClock) -> None:
        need(store, "ttl")
        await store.put(NS, "k", 1, ttl=10)
        item = await held(store, NS, "k")
        assert item.expires_at == timestamp(clock() + 10)
        clock.advance(9)
        assert await store.get(NS, "k") == 1
        clock.advance(1)
        assert await store.get(NS, "k") is None

    async def test_get_after_expiry(self, expired: BaseStore) -> None:
        assert await expired.get(NS, "gone") is None
        assert await expired.get_item(NS, "gone") is None
        assert not await expired.exists(NS, "gone")
        assert await expired.get_batch([(NS, "gone"), (NS, "kept")]) == {(NS, "kept"): "fox"}

    async def test_delete_after_expiry(self, expired: BaseStore) -> None:
        assert not await expired.delete(NS, "gone")
        assert not await expired.delete(NS, "gone", if_version=0)
        [error] = await refused(
            VersionConflictError,
            expired.delete(NS, "gone", if_version=2),
        )
        assert error.actual == 0
        assert await expired.delete_batch([(NS, "gone"), (NS, "kept")]) == 1

    async def test_listing_after_expiry(self, expired: BaseStore) -> None:
        assert await expired.list_keys(NS) == ["kept"]
        assert await expired.list_keys(NS, 1) == ["kept"]
        assert [item.key for item in await expired.scan(NS)] == ["kept"]
        assert [item.key for item in await expired.scan(NS, 1, descending=True)] == ["kept"]
        if expired.capabilities.list_namespaces:
            assert await expired.list_namespaces() == [NS]

    async def test_search_after_expiry(self, expired: BaseStore) -> None:
        assert [item.key for item in await expired.search(NS)] == ["kept"]
        assert [item.key for item in await expired.search(NS, limit=1, filter={"n": 1})] == ["kept"]
        if expired.capabilities.search:
            assert [item.key for item in await expired.search(NS, "fox", 1)] == ["kept"]
        if expired.capabilities.list_namespaces:
            found = await expired.search(("session",), recursive=True)
            assert [item.key for item in found] == ["kept"]

    async def test_search_by_embedding_after_expiry(
        self, store: BaseStore, clock: FakeClock
    ) -> None:
        need(store, "ttl", "semantic_search")
        vector = axis(store, 0)
        await store.put_with_embedding(NS, "gone", 1, vector, ttl=10)
        await store.put_with_embedding(NS, "kept", 2, axis(store, 1))
        assert len(await store.search_by_embedding(NS, vector)) == 2
        clock.advance(10)
        assert [hit.item.key for hit in await store.search_by_embedding(NS, vector, 1)] == ["kept"]
        assert await store.get_embedding(NS, "gone") is None

    async def test_clear_counts_what_was_visible(self, expired: BaseStore) -> None:
        assert await expired.clear_namespace(NS) == 1
        if expired.capabilities.list_namespaces:
            assert await expired.clear_namespace(("session",), recursive=True) == 0

    async def test_a_put_starts_over(self, expired: BaseStore, clock: FakeClock) -> None:
        [error] = await refused(
            VersionConflictError,
            expired.put(NS, "gone", "lost", if_version=2),
        )
        assert error.actual == 0
        assert await expired.put(NS, "gone", "new", if_version=0) == 1
        item = await held(expired, NS, "gone")
        assert (item.value, item.metadata, item.expires_at) == ("new", {}, None)
        assert item.created_at == timestamp(clock())

    async def test_a_moment_never_goes_back(self, store: BaseStore, clock: FakeClock) -> None:
        await store.put(NS, "key", 1)
        clock.advance(-600)
        await store.put(NS, "key", 2)
        await store.put_batch([(NS, "key", 3), (NS, "other", 1)])
        item = await held(store, NS, "key")
        assert item.updated_at == item.created_at == timestamp(clock() + 600)

    async def test_an_unconditional_put_starts_over(self, expired: BaseStore) -> None:
        assert await expired.put(NS, "gone", "new") == 1
        assert await expired.put_batch([(("session", "2"), "gone", "new")]) == [1]

    async def test_a_batch_starts_over(self, expired: BaseStore) -> None:
        need(expired, "transactions")
        results = await expired.write_batch(
            [
                Delete(namespace=("session", "2"), key="gone"),
                Put(namespace=NS, key="gone", value="new", if_version=0),
            ]
        )
        assert results == [False, 1]

    async def test_each_put_sets_its_own_ttl(self, store: BaseStore, clock: FakeClock) -> None:
        need(store, "ttl")
        await store.put(NS, "longer", 1, ttl=10)
        await store.put(NS, "for good", 1, ttl=10)
        await store.put(NS, "shorter", 1)
        await store.put(NS, "longer", 2, ttl=100)
        await store.put(NS, "for good", 2)
        await store.put_batch([Put(namespace=NS, key="shorter", value=2, ttl=0.5)])
        clock.advance(50)
        assert await store.list_keys(NS) == ["for good", "longer"]
        clock.advance(50)
        assert await store.list_keys(NS) == ["for good"]

    @pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e12, True, "10"], ids=repr)
    async def test_a_bad_ttl_is_refused(self, store: BaseStore, ttl: Any) -> None:
        need(store, "ttl")
        await refused(
            InvalidArgumentError,
            store.put(NS, "k", 1, ttl=ttl),
            store.put_batch([Put(namespace=NS, key="k", value=1, ttl=ttl)]),
        )
        assert not await store.exists(NS, "k")
