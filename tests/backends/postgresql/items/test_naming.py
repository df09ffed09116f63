"""Names of items: none is another's, and they keep the order of namespaces and keys."""

from __future__ import annotations

import pytest

from locus_memory.backends.postgresql.items.naming import (
    LONGEST,
    Address,
)
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.backends.selection import path_of


def name_of(namespace, key):
    return Address.of(namespace, key).name


def test_the_longest_name_is_an_entry_of_an_index():
    longest = name_of(("\U0010ffff" * 1000,), "k")
    assert len(longest.encode()) <= 2704 - 16
    assert longest == Address.of(("\U0010ffff" * 1000,), "k").name


@pytest.fixture
async def store(url, schema):
    async with PostgreSQLStore(url, schema=schema) as store:
        yield store


def about_the_cut(namespace):
    """Return keys whose names are cut and not, many of them at the same place."""
    room = max(4, LONGEST - len(path_of(namespace)) - 1)
    stems = ["a" * (room + more) for more in (-3, -1, 0, 1, 40)]
    return sorted(
        {stem + end for stem in stems for end in ("", "\x00", "b", "bc", "é", "\U0010ffff")}
    )


@pytest.mark.slow
@pytest.mark.parametrize("namespace", [("n",), ("n" * 590,), ("n" * 1000, "m")])
async def test_keys_whose_names_are_cut_are_in_order(store, namespace):
    keys = [*about_the_cut(namespace), "y", "z"]
    await store.put_batch([(namespace, key, key) for key in keys])
    await store.put_batch([((*namespace, "below"), "k", 1), ((namespace[0] + "a",), "k", 1)])
    for limit in (1, 3, 7, 100):
        for start in (None, *keys):
            above = [key for key in keys if start is None or key > start]
            assert await store.list_keys(namespace, limit, after=start) == above[:limit]
            below = [key for key in reversed(keys) if start is None or key < start]
            found = await store.scan(namespace, limit, after=start, descending=True)
            assert [item.key for item in found] == below[:limit]
    for prefix in keys:
        some = [key for key in keys if key.startswith(prefix)]
        assert await store.list_keys(namespace, 5, prefix=prefix) == some[:5]
    assert await store.get_batch([(namespace, key) for key in keys]) == {
        (namespace, key): key for key in keys
    }
    assert await store.clear_namespace(namespace) == len(keys)
    assert await store.list_namespaces() == [(*namespace, "below"), (namespace[0] + "a",)]


async def test_namespaces_whose_names_are_cut_are_apart(store):
    labels = [
        "n" * count + end for count in (LONGEST - 2, LONGEST - 1, LONGEST, 700) for end in "ab"
    ]
    spaces = sorted(
        [(label,) for label in labels] + [(label, "below") for label in labels] + [("z",)]
    )
    await store.put_batch([(space, key, key) for space in spaces for key in "kl"])
    assert await store.list_namespaces(limit=1000) == spaces
    for n, space in enumerate(spaces):
        assert await store.list_namespaces(limit=3, after=space) == spaces[n + 1 : n + 4]
        found = await store.search(space, limit=100, recursive=True)
        inside = [each for each in spaces if each[: len(space)] == space]
        assert sorted({item.namespace for item in found}) == inside
        assert len(found) == 2 * len(inside)
    for label in labels:
        assert await store.clear_namespace((label,)) == 2
        assert await store.clear_namespace((label,), recursive=True) == 2
    assert await store.list_namespaces() == [("z",)]


async def test_vectors_of_names_that_are_cut_are_apart(store):
    spaces = [("n" * 700 + end,) for end in "ab"]
    for space in spaces:
        for key in ("k" * 700 + "a", "k" * 700 + "b"):
            await store.put_with_embedding(
                (*space, "below"), key, space[0][-1] + key[-1], [1.0, 0.0]
            )
    for space in spaces:
        hits = await store.search_by_embedding(space, [1.0, 0.0], recursive=True)
        assert sorted(hit.item.value for hit in hits) == [f"{space[0][-1]}a", f"{space[0][-1]}b"]
    assert await store.clear_namespace(spaces[0], recursive=True) == 2
    assert len(await store.search_by_embedding(spaces[1], [1.0, 0.0], recursive=True)) == 2
