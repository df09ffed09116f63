"""Texts that are stored, added, replaced and deleted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise

import pytest

from locus_memory.documents.index import DocumentIndex, Kind
from locus_memory.documents.values import SourceInfo
from locus_memory.errors import InvalidArgumentError
from locus_memory.store.base import BaseStore
from locus_memory.testing.document_suite.base import (
    CHUNKING,
    DocumentSuite,
    Halt,
    HaltingStore,
    WatchedStore,
    dump,
)
from locus_memory.testing.store_suite.base import refused

__all__ = ["AddingTests"]

_LONG = "\n\n".join(f"Paragraph {number} is about topic{number} only." for number in range(90))
_OTHER = "\n\n".join(f"Section {number} is about matter{number} only." for number in range(70))


async def all_sources(index: DocumentIndex, page: int = 2) -> list[SourceInfo]:
    """Return all sources, read in small pages."""
    found: list[SourceInfo] = []
    after: str | None = None
    while rows := await index.sources(page, after):
        found += rows
        after = rows[-1].cursor
    return found


class AddingTests(DocumentSuite):
    """What is there after a write."""

    async def test_a_stored_piece_is_found_whole(self, index: DocumentIndex) -> None:
        text = "word " * 200 + "walnut"
        name = await index.store(text, source="notes", metadata={"team": "red"})
        [found] = await index.retrieve("walnut")
        assert (found.content, found.source, found.doc_id) == (text, "notes", name)
        assert found.metadata["team"] == "red"

    async def test_each_stored_piece_is_another(self, index: DocumentIndex) -> None:
        first, second = [await index.store("the same walnut", source="notes") for _ in range(2)]
        assert first != second
        assert await index.delete(first)
        assert not await index.delete(first)
        assert [each.doc_id for each in await index.retrieve("walnut")] == [second]
        assert [each.document for each in await index.sources()] == [second]

    async def test_a_text_is_cut(self, index: DocumentIndex) -> None:
        done = await index.add(_LONG, source="long.txt")
        assert (done.added, done.updated, done.unchanged) == (1, 0, 0)
        assert done.chunks > 10
        [found] = await index.retrieve("topic77", top_k=1)
        start, end = found.metadata["start"], found.metadata["end"]
        assert found.content == _LONG[start:end]
        assert "topic77" in found.content
        [source] = await index.sources()
        assert (source.source, source.chunks) == ("long.txt", done.chunks)
        assert source.document == found.doc_id

    async def test_the_same_text_changes_nothing(
        self, index: DocumentIndex, store: BaseStore
    ) -> None:
        await index.add(_LONG, source="long.txt", metadata={"n": 1})
        before = await dump(index, store)
        done = await index.add(_LONG, source="long.txt", metadata={"n": 1})
        assert (done.unchanged, done.chunks) == (1, 0)
        assert await dump(index, store) == before

    async def test_another_text_replaces_it(self, index: DocumentIndex) -> None:
        await index.add(_LONG, source="long.txt")
        await index.add("Beside it, a walnut.", source="other.txt")
        done = await index.add("A plum grows here.", source="long.txt")
        assert (done.added, done.updated, done.chunks) == (0, 1, 1)
        contents = [each.content for each in await index.retrieve("topic77 plum walnut", top_k=9)]
        assert sorted(contents) == ["A plum grows here.", "Beside it, a walnut."]
        assert [each.source for each in await index.sources()] == ["long.txt", "other.txt"]

    async def test_other_metadata_replaces_it(self, index: DocumentIndex) -> None:
        await index.add("A plum grows here.", source="a", metadata={"team": "red"})
        done = await index.add("A plum grows here.", source="a", metadata={"team": "blue"})
        assert done.updated == 1
        [found] = await index.retrieve("plum")
        assert found.metadata["team"] == "blue"

    async def test_texts_without_a_source_replace_nothing(self, index: DocumentIndex) -> None:
        await index.add("A plum grows here.")
        await index.add("A walnut grows there.")
        assert len(await index.retrieve("plum walnut")) == 2
        assert [each.source for each in await all_sources(index)] == ["", ""]

    async def test_a_source_is_deleted_whole(self, index: DocumentIndex) -> None:
        done = await index.add(_LONG, source="long.txt")
        await index.store("A walnut.", source="long.txt")
        await index.add("A walnut.", source="long.txt.bak")
        assert await index.delete_source("long.txt") == done.chunks + 1
        assert await index.delete_source("long.txt") == 0
        assert [each.source for each in await index.sources()] == ["long.txt.bak"]
        assert len(await index.retrieve("walnut topic77", top_k=9)) == 1

    async def test_a_document_is_deleted_by_its_id(
        self, index: DocumentIndex, store: BaseStore
    ) -> None:
        await index.add(_LONG, source="long.txt")
        [found] = await index.retrieve("topic77", top_k=1)
        assert await index.delete(found.doc_id)
        assert not await index.delete(found.doc_id)
        assert await dump(index, store) == {"chunks": [], "sources": []}

    async def test_a_text_of_spaces_has_no_chunks(self, index: DocumentIndex) -> None:
        assert (await index.add(" \n ", source="empty")).added == 1
        assert (await index.add(" \n ", source="empty")).unchanged == 1
        [source] = await index.sources()
        assert source.chunks == 0
        assert await index.delete(source.document)
        assert await index.sources() == []

    async def test_clear_leaves_other_indexes(self, store: BaseStore, kind: Kind) -> None:
        index, other = [await self.make_index(store, kind) for _ in range(2)]
        done = await index.add(_LONG, source="long.txt")
        await other.add("A walnut.", source="a")
        assert await index.clear() == done.chunks
        assert await index.retrieve("topic77 walnut") == []
        assert await index.sources() == []
        assert len(await other.retrieve("walnut")) == 1

    async def test_sources_have_pages(self, index: DocumentIndex) -> None:
        names = [f"folder/file {number}.txt" for number in range(7)]
        for name in names:
            await index.add(f"The text of {name}.", source=name)
        assert [each.source for each in await all_sources(index)] == names

    @pytest.mark.parametrize("metadata", [{"source": "x"}, {"content": 1}, ["a"], {"a": object()}])
    async def test_bad_metadata_is_refused(
        self, index: DocumentIndex, store: BaseStore, metadata: object
    ) -> None:
        for call in (index.store, index.add):
            await refused(
                ValueError,
                call("A walnut.", metadata=metadata),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            )
        assert await dump(index, store) == {"chunks": [], "sources": []}

    @pytest.mark.parametrize("arguments", [(None,), ("a\ud800",), (5,)])
    async def test_bad_texts_are_refused(self, index: DocumentIndex, arguments: tuple[str]) -> None:
        for call in (index.store, index.add, index.retrieve, index.delete, index.delete_source):
            await refused(
                InvalidArgumentError,
                call(*arguments),
            )

    @pytest.mark.parametrize("writes", [0, 1, 2, 3, 4])
    async def test_a_killed_write_can_be_run_again(
        self, index: DocumentIndex, store: BaseStore, kind: Kind, writes: int
    ) -> None:
        killed = DocumentIndex(
            HaltingStore(store, writes),
            namespace=index.namespace,
            kind=kind,
            embedder=index.embedder,
            chunking=CHUNKING,
        )
        await index.add(_OTHER, source="long.txt")
        long = "\n\n".join([_LONG] * 4)
        with suppress(Halt):
            await killed.add(long, source="long.txt")
        assert await index.retrieve("matter33 topic33", top_k=1) != []
        await index.add(long, source="long.txt")
        again = await dump(index, store)
        await index.clear()
        await index.add(long, source="long.txt")
        assert again == await dump(index, store)

    async def test_a_search_sees_one_version_while_a_source_is_replaced(
        self, index: DocumentIndex, store: BaseStore, kind: Kind
    ) -> None:
        seen: list[frozenset[str]] = []

        async def look() -> None:
            found = await index.retrieve("topic33 matter33 number is about only", top_k=40)
            seen.append(frozenset(each.doc_id for each in found))

        watched = DocumentIndex(
            WatchedStore(store, look),
            namespace=index.namespace,
            kind=kind,
            embedder=index.embedder,
            chunking=CHUNKING,
        )
        await index.add(_OTHER, source="long.txt")
        await watched.add("\n\n".join([_LONG] * 4), source="long.txt")
        assert all(len(each) == 1 for each in seen)
        assert seen[0] != seen[-1]
        # It changes once, and never back.
        assert sum(one != other for one, other in pairwise(seen)) == 1

    @pytest.mark.parametrize("repeated", [1, 4])
    async def test_versions_that_are_written_at_once_leave_one(
        self, index: DocumentIndex, store: BaseStore, repeated: int
    ) -> None:
        texts = ["\n\n".join([each] * repeated) for each in (_LONG, _OTHER, "A pear.")]
        await index.add("A plum.", source="a")
        await asyncio.gather(*(index.add(each, source="a") for each in texts))
        raced = await dump(index, store)
        left: list[object] = []
        for each in texts:
            await index.clear()
            await index.add(each, source="a")
            left.append(await dump(index, store))
        assert raced in left
