"""The store suite: declared capabilities, opening, closing and cancelled calls."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from locus_memory.backends.checked_store import implements
from locus_memory.errors import BackendClosedError, StoreCapabilityError, VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import StoreSuite, axis, held, innermost, refused

__all__ = ["CapabilityTests", "LifeTests"]

NS = ("life",)

VERBS: Final = {
    "search": ["search"],
    "semantic_search": ["put_with_embedding", "get_embedding", "search_by_embedding"],
    "list_namespaces": ["list_namespaces"],
    "batch_operations": ["put_batch", "get_batch", "delete_batch"],
    "transactions": ["write_batch"],
}


class CapabilityTests(StoreSuite):
    """A declared capability is overridden and works; an undeclared one raises an error."""

    @pytest.mark.parametrize("capability", VERBS)
    async def test_what_is_claimed_is_overridden(self, store: BaseStore, capability: str) -> None:
        if getattr(store.capabilities, capability):
            for verb in VERBS[capability]:
                assert implements(type(store), verb), verb

    async def test_capabilities_are_a_frozen_value(self, store: BaseStore) -> None:
        before = store.capabilities
        await store.put(NS, "k", "fox")
        assert store.capabilities == before
        assert hash(before) == hash(store.capabilities)

    async def test_the_claim_of_search(self, store: BaseStore) -> None:
        await store.put(NS, "k", "fox")
        assert [item.key for item in await store.search(NS)] == ["k"]
        if store.capabilities.search:
            assert [item.key for item in await store.search(NS, "fox")] == ["k"]
        else:
            [error] = await refused(StoreCapabilityError, store.search(NS, "fox"))
            assert error.capability == "search"

    async def test_the_claim_of_semantic_search(self, store: BaseStore) -> None:
        vector = axis(store, 0)
        put = Put(namespace=NS, key="l", value=1, embedding=vector)
        calls: dict[Coroutine[Any, Any, Any], Any] = {
            store.put_with_embedding(NS, "k", 1, vector): 1,
            store.put_batch([put]): [1],
            store.get_embedding(NS, "missing"): None,
            store.search_by_embedding(("empty",), vector): [],
        }
        if await _claim(store, "semantic_search", calls):
            assert await store.get_embedding(NS, "k") == vector
            assert len(await store.search_by_embedding(NS, vector)) == 2
        else:
            assert store.capabilities.embedding_dimension is None
            assert await store.list_keys(NS) == []

    async def test_the_claim_of_ttl(self, store: BaseStore, clock: FakeClock) -> None:
        put = Put(namespace=NS, key="l", value=1, ttl=1)
        await _claim(store, "ttl", {store.put(NS, "k", 1, ttl=1): 1, store.put_batch([put]): [1]})
        clock.advance(1)
        assert await store.list_keys(NS) == []

    async def test_the_claim_of_list_namespaces(self, store: BaseStore) -> None:
        await store.put(NS, "k", 1)
        await _claim(store, "list_namespaces", {store.list_namespaces(): [NS]})

    async def test_the_claim_of_transactions(self, store: BaseStore) -> None:
        put = Put(namespace=NS, key="k", value=1)
        if not await _claim(store, "transactions", {store.write_batch([put]): [1]}):
            assert not await store.exists(NS, "k")


async def _claim(
    store: BaseStore, capability: str, calls: Mapping[Coroutine[Any, Any, Any], Any]
) -> bool:
    """Assert that calls return what they should, or are refused without the capability.

    Returns:
        Whether the store declares it.
    """
    if getattr(store.capabilities, capability):
        assert await asyncio.gather(*calls) == list(calls.values())
        return True
    errors = await refused(StoreCapabilityError, *calls)
    assert {error.capability for error in errors} == {capability}
    return False


class LifeTests(StoreSuite):
    """Opening, closing and cancelling."""

    async def test_it_opens_itself_under_a_crowd(self, clock: FakeClock, tmp_path: Path) -> None:
        folder = tmp_path / "first use"
        folder.mkdir()
        manager = self.make_store(clock, folder)
        # A context manager that is not a store must be entered to get one.
        store = manager if isinstance(manager, BaseStore) else await manager.__aenter__()
        try:
            assert await asyncio.gather(*(store.put(NS, str(n), n) for n in range(12))) == [1] * 12
            assert len(await store.list_keys(NS)) == 12
        finally:
            await manager.__aexit__(None, None, None)

    async def test_a_closed_store_says_so(self, store: BaseStore) -> None:
        await store.put(NS, "k", 1)
        await store.close()
        await refused(
            BackendClosedError,
            store.put(NS, "k", 2),
            store.get(NS, "k"),
            store.get_item(NS, "k"),
            store.exists(NS, "k"),
            store.delete(NS, "k"),
            store.scan(NS),
            store.list_keys(NS),
            store.search(NS),
            store.clear_namespace(NS),
            store.put_batch([(NS, "k", 1)]),
            store.get_batch([(NS, "k")]),
            store.delete_batch([(NS, "k")]),
        )
        if store.capabilities.list_namespaces:
            await refused(BackendClosedError, store.list_namespaces())
        if store.capabilities.transactions:
            await refused(BackendClosedError, store.write_batch([Delete(namespace=NS, key="k")]))
        if store.capabilities.semantic_search:
            vector = axis(store, 0)
            await refused(
                BackendClosedError,
                store.put_with_embedding(NS, "k", 1, vector),
                store.get_embedding(NS, "k"),
                store.search_by_embedding(NS, vector),
            )

    async def test_a_closed_store_stays_closed(self, store: BaseStore) -> None:
        await store.put(NS, "k", 1)
        await store.close()
        # The default `open` does nothing.
        if type(innermost(store)).open is not BaseStore.open:
            await refused(BackendClosedError, store.open(), store.__aenter__())
        await refused(BackendClosedError, store.get(NS, "k"))

    async def test_a_cancelled_call_leaves_the_store_healthy(self, store: BaseStore) -> None:
        await store.put(NS, "count", 0)
        for pauses in range(6):
            calls: list[Coroutine[Any, Any, Any]] = [
                *(store.put(NS, "count", n) for n in range(5)),
                store.get(NS, "count"),
                store.scan(NS),
                store.put_batch([(NS, "count", n) for n in range(5)]),
            ]
            tasks = list(map(asyncio.ensure_future, calls))
            for _ in range(pauses):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert await _put_once_settled(store, "last")
        assert await store.list_keys(NS) == ["count"]


async def _put_once_settled(store: BaseStore, value: str) -> bool:
    """Put a value on the stored version; a cancelled write may still arrive."""
    for _ in range(20):
        item = await held(store, NS, "count")
        try:
            version = await store.put(NS, "count", value, if_version=item.version)
        except VersionConflictError:
            continue
        assert version == item.version + 1
        if await store.get(NS, "count") == value:
            return True
    return False
