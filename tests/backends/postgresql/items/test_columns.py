"""Columns of a batch, as the server splits them."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.store.item import Delete, Put

NASTY = st.text(
    st.sampled_from("\x00\x01\x02\x03\x04\t\n ,'\"\\{}NULé日🦊") | st.characters(codec="utf-8")
)
NAMES = NASTY.filter(bool)
NAMESPACES = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
VALUES = (
    st.none()
    | NASTY
    | st.dictionaries(NASTY, NASTY | st.floats(allow_nan=False, allow_infinity=False))
)


@pytest.fixture(scope="module")
def run():
    with asyncio.Runner() as runner:
        yield runner.run


@pytest.fixture(scope="module")
def store(run, postgresql_server):
    store = PostgreSQLStore(postgresql_server.url, schema="t_columns")
    yield store
    run(store.close())


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.tuples(NAMESPACES, NAMES), VALUES, min_size=1, max_size=5),
    st.sampled_from([None, {}, {"a": "\x00"}]),
)
@example({(("n",), "k"): "", (("n",), "l"): None, (("n\x01",), "k"): 1e300}, None)
def test_whatever_a_batch_holds_comes_back(run, store, items, metadata):
    async def there_and_back():
        await store.delete_batch(items)
        batch = [(namespace, key, value, metadata) for (namespace, key), value in items.items()]
        assert await store.put_batch(batch) == [1] * len(items)
        assert await store.get_batch(items) == items
        operations = [Put(namespace=n, key=k, value=v, if_version=1) for (n, k), v in items.items()]
        first, second = operations[0], (("other",), "\x01")
        operations += [
            Put(namespace=second[0], key=second[1], value="", ttl=100),
            Delete(namespace=first.namespace, key=first.key),
        ]
        await store.delete_batch([second])
        assert await store.write_batch(operations) == [2] * len(items) + [1, True]
        assert [await store.get_item(*name) is None for name in items] == [
            (first.namespace, first.key) == name for name in items
        ]
        found = await store.get_item(*second)
        assert (found.value, found.metadata, found.expires_at is None) == ("", {}, False)
        for (namespace, key), value in list(items.items())[1:]:
            item = await store.get_item(namespace, key)
            assert (item.namespace, item.key, item.value) == (namespace, key, value)
        assert await store.delete_batch([*items, second]) == len(items)

    run(there_and_back())
