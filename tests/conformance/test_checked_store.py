"""The least that a backend writes over `CheckedStore` keeps the contract.

That it does so without any capability: `integration/test_wrappers.py`.
"""

from __future__ import annotations

import pytest

from locus_memory.backends.checked_store import CheckedStore, implements
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, StoreCapabilityError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put, StoreCapabilities
from locus_memory.testing import FakeClock, StoreConformance


class FiveMethods(CheckedStore):
    """What a backend has to write, and nothing else."""

    capabilities = StoreCapabilities(ttl=True)

    def __init__(self, clock):
        self.inner = InMemoryStore(clock=clock)
        self.is_open = False

    def _encode(self, operation, vector):
        return self.inner._encode(operation, vector)

    async def _write(self, operations):
        return await self.inner._write(operations)

    async def _get_item(self, namespace, key):
        return await self.inner._get_item(namespace, key)

    async def _scan(self, namespace, keys, limit):
        return await self.inner._scan(namespace, keys, limit)

    async def _newest(self, selection, page):
        return await self.inner._newest(selection, page)

    async def open(self):
        self.is_open = True
        await self.inner.open()

    async def close(self):
        await self.inner.close()


class NoClaims(FiveMethods):
    capabilities = StoreCapabilities()


class TestFiveMethods(StoreConformance):
    def make_store(self, clock, tmp_path):
        return FiveMethods(clock)


@pytest.mark.parametrize(
    "verb",
    ["get_batch", "list_namespaces", "search", "get_embedding", "search_by_embedding"],
)
def test_a_verb_is_implemented_by_the_method_behind_it(verb):
    assert not implements(FiveMethods, verb)
    assert implements(InMemoryStore, verb)


@pytest.mark.parametrize("verb", ["put_batch", "delete_batch", "write_batch"])
def test_what_writes_is_implemented_by_each_checked_store(verb):
    assert implements(FiveMethods, verb)


def test_a_verb_of_its_own_implements_itself():
    class Own(FiveMethods):
        async def search(self, *args, **kwargs):
            raise NotImplementedError

    class Plain(BaseStore):
        search = Own.search

    assert implements(Own, "search")
    assert implements(Plain, "search")
    assert not implements(Plain, "list_namespaces")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "arguments",
    [
        {"namespace": "n"},
        {"key": ""},
        {"ttl": -1},
        {"if_version": -1},
        {"embedding": [0.0]},
        {"embedding": None},
        {"value": {1}},
        {"metadata": []},
        {"text": 5},
    ],
)
async def test_a_bad_argument_is_refused_before_anything_is_opened(arguments):
    store = NoClaims(FakeClock())
    good = {"namespace": ("n",), "key": "k", "value": 1, "embedding": [1.0]}
    with pytest.raises(InvalidArgumentError):
        await store.put_with_embedding(**good | arguments)
    assert not store.is_open
    with pytest.raises(StoreCapabilityError):
        await store.put_with_embedding(**good)
    assert store.is_open


@pytest.mark.asyncio
async def test_a_bad_batch_is_refused_before_anything_is_opened():
    store = NoClaims(FakeClock())
    with pytest.raises(InvalidArgumentError):
        await store.write_batch([Put(namespace=("n",), key="k", value={1})])
    assert not store.is_open
    with pytest.raises(StoreCapabilityError):
        await store.write_batch([Put(namespace=("n",), key="k", value=1)])
    assert store.is_open


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "capability"), [({"ttl": 1}, "ttl"), ({"embedding": [1.0]}, "semantic_search")]
)
async def test_a_batch_that_takes_too_much_is_not_written(fields, capability):
    async with NoClaims(FakeClock()) as store:
        plain = Put(namespace=("n",), key="a", value=1)
        with pytest.raises(StoreCapabilityError) as error:
            await store.put_batch([plain, Put(namespace=("n",), key="b", value=1, **fields)])
        assert error.value.capability == capability
        assert await store.list_keys(("n",)) == []
