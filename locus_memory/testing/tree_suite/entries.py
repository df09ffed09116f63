"""The suite of trees: entries, folders, levels, history and sessions."""

from __future__ import annotations

from hypothesis import given

from locus_memory.conversation.tokens import estimate_tokens
from locus_memory.errors import (
    InvalidMemoryURI,
    MemoryConflict,
    MemoryNotFound,
    UnsupportedMemoryOp,
)
from locus_memory.resources.tree import MemoryTree
from locus_memory.store.base import BaseStore
from locus_memory.testing.store_suite.base import PROPERTY, need, refused
from locus_memory.testing.tree_suite.base import TreeSuite, names, texts, uri_of

__all__ = ["EntryTests", "LevelTests", "SessionTests"]

_GUIDE = "# Boat\n\nPetrel is a gaff cutter.\n\n## Rig\n\nThe mast is spruce. It is old.\n"


class EntryTests(TreeSuite):
    """Writing, reading, listing and deleting."""

    @PROPERTY
    @given(names, names, texts)
    async def test_any_text_comes_back(
        self, tree: MemoryTree, folder: str, name: str, text: str
    ) -> None:
        uri = uri_of("free", folder, name)
        result = await tree.write(uri, text)
        assert (result.uri, result.bytes_written) == (uri, len(text.encode()))
        assert (await tree.read(uri)).data == text
        assert (await tree.read(uri, encoding=None)).data == text.encode()

    async def test_names_that_differ_are_different_entries(self, tree: MemoryTree) -> None:
        similar = ["a.b", "a.c", "a", "A", "a/b", "a%2Fb", "a b", "é", "e\u0301"]
        for name in similar:
            await tree.write(uri_of("n", name), f"text of {name}")
        for name in similar:
            assert (await tree.read(uri_of("n", name))).data == f"text of {name}"
        listed = [each.name for each in (await tree.list("memory://n")).entries]
        assert listed == sorted(similar)

    async def test_modes(self, tree: MemoryTree) -> None:
        uri = uri_of("m")
        await tree.write(uri, "one", mode="append", metadata={"by": "ada"})
        await tree.write(uri, "two", mode="append")
        read = await tree.read(uri)
        assert (read.data, dict(read.metadata), read.version) == ("one\ntwo", {"by": "ada"}, 2)
        await refused(
            MemoryConflict,
            tree.write(uri, "three", mode="create"),
        )
        await tree.write(uri, "four", metadata={})
        assert dict((await tree.read(uri)).metadata) == {}

    async def test_a_node_is_an_entry_or_a_folder(self, tree: MemoryTree) -> None:
        await tree.write("memory://a/b", "entry")
        for uri in ("memory://a", "memory://a/b/c", "memory://a/b/c/d"):
            await refused(
                MemoryConflict,
                tree.write(uri, "other"),
            )
        await refused(
            InvalidMemoryURI,
            tree.write("memory://z/", "a folder is no text"),
        )
        await tree.delete("memory://a/b")
        await tree.write("memory://a", "now it is free")
        assert (await tree.read("memory://a")).data == "now it is free"

    async def test_a_folder_lists_folders_first(self, tree: MemoryTree) -> None:
        for name in ("b", "a", "z/x", "c/y/v"):
            await tree.write(f"memory://f/{name}", "12345 é")
        listed = (await tree.list("memory://f")).entries
        assert [(e.name, e.is_dir, e.size) for e in listed] == [
            ("c", True, None),
            ("z", True, None),
            ("a", False, 8),
            ("b", False, 8),
        ]
        whole = [each.uri for each in (await tree.tree("memory://f/", depth=9)).entries]
        below = ["c/", "c/y/", "c/y/v", "z/", "z/x", "a", "b"]
        assert whole == [f"memory://f/{each}" for each in below]
        for limit in (1, 2, 7):
            page: list[str] = []
            while len(page) < len(whole):
                after = page[-1] if page else None
                more = await tree.tree("memory://f/", depth=9, limit=limit, after=after)
                page += [each.uri for each in more.entries]
            assert page == whole

    async def test_unknown_is_not_found(self, tree: MemoryTree) -> None:
        await tree.write("memory://a/b", "entry")
        for uri in ("memory://b", "memory://a/c", "memory://a/b/c", "memory://a", "memory://"):
            await refused(
                MemoryNotFound,
                tree.read(uri),
            )
        for uri in ("memory://b", "memory://a/b"):
            await refused(
                MemoryNotFound,
                tree.list(uri),
            )
        for uri in ("memory://b", "memory://a/b/c"):
            await refused(
                MemoryNotFound,
                tree.delete(uri),
            )
        assert (await tree.list()).entries[0].name == "a"

    async def test_delete_leaves_nothing(self, tree: MemoryTree, store: BaseStore) -> None:
        for name in ("a/b/c", "a/b/d", "a/e"):
            await tree.write(f"memory://{name}", "one two three")
            await tree.write(f"memory://{name}", "four")
        await refused(
            MemoryConflict,
            tree.delete("memory://a/b"),
        )
        assert (await tree.delete("memory://a/b", recursive=True)).deleted == 2
        assert [each.uri for each in (await tree.tree(depth=9)).entries] == [
            "memory://a/",
            "memory://a/e",
        ]
        await tree.delete("memory://a/e")
        assert (await tree.list()).entries == ()
        if store.capabilities.list_namespaces:
            assert await store.list_namespaces(tree.prefix) == []

    async def test_a_moved_entry_keeps_its_history(self, tree: MemoryTree) -> None:
        await tree.write("memory://a/b", "first")
        await tree.write("memory://a/b", "second", metadata={"by": "ada"})
        await tree.write("memory://a/taken", "other")
        await refused(
            MemoryConflict,
            tree.move("memory://a/b", "memory://a/taken"),
            tree.move("memory://a/b", "memory://a/b/c"),
        )
        await tree.move("memory://a/b", "memory://c/d/e")
        await refused(
            MemoryNotFound,
            tree.read("memory://a/b"),
        )
        read = await tree.read("memory://c/d/e")
        assert (read.data, read.version, dict(read.metadata)) == ("second", 2, {"by": "ada"})
        assert (await tree.read("memory://c/d/e", version=1)).data == "first"
        assert (await tree.move("memory://c", "memory://g/h")).moved == 1
        assert (await tree.read("memory://g/h/d/e")).data == "second"
        await refused(
            MemoryConflict,
            tree.move("memory://g", "memory://g/h/i"),
        )

    async def test_the_last_ten_versions_are_kept(self, tree: MemoryTree) -> None:
        for number in range(1, 14):
            await tree.write("memory://v", f"text {number}")
        versions = (await tree.history("memory://v")).versions
        assert [each.version for each in versions] == list(range(13, 2, -1))
        for each in versions:
            assert (await tree.read("memory://v", version=each.version)).data == (
                f"text {each.version}"
            )
        for gone in (0, 2, 14):
            await refused(
                MemoryNotFound,
                tree.read("memory://v", version=gone),
            )


class LevelTests(TreeSuite):
    """The three levels, and finding."""

    async def test_levels_are_short_and_of_the_present_text(self, tree: MemoryTree) -> None:
        await tree.write("memory://boat", _GUIDE)
        assert (await tree.read("memory://boat", "abstract")).data == (
            "Boat: Petrel is a gaff cutter."
        )
        overview = await tree.read("memory://boat", "overview")
        assert overview.data == "- Boat: Petrel is a gaff cutter.\n- Rig: The mast is spruce."
        assert overview.metadata["made_by"] == "rules"
        await tree.write("memory://boat", "word " * 5_000)
        for level, most in (("abstract", 100), ("overview", 1_000)):
            read = await tree.read("memory://boat", level)  # type: ignore[arg-type]
            assert 0 < estimate_tokens(str(read.data)) <= most
            assert "Petrel" not in str(read.data)

    async def test_a_folder_has_levels_of_its_children(self, tree: MemoryTree) -> None:
        await tree.write("memory://f/boat", _GUIDE)
        await tree.write("memory://f/g/tide", "High water at noon.")
        overview = await tree.read("memory://f", "overview")
        inner = "- g/: tide. High water at noon."
        assert overview.data == f"- boat: Boat: Petrel is a gaff cutter.\n{inner}"
        await tree.write("memory://f/boat", "Sold.")
        assert "Sold." in str((await tree.read("memory://f/", "abstract")).data)
        assert "Petrel" not in str((await tree.read("memory://f/", "overview")).data)

    async def test_find_gives_one_hit_an_entry(self, tree: MemoryTree, store: BaseStore) -> None:
        need(store, "search")
        await tree.write("memory://d/long", "\n\n".join(f"The mast, part {n}." for n in range(900)))
        await tree.write("memory://d/boat", _GUIDE)
        await tree.write("memory://e", "The mast is here as well.")
        hits = (await tree.find("mast", "memory://d")).hits
        assert sorted(each.uri for each in hits) == ["memory://d/boat", "memory://d/long"]
        assert all(0 < each.score <= 1 and len(each.snippet or "") <= 300 for each in hits)
        assert [each.uri for each in (await tree.find("mast", "memory://e")).hits] == ["memory://e"]
        assert len((await tree.find("mast", top_k=1)).hits) == 1
        assert (await tree.find("zeppelin")).hits == ()
        await tree.write("memory://e", "Gone.")
        await tree.delete("memory://d/long")
        assert [each.uri for each in (await tree.find("mast")).hits] == ["memory://d/boat"]

    async def test_what_a_session_used_ranks_higher(
        self, tree: MemoryTree, store: BaseStore
    ) -> None:
        need(store, "search")
        for name in ("one", "two", "three"):
            await tree.write(f"memory://x/{name}", "The harbour opens at dawn.")
        said = [{"role": "user", "content": "I sail alone."}]
        await tree.commit("s", said, used_uris=["memory://x/two"])
        found = (await tree.search("harbour", "s", "memory://x")).hits
        assert found[0].uri == "memory://x/two"
        assert len((await tree.search("harbour", "unknown", "memory://x")).hits) == 3


class SessionTests(TreeSuite):
    """Commits, and the view of memories."""

    async def test_a_session_is_archived_once(self, tree: MemoryTree) -> None:
        said = [
            {"role": "user", "content": "I live in Berlin."},
            {"role": "assistant", "parts": [{"text": "Noted, in parts."}]},
        ]
        first = await tree.commit("s/1", said, wait=True)
        assert (first.task_id, first.extracted_count) == (None, 1)
        assert first.archived_uri is not None
        archived = await tree.read(first.archived_uri)
        assert archived.data == "**user**: I live in Berlin.\n\n**assistant**: Noted, in parts."
        again = await tree.commit("s/1", said, wait=True)
        assert (again.archived_uri, again.extracted_count) == (None, 0)
        more = await tree.commit("s/1", [*said, {"role": "user", "content": "My name is Noor."}])
        assert more.extracted_count == -1
        assert more.task_id
        assert (await tree.read(str(more.archived_uri))).data == "**user**: My name is Noor."
        assert len((await tree.list("memory://sessions/s%2F1")).entries) == 2

    async def test_memories_are_read_and_not_written(self, tree: MemoryTree) -> None:
        await tree.commit("s", [{"role": "user", "content": "I live in Berlin."}], wait=True)
        listed = [each.uri for each in (await tree.tree("memory://memories", depth=3)).entries]
        assert listed == ["memory://memories/user/", "memory://memories/user/home"]
        assert "Berlin" in str((await tree.read(listed[1])).data)
        assert "Berlin" in str((await tree.read(listed[1], "abstract")).data)
        await refused(
            UnsupportedMemoryOp,
            tree.write(listed[1], "Paris"),
            tree.delete("memory://memories", recursive=True),
        )
        await refused(
            MemoryNotFound,
            tree.read("memory://memories/user/boat"),
        )
