"""The newest items of a tree are the same, however many namespaces and items it has."""

from __future__ import annotations

import random

import pytest

from locus_memory.backends.postgresql.items import items
from locus_memory.backends.postgresql.store import PostgreSQLStore
from locus_memory.testing.fakes import FakeClock

LONG = "n" * 700
PATHS = [(), ("a",), ("a", "x"), ("b",), (LONG,), (LONG, "y"), (f"{LONG}z",)]
WAYS = {
    "each namespace": (100, 100, 100),
    "each of many namespaces": (3, 100, 2),
    "all items are sorted, for they are few": (3, 100, 10_000),
    "all items are sorted, for the namespaces are too many": (3, 4, 2),
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """How many namespaces are few, how many are many, and how many items are many."""
    few, many, many_items = WAYS[request.param]
    monkeypatch.setattr(items, "_FEW_SCOPES", few)
    monkeypatch.setattr(items, "_MANY_SCOPES", many)
    monkeypatch.setattr(items, "_MANY_ITEMS", many_items)


@pytest.mark.usefixtures("way")
async def test_a_page_is_that_of_all_items_sorted(pool):
    clock, chance = FakeClock(), random.Random(3)
    store = PostgreSQLStore(pool=pool, clock=clock)
    written = []
    for number in range(120):
        space = ("tree", *chance.choice(PATHS))
        ttl = 5 if chance.random() < 0.2 else None
        await store.put(space, f"{number % 40}", number, {"odd": number % 2}, ttl=ttl)
        written = [each for each in written if each[:2] != (space, f"{number % 40}")]
        written.append((space, f"{number % 40}", number, ttl))
        # Neither before nor after the tree.
        await store.put((chance.choice(["tre", "tree ", "treea"]),), f"{number}", number)
    clock.advance(10)
    left = [each for each in reversed(written) if each[3] is None]
    for choice in (None, {"odd": 1}):
        expected = [number for *_, number, _ in left if choice is None or number % 2]
        for limit, offset in ((5, 0), (7, 20), (200, 0), (5, 300)):
            found = await store.search(
                ("tree",), None, limit, offset=offset, filter=choice, recursive=True
            )
            assert [item.value for item in found] == expected[offset : offset + limit]
    assert await store.search(("tree", "none"), None, recursive=True) == []
