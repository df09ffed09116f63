"""Values about scopes, and the writes that drop them."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.memory.planning.cache import ScopeCache, WatchedStore
from locus_memory.store.item import Delete, Put

SCOPE = ("app", "users", "ada")


@pytest.fixture
def cache(clock):
    return ScopeCache(clock)


def keep(cache, namespace=SCOPE, value="block"):
    cache.put(cache.ticket(namespace), "query", value)


WRITES = {
    "put": lambda store, space: store.put(space, "k", {}),
    "put_batch": lambda store, space: store.put_batch([(space, "k", {})]),
    "put_with_embedding": lambda store, space: store.put_with_embedding(space, "k", {}, [1.0]),
    "delete": lambda store, space: store.delete(space, "k"),
    "delete_batch": lambda store, space: store.delete_batch([(space, "k")]),
    "write_batch": lambda store, space: store.write_batch(
        [Delete(namespace=space, key="k"), Put(namespace=("elsewhere",), key="k", value={})]
    ),
    "clear_namespace": lambda store, space: store.clear_namespace(space),
}


@pytest.mark.parametrize("verb", list(WRITES))
@pytest.mark.parametrize("layer", ["current", "identity", "vitals", "episodes", "transcript"])
async def test_every_write_of_a_layer_drops_the_values_of_its_scope(cache, clock, verb, layer):
    async with WatchedStore(InMemoryStore(clock=clock)) as store:
        keep(cache)
        keep(cache, ("app",))
        await WRITES[verb](store, (*SCOPE, layer))
        assert cache.get(SCOPE, "query") is None
        assert cache.get(("app",), "query") == "block"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ((*SCOPE, "queue"), True),
        ((*SCOPE, "log"), True),
        (("app", "users", "ada2", "current"), True),
        (("app", "users", "bob", "current"), True),
        (("app", "current"), True),
        ((*SCOPE, "transcript", "thread"), False),
        (SCOPE, False),
        (("app", "users"), False),
        (("app",), False),
    ],
)
def test_what_belongs_to_a_scope(cache, written, *, kept):
    keep(cache)
    cache.drop(written)
    assert (cache.get(SCOPE, "query") is not None) is kept


def test_a_value_that_was_read_before_a_write_is_not_kept(cache):
    ticket = cache.ticket(SCOPE)
    cache.drop((*SCOPE, "current"))
    cache.put(ticket, "query", "old")
    assert cache.get(SCOPE, "query") is None
    other = cache.ticket(SCOPE)
    cache.drop(("app", "users", "bob", "current"))
    cache.put(other, "query", "new")
    assert cache.get(SCOPE, "query") == "new"


def test_a_value_lives_ten_seconds(cache, clock):
    keep(cache)
    clock.advance(9.9)
    assert cache.get(SCOPE, "query") == "block"
    clock.advance(0.2)
    assert cache.get(SCOPE, "query") is None
    keep(cache)
    clock.advance(-1)
    assert cache.get(SCOPE, "query") is None


def test_the_oldest_value_goes_first(clock):
    cache = ScopeCache(clock, capacity=2)
    for user in ("a", "b", "c"):
        keep(cache, ("app", user))
    assert [cache.get(("app", user), "query") for user in ("a", "b", "c")] == [
        None,
        "block",
        "block",
    ]
    assert len(cache) == 2
