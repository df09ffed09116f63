"""Long names, which the names of objects do not hold whole: each list is still in order."""

from __future__ import annotations

import pytest
from served import ADDRESS

from locus_memory.backends.oci import OCICheckpointer, OCIStore

LONG = "a" * 398
TEXTS = sorted(
    {
        *(LONG + end for end in ("", "b", "bb", "bbb", "bbbb", "bc", "bcc", "bbZ", "bbé")),
        *(LONG + "bb" + middle * 600 for middle in ("c", "b", "é", "🦊", "\x00")),
        *(LONG + "bb" + "c" * 599 + end for end in "abc"),
        *("b", "a", "a" * 399, "aZ", "🦊" * 1000, "🦊" * 999 + "x"),
    }
)
"""Several of these begin with the same 400 characters of their codes."""


@pytest.fixture
async def store(options):
    async with OCIStore(ADDRESS, **options) as store:
        yield store


async def test_every_window_of_long_keys(store):
    namespace = ("long",)
    await store.put_batch([(namespace, key, key) for key in reversed(TEXTS)])
    assert await store.list_keys(namespace) == TEXTS
    for after in [None, *TEXTS, LONG + "bbc"]:
        for limit in (1, 3, 100):
            wanted = [key for key in TEXTS if after is None or key > after][:limit]
            assert await store.list_keys(namespace, limit, after=after) == wanted
            wanted = [key for key in reversed(TEXTS) if after is None or key < after][:limit]
            found = await store.scan(namespace, limit, after=after, descending=True)
            assert [item.key for item in found] == wanted
    for prefix in (
        LONG,
        LONG + "b",
        LONG + "bb",
        LONG + "bbc",
        LONG + "bb" + "c" * 599,
        "🦊" * 500,
    ):
        wanted = [key for key in TEXTS if key.startswith(prefix)]
        assert [item.key for item in await store.scan(namespace, prefix=prefix)] == wanted
    assert await store.clear_namespace(namespace) == len(TEXTS)


async def test_every_page_of_long_namespaces(store):
    namespaces = sorted(
        [*((text,) for text in TEXTS), *((text, "x") for text in TEXTS), (LONG, "b", LONG)]
    )
    await store.put_batch([(namespace, "k", 1) for namespace in namespaces])
    assert await store.list_namespaces(limit=1000) == namespaces
    for limit in (1, 4, 7):
        found, after = [], None
        while page := await store.list_namespaces(limit=limit, after=after):
            found += page
            after = page[-1]
        assert found == namespaces
    assert await store.list_namespaces(limit=1000, max_depth=1) == [(text,) for text in TEXTS]
    for text in TEXTS:
        inside = [each for each in namespaces if each[0] == text]
        assert await store.list_namespaces((text,), 1000) == inside
        assert len(await store.search((text,), limit=1000, recursive=True)) == len(inside)
    assert await store.clear_namespace((TEXTS[-2],), recursive=True) == 2
    assert await store.clear_namespace((TEXTS[-2],), recursive=True) == 0
    left = [each for each in namespaces if each[0] != TEXTS[-2]]
    assert await store.list_namespaces(limit=1000) == left


async def test_every_page_of_long_threads(options):
    async with OCICheckpointer(ADDRESS, **options, state_type=None) as checkpointer:
        for text in reversed(TEXTS):
            await checkpointer.save({"text": text}, text)
        assert await checkpointer.list_threads() == TEXTS
        for after in [*TEXTS, LONG + "bbc"]:
            wanted = [text for text in TEXTS if text > after]
            assert await checkpointer.list_threads(3, after=after) == wanted[:3]
        for prefix in (LONG, LONG + "bb", LONG + "bbc", "🦊" * 500):
            wanted = [text for text in TEXTS if text.startswith(prefix)]
            assert await checkpointer.list_threads(prefix=prefix) == wanted
        for text in TEXTS:
            assert await checkpointer.load(text) == {"text": text}


async def test_a_foreign_object_among_ours_is_no_item(store, service, prefix):
    await store.put(("a",), "k", 1)
    service.write(f"{prefix}items/foreign", b"not ours")
    service.write(f"{prefix}items/foreign/deep/er", b"not ours")
    service.write(f"{prefix}items/foreign/x", b"not ours")
    assert await store.list_namespaces() == [("a",)]
    assert await store.list_keys(("a",)) == ["k"]
    await store.compact()
