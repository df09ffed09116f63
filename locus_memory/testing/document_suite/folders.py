"""Folders that are added, changed and added again."""

from __future__ import annotations

from pathlib import Path

from locus_memory.documents.index import DocumentIndex
from locus_memory.documents.values import Ingested
from locus_memory.store.base import BaseStore
from locus_memory.testing.document_suite.base import DocumentSuite, dump

__all__ = ["FolderTests"]


def _write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _counts(done: Ingested) -> tuple[int, int, int, int]:
    return done.added, done.updated, done.unchanged, done.deleted


class FolderTests(DocumentSuite):
    """What `add_path` does with a folder."""

    async def test_only_changes_are_written(self, index: DocumentIndex, tmp_path: Path) -> None:
        folder = tmp_path / "kb"
        _write(folder, a_md="# A\n\nThe kettle boils.", sub__b_py="def walnut():\n    return 1\n")
        _write(folder, c_txt="A plum grows here.")
        assert _counts(await index.add_path(folder)) == (3, 0, 0, 0)
        assert _counts(await index.add_path(str(folder))) == (0, 0, 3, 0)
        _write(folder, c_txt="A pear grows here.")
        done = await index.add_path(folder)
        assert (_counts(done), done.chunks) == ((0, 1, 2, 0), 1)
        found = {each.source: each.content for each in await index.retrieve("kettle walnut pear")}
        assert found["sub/b.py"].startswith("def walnut")
        assert found["c.txt"] == "A pear grows here."

    async def test_what_is_gone_is_pruned_on_request(
        self, index: DocumentIndex, tmp_path: Path
    ) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        _write(one, a_txt="A plum.", b_txt="A pear.")
        _write(two, c_txt="A walnut.")
        await index.add("A kettle.", source="told")
        await index.add_path(one)
        await index.add_path(two, prefix="two/")
        (one / "b.txt").unlink()
        assert _counts(await index.add_path(one)) == (0, 0, 1, 0)
        assert _counts(await index.add_path(one, prune=True)) == (0, 0, 1, 1)
        names = [each.source for each in await index.sources()]
        assert names == ["a.txt", "told", "two/c.txt"]
        assert [each.source for each in await index.retrieve("pear", min_score=0.5)] == []

    async def test_one_file_never_stops_the_others(
        self, index: DocumentIndex, store: BaseStore, tmp_path: Path
    ) -> None:
        folder = tmp_path / "kb"
        _write(folder, a_txt="A plum.", z_txt="A pear.")
        (folder / "m.txt").write_bytes(b"\x00\x01binary")
        (folder / "n.txt").write_bytes("Der Käse".encode("latin-1"))
        (folder / "o.txt").write_bytes("A walnut.".encode("utf-16"))
        done = await index.add_path(folder)
        assert _counts(done) == (4, 0, 0, 0)
        assert [path for path, _ in done.skipped] == ["m.txt"]
        assert [path for path, _ in done.notes] == ["n.txt"]
        found = [each.content for each in await index.retrieve("Käse walnut")]
        assert {"A walnut.", "Der Käse"} <= set(found)
        before = await dump(index, store)
        assert (await index.add_path(folder)).unchanged == 4
        assert await dump(index, store) == before
