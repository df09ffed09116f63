"""The store suite: several items at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Delete, Put
from locus_memory.testing.store_suite.base import (
    LONG,
    StoreSuite,
    goes_by_writes,
    held,
    need,
    refused,
)

__all__ = ["BatchTests"]

NS = ("batch",)
OTHER = ("batch", "other")


def put(key: str, value: Any, if_version: int | None = None) -> Put:
    """Return a put into the namespace of these tests."""
    return Put(namespace=NS, key=key, value=value, if_version=if_version)


class BatchTests(StoreSuite):
    """`put_batch`, `get_batch`, `delete_batch` and `write_batch`."""

    async def test_put_batch_takes_puts_and_tuples(self, store: BaseStore) -> None:
        await store.put(NS, "c", "old")
        versions = await store.put_batch(
            [
                (NS, "a", 1),
                (OTHER, "b", 2, {"m": 1}),
                Put(namespace=NS, key="c", value=3, metadata={"m": 2}, if_version=1),
                (NS, "a", 4),
            ]
        )
        assert versions == [1, 1, 2, 2]
        assert await store.get(NS, "a") == 4
        item = await held(store, OTHER, "b")
        assert (item.value, item.metadata) == (2, {"m": 1})
        item = await held(store, NS, "c")
        assert (item.value, item.metadata, item.version) == (3, {"m": 2}, 2)

    async def test_get_batch_returns_what_is_there(self, store: BaseStore) -> None:
        await store.put_batch([(NS, "a", 1), (NS, "b", None), (OTHER, "a", 2)])
        found = await store.get_batch([(NS, "a"), (NS, "b"), (NS, "c"), (OTHER, "a"), (NS, "a")])
        assert found == {(NS, "a"): 1, (NS, "b"): None, (OTHER, "a"): 2}

    async def test_delete_batch_counts_what_was_there(self, store: BaseStore) -> None:
        await store.put_batch([(NS, "a", 1), (NS, "b", 2), (OTHER, "a", 3)])
        assert await store.delete_batch([(NS, "a"), (NS, "x"), (OTHER, "a"), (NS, "a")]) == 2
        assert await store.list_keys(NS) == ["b"]
        assert await store.list_keys(OTHER) == []

    async def test_empty_batches(self, store: BaseStore) -> None:
        assert await store.put_batch([]) == []
        assert await store.get_batch([]) == {}
        assert await store.delete_batch([]) == 0
        if store.capabilities.transactions:
            assert await store.write_batch([]) == []

    async def test_batches_take_any_iterable(self, store: BaseStore) -> None:
        assert await store.put_batch((NS, str(n), n) for n in range(3)) == [1, 1, 1]
        assert len(await store.get_batch((NS, str(n)) for n in range(3))) == 3
        assert await store.delete_batch((NS, str(n)) for n in range(3)) == 3

    async def test_long_batches(self, store: BaseStore) -> None:
        names = [(NS, f"{n:05}") for n in range(LONG)]
        assert await store.put_batch([(*name, name[1]) for name in names]) == [1] * LONG
        assert await store.get_batch(names) == {name: name[1] for name in names}
        assert await store.delete_batch(names) == LONG

    async def test_the_last_put_of_a_batch_is_the_newest(self, store: BaseStore) -> None:
        if not goes_by_writes(store):
            pytest.skip("the store orders items by their moments")
        await store.put_batch([put("old", 1), put("oldest", 1)])
        values = {"new": 1, "long": "a" * 40_000, "old": 2, "last": 2}
        await store.put_batch([put(key, value) for key, value in values.items()])
        assert [item.key for item in await store.search(NS)] == [*reversed(values), "oldest"]

    async def test_a_malformed_tuple_is_refused(self, store: BaseStore) -> None:
        malformed: list[tuple[Any, ...]] = [(NS,), (NS, "k"), (NS, "k", 1, {}, 5)]
        for bad in malformed:
            await refused(InvalidArgumentError, store.put_batch([bad]))
        for other in (5, None, Delete(namespace=NS, key="k")):
            strange: Any = other
            await refused(InvalidArgumentError, store.put_batch([strange]))
        assert await store.list_keys(NS) == []

    async def test_a_name_that_is_not_a_pair_is_refused(self, store: BaseStore) -> None:
        await store.put(NS, "k", 1)
        strange: list[Any] = [5, None, (NS,), (NS, "k", 1), "ab"]
        for each in strange:
            await refused(InvalidArgumentError, store.get_batch([(NS, "k"), each]))
            await refused(InvalidArgumentError, store.delete_batch([(NS, "k"), each]))
        assert await store.get(NS, "k") == 1

    async def test_write_batch_takes_no_tuples(self, store: BaseStore) -> None:
        need(store, "transactions")
        strange: list[Any] = [(NS, "k", 1), (NS, "k"), 5, None, [put("k", 1)]]
        for each in strange:
            await refused(InvalidArgumentError, store.write_batch([put("a", 1), each]))
        assert await store.list_keys(NS) == []

    async def test_put_batch_is_atomic(self, store: BaseStore) -> None:
        need(store, "batch_operations")
        await store.put(NS, "a", "kept")
        for last in (put("c", 3, if_version=4), put("a", 3, if_version=0)):
            await refused(
                VersionConflictError,
                store.put_batch([put("a", 1), put("b", 2), put("a", 2), last]),
            )
        assert [(i.key, i.value, i.version) for i in await store.scan(NS)] == [("a", "kept", 1)]
        assert await store.put(NS, "b", "new") == 1

    async def test_concurrent_batches_are_counted_exactly(self, store: BaseStore) -> None:
        batches = [[put("a", n), put("b", n)] for n in range(20)]
        results = await asyncio.gather(*map(store.put_batch, batches))
        assert sorted(versions[0] for versions in results) == list(range(1, 21))
        if store.capabilities.batch_operations:
            found = await store.get_batch([(NS, "a"), (NS, "b")])
            assert found[NS, "a"] == found[NS, "b"]

    async def test_write_batch_puts_and_deletes(self, store: BaseStore) -> None:
        need(store, "transactions")
        await store.put_batch([put("a", 1), put("b", 2)])
        results = await store.write_batch(
            [
                put("a", "new", if_version=1),
                Delete(namespace=NS, key="b", if_version=1),
                Delete(namespace=NS, key="missing"),
                put("c", 3, if_version=0),
                put("b", "again", if_version=0),
            ]
        )
        assert results == [2, True, False, 1, 1]
        assert [i.value for i in await store.scan(NS)] == ["new", "again", 3]
        again: list[Put | Delete] = [
            Delete(namespace=NS, key="a", if_version=2),
            put("a", 1, if_version=0),
            put("a", 2, if_version=1),
            Delete(namespace=NS, key="a", if_version=2),
            Delete(namespace=NS, key="a", if_version=0),
        ]
        assert await store.write_batch(again) == [True, 1, 2, True, False]
        assert await store.list_keys(NS) == ["b", "c"]

    @pytest.mark.parametrize(
        "last",
        [
            put("z", 1, if_version=1),
            put("a", 1, if_version=1),
            Delete(namespace=NS, key="kept", if_version=2),
            Delete(namespace=NS, key="z", if_version=1),
        ],
        ids=["put-missing", "put-stale", "delete-stale", "delete-missing"],
    )
    async def test_write_batch_is_all_or_nothing(
        self, store: BaseStore, last: Put | Delete
    ) -> None:
        need(store, "transactions")
        await store.put_batch([put("a", "old"), put("kept", "fox")])
        before = await store.scan(NS)
        first: list[Put | Delete] = [
            put("a", "lost"),
            put("b", "lost"),
            Delete(namespace=NS, key="kept", if_version=1),
        ]
        await refused(
            VersionConflictError,
            store.write_batch([*first[: 2 if last.key == "kept" else 3], last]),
        )
        assert await store.scan(NS) == before

    async def test_a_batch_that_lost_leaves_the_text_index_alone(self, store: BaseStore) -> None:
        need(store, "transactions", "search")
        await store.put_batch([put("a", "old"), put("kept", "fox")])
        lost: list[Put | Delete] = [put("a", "lost"), Delete(namespace=NS, key="kept")]
        await refused(
            VersionConflictError,
            store.write_batch([*lost, put("z", 1, if_version=1)]),
        )
        assert await store.search(NS, "lost") == []
        found = await store.search(NS, "fox old")
        assert sorted(item.key for item in found) == ["a", "kept"]

    async def test_one_of_many_write_batches_wins(self, store: BaseStore) -> None:
        need(store, "transactions")
        results = await asyncio.gather(
            *(store.write_batch([put("a", n, 0), put("b", n)]) for n in range(10)),
            return_exceptions=True,
        )
        assert sum(isinstance(each, VersionConflictError) for each in results) == 9
        assert await store.get(NS, "a") == await store.get(NS, "b") == results.index([1, 1])
