"""Files become entries, once, and only those that changed are written again."""

from __future__ import annotations

import os

import pytest
from pypdf import PdfWriter

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.errors import InvalidArgumentError, MemoryNotFound, UnsupportedMemoryOp
from locus_memory.resources.tree import MemoryTree
from locus_memory.testing import FakeModel


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "guide"
    (root / "part").mkdir(parents=True)
    (root / "boat.md").write_text("# Boat\n\nThe mast is spruce.", "utf-8")
    (root / "part" / "é b.txt").write_text("The tide turns at noon.", "utf-8")
    (root / "part" / "picture.txt").write_bytes(b"\x00\x01")
    (root / ".hidden").write_text("secret", "utf-8")
    return root


async def test_a_folder_becomes_a_folder(folder):
    async with MemoryTree(InMemoryStore()) as tree:
        done = await tree.add_resource(str(folder))
        assert (done.added, done.updated, done.unchanged, done.chunks) == (2, 0, 0, 2)
        assert done.skipped == (("part/picture.txt", "it is binary"),)
        assert done.uri == "memory://resources/guide/"
        listed = [each.uri for each in (await tree.tree(done.uri, 9)).entries]
        assert listed == [
            "memory://resources/guide/part/",
            "memory://resources/guide/part/%C3%A9%20b.txt",
            "memory://resources/guide/boat.md",
        ]
        assert (await tree.find("tide", done.uri)).hits[0].uri == listed[1]
        again = await tree.add_resource(str(folder))
        assert (again.added, again.updated, again.unchanged, again.chunks) == (0, 0, 2, 0)
        (folder / "boat.md").write_text("The mast is of oak.", "utf-8")
        more = await tree.add_resource(str(folder), reason="to compare")
        assert (more.added, more.updated, more.unchanged) == (0, 1, 1)
        read = await tree.read(listed[2])
        assert (read.version, read.metadata["reason"]) == (2, "to compare")


async def test_one_file_and_a_pdf(folder, tmp_path):
    pdf = tmp_path / "empty.pdf"
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    with pdf.open("wb") as file:
        writer.write(file)
    async with MemoryTree(InMemoryStore()) as tree:
        done = await tree.add_resource(str(folder / "boat.md"), "memory://notes/here")
        assert (done.uri, done.added) == ("memory://notes/here/", 1)
        assert "spruce" in str((await tree.read("memory://notes/here/boat.md")).data)
        assert (await tree.add_resource(str(pdf))).added == 1
        with pytest.raises(InvalidArgumentError, match="binary"):
            await tree.add_resource(str(folder / "part" / "picture.txt"))


async def test_the_only_file_of_a_folder_of_its_name_is_skipped(tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "log").write_bytes(b"\x00\x01")
    async with MemoryTree(InMemoryStore()) as tree:
        done = await tree.add_resource(str(tmp_path / "log"))
        assert done.skipped == (("log", "it is binary"),)


async def test_what_is_no_file(tmp_path, folder):
    tree = MemoryTree(InMemoryStore())
    for source in ("ftp://example.com/a.md", "file:///etc/hosts", "://", "memory://notes"):
        with pytest.raises(InvalidArgumentError, match="path"):
            await tree.add_resource(source)
    with pytest.raises(MemoryNotFound):
        await tree.add_resource(str(tmp_path / "nothing"))
    with pytest.raises(UnsupportedMemoryOp):
        await tree.add_resource(str(folder), "memory://memories/x")
    await tree.write("memory://resources/guide/part", "an entry in the way")
    done = await tree.add_resource(str(folder))
    assert done.added == 1
    assert "part/é b.txt" in dict(done.skipped)
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / os.fsdecode(b"\xff.txt")).write_text("text", "utf-8")
    assert len((await tree.add_resource(str(odd))).skipped) == 1


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-has-this-name/notes.md", "a\0b"])
async def test_what_no_file_system_has(name):
    async with MemoryTree(InMemoryStore()) as tree:
        with pytest.raises(MemoryNotFound, match="no such file"):
            await tree.add_resource(name)


async def test_hints_reach_the_model(folder):
    model = FakeModel(['{"abstract": "a", "overview": "o"}'] * 2)
    async with MemoryTree(InMemoryStore(), model=model) as tree:
        await tree.add_resource(str(folder), instruction="look at the mast")
        assert (await tree.read("memory://resources/guide/boat.md", "abstract")).data == "a"
    assert all("look at the mast" in call[1].content for call in model.calls)
