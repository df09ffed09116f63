"""What an index stored before is found, left alone and replaced."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex
from locus_memory.registry import get_store

RIG = "6d37a38e37c9a53e97997f69a4f1b597-d01c3b40272025fc354cb3169817cc6f"
PIECE = "p-afdd78b95af14be8bf16f1958a62dd22"
CHUNKS, SOURCES = ("documents", "chunks"), ("documents", "sources")
STORED = {
    (CHUNKS, f"{RIG}/000000"): (
        {"heading": "Rig", "content": "# Rig\n\nOil the mast in March."},
        {
            "team": "deck",
            "start": 0,
            "end": 29,
            "line": 1,
            "end_line": 3,
            "heading": "Rig",
            "source": "rig.md",
            "document": RIG,
            "index": 0,
            "offset": 0,
            "digest": "8572fa704ade1e2aaef44ba40a620bd0",
            "kind": "markdown",
        },
    ),
    (SOURCES, "rig.md"): (
        {
            "source": "rig.md",
            "document": RIG,
            "digest": "8572fa704ade1e2aaef44ba40a620bd0",
            "kind": "markdown",
            "chunks": 1,
            "root": "",
            "complete": True,
        },
        {},
    ),
    (CHUNKS, f"{PIECE}/000000"): (
        {"content": "The galley is aft."},
        {
            "source": "plan",
            "document": PIECE,
            "index": 0,
            "offset": 0,
            "digest": "45b65589020fed5e5f3906566908d591",
            "kind": "text",
        },
    ),
    (SOURCES, f"plan\n{PIECE}"): (
        {
            "source": "plan",
            "document": PIECE,
            "digest": "45b65589020fed5e5f3906566908d591",
            "kind": "text",
            "chunks": 1,
            "root": "",
            "complete": True,
        },
        {},
    ),
}


async def items_in(store):
    """Return the values and the metadata of all items."""
    return {
        (space, item.key): (item.value, item.metadata)
        for space in await store.list_namespaces()
        for item in await store.scan(space)
    }


async def add_rig(index, text="# Rig\n\nOil the mast in March."):
    return await index.add(text, source="rig.md", kind="markdown", metadata={"team": "deck"})


@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
async def test_what_was_stored_before_is_found_left_alone_and_replaced(where):
    async with get_store(where) as store:
        for (space, key), (value, metadata) in STORED.items():
            text = "" if space == SOURCES else None
            await store.put(space, key, value, metadata=metadata, text=text)
        index = DocumentIndex(store, kind="text")
        [mast] = await index.retrieve("When is the mast oiled?")
        assert (mast.source, mast.heading, mast.lines) == ("rig.md", "Rig", (1, 3))
        assert [each.doc_id for each in await index.retrieve("galley")] == [PIECE]
        assert (await add_rig(index)).unchanged == 1
        assert await items_in(store) == STORED
        assert (await add_rig(index, "# Rig\n\nOil the mast in May.")).updated == 1
        [mast] = await index.retrieve("When is the mast oiled?")
        assert "May" in mast.content
        assert await index.delete(PIECE)
        assert await index.delete_source("rig.md") == 1
        assert await items_in(store) == {}


async def test_what_is_stored_is_as_before():
    store = InMemoryStore()
    await add_rig(DocumentIndex(store, kind="text"))
    assert await items_in(store) == {
        name: each for name, each in STORED.items() if RIG in str(each)
    }
