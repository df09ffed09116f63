"""The base of all parts of the store suite: fixtures, skips and strategies."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Put, StoreItem
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.testing.fakes import FakeClock

__all__ = [
    "HOSTILE",
    "LONG",
    "MANY",
    "NOT_TEXT",
    "PROPERTY",
    "StoreSuite",
    "axis",
    "fill",
    "goes_by_writes",
    "held",
    "innermost",
    "json_objects",
    "json_values",
    "need",
    "refused",
]

_Error = TypeVar("_Error", bound=BaseException)

HOSTILE: Final = [
    *("/", "a/b", ":", "users:admin", ".", "..", "%", "%41", "_", "*", "a*", "?", "[a-z]", "{x}"),
    *("\x00", "a\x00b", "\x01", "\x02", "\x02\x02", "\x1f", "a\x1fb", "\n", " ", "\t", "\x7f"),
    *("'", '"', "`", "\\", "a'b", 'a"b', "'; DROP TABLE items; --", "$", "$.x", "-", "--", "#"),
    *(
        "é",
        "e\u0301",
        "ß",
        "日本語",
        "🦊",
        "👩\u200d💻",
        "\ufeff",
        "\U0010ffff",
        "\ud7ff",
        "\ue000",
    ),
    *("A", "a", "null", "None", "0", "a" * 1000, "🦊" * 250),
]
"""Labels and keys with a special meaning in some encoding, pattern or query language."""

LONG: Final = 1205
"""More rows than a backend reads in one page; not a round number."""

MANY: Final = 10_050
"""More rows than a round number that a backend may use as a limit."""

NOT_TEXT: Final[list[Any]] = [5, True, b"a", ["a"], "\ud800", "a\udfffb"]
"""Values that are not text: not a string, or with half a surrogate pair."""

PROPERTY: Final = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
    ],
)
"""For properties that share one store: each example writes to its own namespace."""

_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)

json_values: Final[st.SearchStrategy[Any]] = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
"""Any JSON value: nested, any character, 64-bit integers, every finite float."""

json_objects: Final[st.SearchStrategy[dict[str, Any]]] = st.dictionaries(
    st.text(max_size=8), json_values, max_size=3
)
"""Any JSON object."""


class StoreSuite:
    """The fixtures of a suite; see `locus_memory.testing.StoreConformance`."""

    pytestmark: ClassVar[list[pytest.MarkDecorator]] = [pytest.mark.asyncio]
    _serial: ClassVar[itertools.count[int]] = itertools.count()

    def make_store(
        self, clock: FakeClock, tmp_path: Path
    ) -> AbstractAsyncContextManager[BaseStore]:
        """Return an empty store that reads `clock`; a store is its own context manager."""
        raise NotImplementedError

    @pytest.fixture
    def clock(self) -> FakeClock:
        """The clock passed to `make_store`."""
        return FakeClock()

    @pytest_asyncio.fixture
    async def store(self, clock: FakeClock, tmp_path: Path) -> AsyncIterator[BaseStore]:
        """A new store."""
        async with self.make_store(clock, tmp_path) as store:
            yield store

    def fresh(self, *labels: str) -> Namespace:
        """Return a namespace that no other test of this run has written to."""
        return (f"fresh-{next(self._serial)}", *labels)


def need(store: BaseStore, *names: str) -> None:
    """Skip the test if the store does not declare these capabilities."""
    for name in names:
        if not getattr(store.capabilities, name):
            pytest.skip(f"{type(store).__name__} does not declare {name}")


def goes_by_writes(store: BaseStore) -> bool:
    """Whether the store must list the newest write first: not if it uses the default `search`."""
    inner = innermost(store)
    return inner.capabilities.search or type(inner).search is not BaseStore.search


def innermost(store: BaseStore) -> BaseStore:
    """Return the store inside all wrappers."""
    while isinstance(store, StoreWrapper):
        store = store.inner
    return store


def axis(store: BaseStore, index: int) -> list[float]:
    """Return a unit vector of a length that the store accepts, along one axis."""
    vector = [0.0] * (store.capabilities.embedding_dimension or 8)
    vector[index] = 1.0
    return vector


async def fill(store: BaseStore, namespace: Namespace, keys: Sequence[str]) -> None:
    """Put an item under each of the keys; its value is the key."""
    await store.put_batch([Put(namespace=namespace, key=key, value=key) for key in keys])


async def refused(error: type[_Error], *calls: Awaitable[Any]) -> list[_Error]:
    """Return the errors of the calls, each of which must raise an `error`."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    errors = [result for result in results if isinstance(result, error)]
    assert len(errors) == len(results), results
    return errors


async def held(store: BaseStore, namespace: Namespace, key: str) -> StoreItem:
    """Return an item, which must be there."""
    item = await store.get_item(namespace, key)
    assert item is not None
    return item
