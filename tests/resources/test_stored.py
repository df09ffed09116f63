"""What a tree stored before is read, found, changed and archived no second time."""

from __future__ import annotations

import pytest

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.registry import get_store
from locus_memory.resources.tree import MemoryTree

MOMENT = "2023-11-14T22:13:20.000000+00:00"
ARCHIVE = "20231114T221320.000000Z"
TEA, SAID = "5793640100ef5d4601584eb6b8c1606a", "aefcbffa3529df737489df0e71d1863b"
FOLDER = {"kind": "folder"}
CURSOR = {
    "place": 1,
    "count": 1,
    "tail": ["539cdc1dee6d9715fcfc2c4c"],
    "sequence": 1,
    "marks": [],
    "asked": False,
    "passed": False,
    "staged": False,
}
MESSAGES = [{"role": "user", "content": "I drink tea."}]


def entry(text, digest, revision, metadata, *, has_levels=True):
    levels = {"digest": digest, "abstract": text, "overview": text, "made_by": "rules"}
    return {
        "kind": "entry",
        "content": text,
        "metadata": metadata,
        "digest": digest,
        "size": len(text),
        "revision": revision,
        "chunks": 1,
        "levels": levels if has_levels else None,
        "written_at": MOMENT,
    }


STORED = {
    (("memory", "tree"), "notes"): (FOLDER, {}),
    (("memory", "tree"), "sessions"): (FOLDER, {}),
    (("memory", "tree", "sessions"), "s1"): (FOLDER, {}),
    (("memory", "tree", "notes"), "tea"): (
        entry("Brew it for three minutes.", TEA, 2, {"by": "ada"}),
        {},
    ),
    (("memory", "versions", "notes", "tea"), "000000000001"): (
        entry(
            "Brew it for two minutes.", "6c222d045399174f7203dd5ab3e1570b", 1, {}, has_levels=False
        ),
        {},
    ),
    (("memory", "chunks", "notes", "tea"), "00000000"): (
        {"content": "Brew it for three minutes."},
        {"uri": "memory://notes/tea", "digest": TEA},
    ),
    (("memory", "tree", "sessions", "s1"), ARCHIVE): (
        entry("**user**: I drink tea.", SAID, 1, {"session": "s1"}),
        {},
    ),
    (("memory", "chunks", "sessions", "s1", ARCHIVE), "00000000"): (
        {"content": "**user**: I drink tea."},
        {"uri": f"memory://sessions/s1/{ARCHIVE}", "digest": SAID},
    ),
    (("memory", "commits"), "s1"): (
        {"cursor": CURSOR, "said": ["I drink tea."], "used": ["memory://notes/tea"]},
        {},
    ),
    (("locus_memory", "cursors"), "s1"): (CURSOR, {}),
}


async def items_in(store):
    """Return the values and the metadata of all items."""
    return {
        (space, item.key): (item.value, item.metadata)
        for space in await store.list_namespaces()
        for item in await store.scan(space)
    }


@pytest.mark.parametrize("where", ["memory", "sqlite::memory:"])
async def test_what_was_stored_before_is_read_and_changed(where):
    async with get_store(where) as store:
        for (space, key), (value, metadata) in STORED.items():
            text = None if "chunks" in space else ""
            await store.put(space, key, value, metadata=metadata, text=text)
        async with MemoryTree(store) as tree:
            read = await tree.read("memory://notes/tea")
            assert (read.data, read.metadata, read.version) == (
                "Brew it for three minutes.",
                {"by": "ada"},
                2,
            )
            past = await tree.read("memory://notes/tea", version=1)
            assert past.data == "Brew it for two minutes."
            assert [each.version for each in (await tree.history("memory://notes/tea")).versions]
            found = (await tree.find("How long is it brewed?")).hits
            assert [each.uri for each in found] == ["memory://notes/tea"]
            steered = (await tree.search("brewed", session_id="s1")).hits
            assert [each.uri for each in steered] == ["memory://notes/tea"]
            assert (await tree.commit("s1", MESSAGES)).archived_uri is None
            assert await items_in(store) == STORED
            await tree.write("memory://notes/tea", "Brew it in a pot.")
            assert (await tree.find("three minutes", "memory://notes/")).hits == ()
            await tree.move("memory://notes/tea", "memory://kitchen/tea")
            [pot] = (await tree.find("pot")).hits
            assert pot.uri == "memory://kitchen/tea"
            assert len((await tree.history("memory://kitchen/tea")).versions) == 3
            await tree.delete("memory://", recursive=True)
            assert {space[1] for space, _ in await items_in(store)} == {"commits", "cursors"}


async def test_what_is_stored_is_as_before():
    store = InMemoryStore()
    async with MemoryTree(store, clock=lambda: 1_700_000_000.0) as tree:
        await tree.write("memory://notes/tea", "Brew it for two minutes.")
        await tree.write("memory://notes/tea", "Brew it for three minutes.", metadata={"by": "ada"})
        await tree.commit("s1", MESSAGES, ["memory://notes/tea"])
    assert await items_in(store) == STORED
