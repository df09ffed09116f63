from __future__ import annotations

import pytest

from locus_memory import get_store
from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import BackendWriteError
from locus_memory.store.item import Put, Restored, timestamp
from locus_memory.store.wrappers import ReadOnlyStore
from locus_memory.store.wrappers.base import READS, WRITES, StoreWrapper

NS = ("read",)
PUT = Put(namespace=NS, key="k", value=2)
MOMENT = timestamp(1)
RESTORED = Restored(namespace=NS, key="k", value=2, version=5, created_at=MOMENT, updated_at=MOMENT)

CALLS = {
    "put": lambda store: store.put(NS, "k", 2),
    "put_with_embedding": lambda store: store.put_with_embedding(NS, "k", 2, [1.0]),
    "delete": lambda store: store.delete(NS, "k"),
    "clear_namespace": lambda store: store.clear_namespace(NS, recursive=True),
    "compact": lambda store: store.compact(),
    "put_batch": lambda store: store.put_batch([PUT]),
    "delete_batch": lambda store: store.delete_batch([(NS, "k")]),
    "write_batch": lambda store: store.write_batch([PUT]),
    "restore": lambda store: store.restore([RESTORED]),
}


def test_every_verb_of_a_wrapper_reads_or_writes():
    forwarded = {name for name, verb in vars(StoreWrapper).items() if not name.startswith("_")}
    assert forwarded - {"capabilities", "open", "close"} == {*READS, *WRITES}
    assert set(CALLS) == set(WRITES)


@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_is_refused(verb):
    inner = InMemoryStore()
    await inner.put(NS, "k", 1)
    with pytest.raises(BackendWriteError, match=rf"{verb}: this store is read-only"):
        await CALLS[verb](ReadOnlyStore(inner))
    item = await inner.get_item(NS, "k")
    assert (item.value, item.version) == (1, 1)


async def test_it_takes_a_provider_string(tmp_path):
    async with get_store(f"sqlite:{tmp_path}/a.db") as store:
        await store.put(NS, "k", 1)
    async with ReadOnlyStore(f"sqlite:{tmp_path}/a.db") as store:
        assert await store.get(NS, "k") == 1
        with pytest.raises(BackendWriteError):
            await store.put(NS, "k", 2)
