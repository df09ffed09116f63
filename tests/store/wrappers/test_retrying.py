from __future__ import annotations

import pytest

from locus_memory.backends.inmemory import InMemoryStore
from locus_memory.errors import (
    BackendError,
    BackendUnavailableError,
    InvalidArgumentError,
    VersionConflictError,
)
from locus_memory.events import collect
from locus_memory.store.item import Delete, Put, Restored, timestamp
from locus_memory.store.wrappers import RetryingStore, StoreWrapper
from locus_memory.store.wrappers.base import READS, WRITES

NS = ("retry",)
PUT = Put(namespace=NS, key="k", value=1)
MOMENT = timestamp(1)
RESTORED = Restored(namespace=NS, key="k", value=1, version=5, created_at=MOMENT, updated_at=MOMENT)

CALLS = {
    "get": lambda store: store.get(NS, "k"),
    "get_item": lambda store: store.get_item(NS, "k"),
    "exists": lambda store: store.exists(NS, "k"),
    "scan": lambda store: store.scan(NS, 5, prefix="k"),
    "list_keys": lambda store: store.list_keys(NS),
    "list_namespaces": lambda store: store.list_namespaces(),
    "get_batch": lambda store: store.get_batch(iter([(NS, "k")])),
    "search": lambda store: store.search(NS, filter={"n": 1}),
    "get_embedding": lambda store: store.get_embedding(NS, "k"),
    "search_by_embedding": lambda store: store.search_by_embedding(NS, [1.0]),
    "put": lambda store: store.put(NS, "k", 1),
    "put_with_embedding": lambda store: store.put_with_embedding(NS, "k", 1, [1.0]),
    "delete": lambda store: store.delete(NS, "k"),
    "clear_namespace": lambda store: store.clear_namespace(NS),
    "compact": lambda store: store.compact(),
    "put_batch": lambda store: store.put_batch([PUT]),
    "delete_batch": lambda store: store.delete_batch([(NS, "k")]),
    "write_batch": lambda store: store.write_batch([PUT, Delete(namespace=NS, key="j")]),
    "restore": lambda store: store.restore([RESTORED]),
}


class FailingStore(StoreWrapper):
    """Does what it is asked, and then loses the answer `failures` times."""

    failures = 0
    error = BackendUnavailableError
    calls = 0


def _failing(name):
    async def failing(self, *args, **kwargs):
        self.calls += 1
        result = await getattr(self.inner, name)(*args, **kwargs)
        if self.failures:
            self.failures -= 1
            raise self.error("no answer")
        return result

    return failing


for _name in (*READS, *WRITES, "open"):
    setattr(FailingStore, _name, _failing(_name))


@pytest.fixture
def inner():
    return FailingStore(InMemoryStore())


@pytest.fixture
def waits():
    return []


@pytest.fixture
def store(inner, waits):
    async def sleep(seconds):
        waits.append(seconds)

    return RetryingStore(inner, attempts=3, longest_wait=2.0, sleep=sleep)


def test_every_verb_is_tried():
    assert set(CALLS) == {*READS, *WRITES}


@pytest.mark.parametrize("verb", READS)
async def test_a_read_is_repeated(store, inner, waits, verb):
    expected = await CALLS[verb](store)
    inner.failures = 2
    with collect() as events:
        assert await CALLS[verb](store) == expected
    assert len(waits) == 2
    assert all(0 <= wait <= 2.0 for wait in waits)
    assert [(each.name, dict(each.attributes)) for each in events] == [
        ("store.retried", {"verb": verb, "attempt": 1}),
        ("store.retried", {"verb": verb, "attempt": 2}),
    ]
    assert isinstance(events[0].error, BackendUnavailableError)


@pytest.mark.parametrize("verb", WRITES)
async def test_a_write_is_made_once(store, inner, waits, verb):
    inner.failures, inner.calls = 1, 0
    with pytest.raises(BackendUnavailableError):
        await CALLS[verb](store)
    assert (inner.calls, waits) == (1, [])


async def test_a_write_whose_answer_is_lost_is_not_done_twice(store, inner):
    await store.put(NS, "k", "first")
    inner.failures = 1
    with pytest.raises(BackendUnavailableError):
        await store.put(NS, "k", "second", if_version=1)
    assert (await store.get_item(NS, "k")).version == 2


async def test_the_last_error_is_raised(store, inner):
    inner.failures = 3
    with pytest.raises(BackendUnavailableError, match="no answer"):
        await store.get(NS, "k")
    assert (inner.calls, inner.failures) == (3, 0)


@pytest.mark.parametrize("error", [BackendError, lambda _: VersionConflictError(1, 2), ValueError])
async def test_other_errors_are_raised_at_once(store, inner, error):
    inner.failures, inner.error = 1, error
    with pytest.raises((BackendError, VersionConflictError, ValueError)):
        await store.get(NS, "k")
    assert inner.calls == 1


async def test_opening_is_repeated(store, inner):
    inner.failures = 2
    async with store:
        assert inner.calls == 3


@pytest.mark.parametrize("options", [{"attempts": 0}, {"longest_wait": -1}])
def test_bad_options_are_refused(inner, options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        RetryingStore(inner, **options)
