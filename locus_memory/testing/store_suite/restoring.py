"""The store suite: items that are restored with their versions and moments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import (
    InvalidArgumentError,
    StoreCapabilityError,
    VersionConflictError,
)
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Restored, StoreItem, timestamp
from locus_memory.testing.fakes import FakeClock
from locus_memory.testing.store_suite.base import (
    HOSTILE,
    LONG,
    PROPERTY,
    StoreSuite,
    axis,
    goes_by_writes,
    held,
    json_objects,
    json_values,
    need,
    refused,
)

__all__ = ["RestoreTests"]

_LONG_AGO = datetime(2019, 5, 4, 3, 2, 1, 654_321, UTC)
_moments = st.datetimes(
    datetime(1990, 1, 1),  # noqa: DTZ001 - the strategy adds the time zone
    datetime(2090, 1, 1),  # noqa: DTZ001 - the same
    timezones=st.just(UTC),
)


def _item(namespace: Namespace, key: str, value: Any, **fields: Any) -> Restored:
    past: dict[str, Any] = {
        "version": 7,
        "created_at": _LONG_AGO,
        "updated_at": _LONG_AGO + timedelta(days=3),
    }
    return Restored(namespace=namespace, key=key, value=value, **{**past, **fields})


def _past(item: StoreItem | None) -> tuple[Any, ...]:
    assert item is not None
    return item.version, item.created_at, item.updated_at, item.expires_at


class RestoreTests(StoreSuite):
    """A restored item is the item that it was."""

    @pytest_asyncio.fixture
    async def restoring(self, store: BaseStore) -> BaseStore:
        """The store, if it restores items."""
        try:
            await store.restore([])
        except StoreCapabilityError:
            pytest.skip(f"{type(store).__name__} does not restore items")
        return store

    @pytest.fixture
    def ns(self) -> Namespace:
        """A namespace of the test's own."""
        return self.fresh()

    async def test_it_has_its_version_and_its_moments(
        self, restoring: BaseStore, ns: Namespace
    ) -> None:
        await restoring.restore([_item(ns, "k", {"a": 1}, metadata={"m": [2]})])
        item = await held(restoring, ns, "k")
        assert (item.value, item.metadata) == ({"a": 1}, {"m": [2]})
        assert _past(item) == (7, _LONG_AGO, _LONG_AGO + timedelta(days=3), None)
        assert await restoring.scan(ns) == [item]
        assert await restoring.list_keys(ns) == ["k"]

    async def test_a_later_put_goes_on_from_there(
        self, restoring: BaseStore, ns: Namespace
    ) -> None:
        await restoring.restore([_item(ns, "k", 1)])
        [error] = await refused(VersionConflictError, restoring.put(ns, "k", 2, if_version=6))
        assert error.actual == 7
        assert await restoring.put(ns, "k", 2, if_version=7) == 8
        item = await held(restoring, ns, "k")
        assert item.created_at == _LONG_AGO
        assert item.updated_at > _LONG_AGO + timedelta(days=3)

    async def test_it_replaces_an_item_of_any_version(
        self, restoring: BaseStore, ns: Namespace
    ) -> None:
        ttl = 60 if restoring.capabilities.ttl else None
        for value in range(9):
            await restoring.put(ns, "k", value, ttl=ttl)
        await restoring.restore([_item(ns, "k", "back", version=2)])
        assert _past(await restoring.get_item(ns, "k"))[0::3] == (2, None)
        assert await restoring.get(ns, "k") == "back"
        assert await restoring.delete(ns, "k", if_version=2)
        assert await restoring.scan(ns) == []

    async def test_it_expires_when_it_would_have(
        self, restoring: BaseStore, ns: Namespace, clock: FakeClock
    ) -> None:
        need(restoring, "ttl")
        soon = timestamp(clock() + 50)
        await restoring.restore(
            [
                _item(ns, "k", 1, expires_at=soon),
                _item(ns, "gone", 1, expires_at=timestamp(clock() - 1)),
                _item(ns, "stays", 1),
            ]
        )
        assert _past(await restoring.get_item(ns, "k"))[-1] == soon
        assert await restoring.list_keys(ns) == ["k", "stays"]
        clock.advance(51)
        assert await restoring.list_keys(ns) == ["stays"]
        assert await restoring.put(ns, "k", 2) == 1

    async def test_it_is_found_by_its_words(self, restoring: BaseStore, ns: Namespace) -> None:
        need(restoring, "search")
        await restoring.restore(
            [
                _item(ns, "k", "a brown fox"),
                _item(ns, "l", "hidden fox", text=""),
                _item(ns, "m", "no animal", text="fox"),
            ]
        )
        assert {each.key for each in await restoring.search(ns, "fox")} >= {"k", "m"}

    async def test_it_has_its_vector(self, restoring: BaseStore, ns: Namespace) -> None:
        need(restoring, "semantic_search")
        await restoring.put_with_embedding(ns, "old", 1, axis(restoring, 1))
        await restoring.restore(
            [
                _item(ns, "k", 1, embedding=axis(restoring, 0)),
                _item(ns, "old", 2),
            ]
        )
        assert await restoring.get_embedding(ns, "k") == pytest.approx(axis(restoring, 0), abs=1e-6)
        assert await restoring.get_embedding(ns, "old") is None
        [hit] = await restoring.search_by_embedding(ns, axis(restoring, 0))
        assert _past(hit.item)[0] == 7

    async def test_items_keep_the_order_in_which_they_are_restored(
        self, restoring: BaseStore, ns: Namespace
    ) -> None:
        keys = ["c", "a", "d", "b"]
        await restoring.restore(
            [
                _item(ns, key, key, updated_at=_LONG_AGO + timedelta(seconds=place))
                for place, key in enumerate(keys)
            ]
        )
        assert [each.key for each in await restoring.search(ns)] == keys[::-1]
        if goes_by_writes(restoring):
            await restoring.put(ns, "a", "again")
            assert [each.key for each in await restoring.search(ns)] == ["a", "b", "d", "c"]

    async def test_a_page_of_many(self, restoring: BaseStore, ns: Namespace) -> None:
        items = [_item(ns, f"{n:04}", n, version=n + 1) for n in range(LONG)]
        await restoring.restore(items)
        found = await restoring.scan(ns, 2 * LONG)
        assert [each.version for each in found] == list(range(1, LONG + 1))

    @pytest.mark.parametrize(
        "fields",
        [
            {"version": 0},
            {"version": True},
            {"version": 1.5},
            {"version": 2**60},
            {"created_at": datetime(2020, 1, 1)},  # noqa: DTZ001 - it is what is refused
            {"updated_at": 5},
            {"expires_at": "soon"},
            {"ttl": 5},
            {"if_version": 1},
            {"key": ""},
            {"namespace": ()},
            {"value": {1, 2}},
        ],
    )
    async def test_a_bad_item_is_refused_before_anything_is_written(
        self, restoring: BaseStore, ns: Namespace, fields: dict[str, Any]
    ) -> None:
        good = _item(ns, "good", 1)
        await refused(InvalidArgumentError, restoring.restore([good, replace(good, **fields)]))
        await refused(InvalidArgumentError, restoring.restore([good, good]))
        assert await restoring.scan(ns) == []

    async def test_a_batch_takes_no_restored_item(
        self, restoring: BaseStore, ns: Namespace
    ) -> None:
        await refused(InvalidArgumentError, restoring.put_batch([_item(ns, "k", 1)]))
        assert await restoring.scan(ns) == []

    @PROPERTY
    @given(
        place=st.tuples(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE)),
        content=st.tuples(json_values, json_objects),
        past=st.tuples(st.integers(1, 2**40), _moments, _moments),
    )
    async def test_any_item_comes_back(
        self,
        restoring: BaseStore,
        place: tuple[str, str],
        content: tuple[Any, dict[str, Any]],
        past: tuple[int, datetime, datetime],
    ) -> None:
        ns, (value, metadata), (version, created, updated) = self.fresh(place[0]), content, past
        item = _item(
            ns,
            place[1],
            value,
            metadata=metadata,
            version=version,
            created_at=created,
            updated_at=updated,
        )
        await restoring.restore([item])
        found = await held(restoring, ns, place[1])
        assert (found.value, found.metadata) == (value, metadata)
        assert _past(found) == (version, created, updated, None)
