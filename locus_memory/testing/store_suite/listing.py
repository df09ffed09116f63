"""The store suite: listing, paging and clearing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_memory.errors import InvalidArgumentError, InvalidNamespaceError
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Put
from locus_memory.testing.store_suite.base import (
    LONG,
    MANY,
    NOT_TEXT,
    PROPERTY,
    StoreSuite,
    fill,
    need,
    refused,
)

__all__ = ["ClearTests", "KeyOrderTests", "NamespaceListTests"]

NS = ("log",)

_key = st.text("ab\x00\x02%_*é\ue000🦊", min_size=1, max_size=4)

TREE: list[Namespace] = [
    ("a",),
    ("a", "b"),
    ("a", "b", "c"),
    ("a", "d"),
    ("a/b",),
    ("ab", "b"),
    ("users", "1", "memories"),
    ("users", "2", "memories"),
    ("users", "2", "notes"),
]


LISTED: list[tuple[Namespace | None, dict[str, Any], list[Namespace]]] = [
    (None, {}, TREE),
    ((), {}, TREE),
    (("a",), {}, TREE[:4]),
    (("a", "b"), {}, TREE[1:3]),
    (("a", "*"), {}, TREE[1:4]),
    (("*", "b"), {}, [("a", "b"), ("a", "b", "c"), ("ab", "b")]),
    (("users", "*", "memories"), {}, TREE[6:8]),
    (None, {"suffix": ("b",)}, [("a", "b"), ("ab", "b")]),
    (None, {"suffix": ("*", "memories")}, TREE[6:8]),
    (("users", "2"), {"suffix": ("notes",)}, [("users", "2", "notes")]),
    (("none",), {}, []),
    (None, {"max_depth": 1}, [("a",), ("a/b",), ("ab",), ("users",)]),
    (("users",), {"max_depth": 2}, [("users", "1"), ("users", "2")]),
    (None, {"suffix": ("memories",), "max_depth": 1}, [("users",)]),
]
"""A prefix and other options of `list_namespaces`, and what they find of the tree."""


class KeyOrderTests(StoreSuite):
    """`scan` and `list_keys` sort by code point and have no hidden limit."""

    async def test_scan_returns_full_items(self, store: BaseStore) -> None:
        await store.put(NS, "k", {"n": 1}, {"m": 2})
        await store.put(NS, "k", {"n": 2}, {"m": 3})
        assert await store.scan(NS) == [await store.get_item(NS, "k")]

    @pytest.mark.parametrize("limit", [-1, True, 1.5, "10", None], ids=repr)
    async def test_a_bad_limit_is_refused(self, store: BaseStore, limit: Any) -> None:
        await refused(
            InvalidArgumentError,
            store.list_keys(NS, limit),
            store.scan(NS, limit),
            store.search(NS, limit=limit),
            store.search(NS, offset=limit),
        )

    @pytest.mark.parametrize("limit", [2**31, 2**62, 2**63 - 1, 2**63, 2**64, 10**30], ids=repr)
    async def test_any_large_limit_means_all(self, store: BaseStore, limit: int) -> None:
        await fill(store, NS, ["a", "b"])
        assert await store.list_keys(NS, limit) == ["a", "b"]
        assert len(await store.scan(NS, limit)) == 2
        assert len(await store.search(NS, limit=limit)) == 2
        assert len(await store.search(NS, limit=limit, offset=1)) == 1
        assert await store.search(NS, limit=limit, offset=limit) == []
        assert await store.search(NS, limit=1, offset=limit) == []

    @pytest.mark.parametrize("bad", NOT_TEXT, ids=ascii)
    async def test_a_bad_window_is_refused(self, store: BaseStore, bad: Any) -> None:
        await fill(store, NS, ["a", "b"])
        for namespace in (NS, ("empty",)):
            await refused(
                InvalidArgumentError,
                store.scan(namespace, prefix=bad),
                store.scan(namespace, after=bad),
                store.list_keys(namespace, prefix=bad),
                store.list_keys(namespace, after=bad),
            )

    @PROPERTY
    @given(
        keys=st.sets(_key, max_size=12),
        limit=st.integers(0, 8),
        window=st.fixed_dictionaries(
            {
                "prefix": st.none() | st.text("ab\x00%_*é\ue000🦊", max_size=2),
                "after": st.none() | _key,
            }
        ),
    )
    async def test_any_window_of_any_keys(
        self, store: BaseStore, keys: set[str], limit: int, window: dict[str, Any]
    ) -> None:
        namespace = self.fresh()
        await fill(store, namespace, sorted(keys))
        after = window["after"]
        wanted = [key for key in sorted(keys) if key.startswith(window["prefix"] or "")]
        up = [key for key in wanted if after is None or key > after]
        down = [key for key in reversed(wanted) if after is None or key < after]
        assert await store.list_keys(namespace, limit, **window) == up[:limit]
        assert [i.key for i in await store.scan(namespace, limit, **window)] == up[:limit]
        found = await store.scan(namespace, limit, descending=True, **window)
        assert [item.key for item in found] == down[:limit]

    async def test_paging_reaches_every_key_once(self, store: BaseStore) -> None:
        keys = [f"{n:05}" for n in range(LONG)]
        await fill(store, NS, keys)
        await fill(store, (*NS, "neighbour"), ["x"])
        for descending in (False, True):
            seen: list[str] = []
            after = None
            # Bounded, so that a store that returns the cursor itself fails instead of hanging.
            while len(seen) < len(keys):
                page = await store.scan(NS, 100, after=after, descending=descending)
                assert 0 < len(page) <= 100
                seen += [item.key for item in page]
                after = seen[-1]
            assert await store.scan(NS, 100, after=after, descending=descending) == []
            assert seen == sorted(keys, reverse=descending)
        assert await store.list_keys(NS, LONG + 100) == keys
        assert len(await store.search(NS, limit=LONG + 100)) == LONG
        assert len(await store.search(NS, limit=100, offset=LONG - 5)) == 5


class ClearTests(StoreSuite):
    """`clear_namespace` deletes all of a namespace, and nothing else."""

    async def test_no_verb_has_a_hidden_cap(self, store: BaseStore) -> None:
        keys = [f"{n:05}" for n in range(MANY)]
        ends = {keys[0], keys[-1]}
        await store.put_batch(
            [
                Put(namespace=NS, key=key, value=1, metadata={"end": key in ends}, text="")
                for key in keys
            ]
        )
        assert [item.key for item in await store.scan(NS, MANY + 100)] == keys
        assert await store.list_keys(NS, MANY + 100) == keys
        assert len(await store.search(NS, limit=MANY + 100)) == MANY
        # The oldest and the newest: a filter must test every item.
        assert {item.key for item in await store.search(NS, filter={"end": True})} == ends
        assert await store.clear_namespace(NS) == MANY
        assert await store.list_keys(NS) == []

    @pytest.mark.parametrize("recursive", [False, True])
    async def test_it_clears_everything_but_neighbours(
        self,
        store: BaseStore,
        recursive: bool,  # noqa: FBT001 - a parameter of the test
    ) -> None:
        if recursive:
            need(store, "list_namespaces")
        neighbours: list[Namespace] = [
            ("a",),
            ("a", "bb"),
            ("a", "b "),
            ("a/b",),
            ("b", "a"),
            ("B",),
        ]
        child = ("a", "b", "c")
        for namespace in (*neighbours, child):
            await fill(store, namespace, ["k"])
        await fill(store, ("a", "b"), [f"{n:05}" for n in range(LONG)])
        removed = await store.clear_namespace(("a", "b"), recursive=recursive)
        assert removed == LONG + recursive
        assert await store.list_keys(("a", "b")) == []
        assert await store.search(("a", "b")) == []
        assert await store.exists(child, "k") is not recursive
        for namespace in neighbours:
            assert await store.list_keys(namespace) == ["k"]
        assert await store.put(("a", "b"), "00000", "again") == 1

    async def test_clearing_an_empty_namespace(self, store: BaseStore) -> None:
        assert await store.clear_namespace(("never", "used")) == 0


class NamespaceListTests(StoreSuite):
    """`list_namespaces` and `recursive`."""

    async def test_namespaces_by_prefix_suffix_and_depth(self, store: BaseStore) -> None:
        need(store, "list_namespaces")
        for namespace in reversed(TREE):
            await fill(store, namespace, ["k", "l"])
        for prefix, options, expected in LISTED:
            assert await store.list_namespaces(prefix, **options) == expected

    async def test_namespaces_page(self, store: BaseStore) -> None:
        need(store, "list_namespaces")
        for namespace in TREE:
            await fill(store, namespace, ["k"])
        for depth in (None, 1, 2):
            everything = await store.list_namespaces(max_depth=depth)
            seen: list[Namespace] = []
            after = None
            while len(seen) < len(everything):
                page = await store.list_namespaces(limit=2, max_depth=depth, after=after)
                assert 0 < len(page) <= 2
                seen += page
                after = page[-1]
            assert seen == everything
            assert await store.list_namespaces(max_depth=depth, after=after) == []
        assert await store.list_namespaces(limit=0) == []
        assert await store.list_namespaces(after=("a", "c")) == TREE[3:]

    async def test_many_namespaces(self, store: BaseStore) -> None:
        need(store, "list_namespaces")
        namespaces = [("many", f"{n:05}") for n in range(LONG)]
        await store.put_batch([(namespace, "k", 1) for namespace in namespaces])
        assert await store.list_namespaces(("many",), LONG + 100) == namespaces
        assert await store.clear_namespace(("many",), recursive=True) == LONG
        assert await store.list_namespaces() == []

    @pytest.mark.parametrize("bad", ["users", ["users"], ("",), (1,)], ids=repr)
    async def test_a_bad_pattern_is_refused(self, store: BaseStore, bad: Any) -> None:
        need(store, "list_namespaces")
        await refused(
            InvalidNamespaceError,
            store.list_namespaces(bad),
            store.list_namespaces(suffix=bad),
            store.list_namespaces(after=bad),
        )

    async def test_recursive_search_sees_descendants_only(self, store: BaseStore) -> None:
        need(store, "list_namespaces")
        for namespace in (*TREE, ("*",), ("*", "x")):
            await fill(store, namespace, ["k"])
        cases: list[tuple[Namespace, list[Namespace]]] = [
            (("a",), TREE[:4]),
            (("a", "b"), TREE[1:3]),
            (("*",), [("*",), ("*", "x")]),
            (("use",), []),
        ]
        for namespace, expected in cases:
            found = await store.search(namespace, limit=100, recursive=True)
            assert sorted(item.namespace for item in found) == expected
