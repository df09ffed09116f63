"""No document stops the process that reads it, and no folder has a file of another one read."""

import os
import time

import pytest

from locus_memory.documents.chunking.blocks import blocks_of
from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import ChunkConfig
from locus_memory.documents.ingest.files import files_of
from locus_memory.documents.ingest.reading import read_bytes
from locus_memory.errors import InvalidArgumentError

TABLE = "| a | b\n-"


def _seconds(make, length):
    """The processor time of a text, of three tries the least."""
    text, taken = make(length), []
    for _ in range(3):
        started = time.process_time()
        blocks_of(text, "markdown")
        taken.append(time.process_time() - started)
    return min(taken)


def test_a_row_that_is_no_divider_takes_no_time():
    """Such a table of 130 bytes once took longer than any limit."""
    started = time.process_time()
    assert chunk_text(TABLE + "|  " * 40 + "x", kind="markdown")
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "make",
    [
        lambda n: TABLE + "|  " * n + "x",
        lambda n: "a|b\n:" + "-" * n + "x",
        lambda n: "|a" * n + "\n" + "|-" * n + "\n" + "|\n" * n,
        lambda n: "# a" + " " * n + "b" + " " * n,
        lambda n: "# " * n + "x",
        lambda n: "> - " * n,
        lambda n: "---\n" + "a: b\n" * n,
        lambda n: "[a]: b '" + "c\n" * n,
        lambda n: "<a " + "b='" * n,
        lambda n: "- ```\n" * n,
    ],
)
def test_markdown_takes_linear_time(make):
    # Four times as long: quadratic time is 16 times as much.
    assert _seconds(make, 4000) < 9 * _seconds(make, 1000) + 0.1


def test_front_matter_is_no_heading():
    text = "---\ntitle: Rig\n\ntags: [a]\n---\n# Mast\n\nOf spruce.\n"
    blocks = blocks_of(text, "markdown")
    assert [path for _, path in blocks.headings] == ["Mast"]
    assert blocks.whole == [(0, text.index("#"))]
    assert blocks_of("---\n\nA rule.\n\n# Mast\n\n---\n", "markdown").headings


def test_the_blocks_of_markdown():
    text = (
        "Rig\r\n===\r\n\r\n[a]: /link\r\n\r\n    x = 1\r\n\r\n    y = 2\n\n"
        "- # no section\n- two\n\n| a |\n|---|\n| 1 |\n\n## Mast ##\nOf spruce.\r"
    )
    blocks = blocks_of(text, "markdown")
    assert [path for _, path in blocks.headings] == ["Rig", "Rig > Mast"]
    assert [text[start:end].split() for start, end in blocks.whole] == [
        ["x", "=", "1", "y", "=", "2"],
        ["|", "a", "|", "|---|", "|", "1", "|"],
    ]
    top, every = (
        [text[place:].partition("\n")[0].rstrip() for place in level] for level in blocks.levels
    )
    assert top == ["Rig", "x = 1", "- # no section", "| a |", "## Mast ##"]
    assert every == [*top[:3], "- two", *top[3:]]


def test_a_list_is_cut_between_its_points():
    text = "".join(f"- point {number} " + "of this list " * 8 + "\n" for number in range(20))
    config = ChunkConfig(chunk_size=100, chunk_overlap=0, min_chunk_size=10)
    chunks = chunk_text(text, config=config, kind="markdown")
    assert len(chunks) > 3
    assert all(chunk.content.startswith("- point") for chunk in chunks)


@pytest.fixture
def listed(tmp_path):
    """A file of a folder that was listed, and a secret beside the folder."""
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "folder" / "inner"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("plain")
    [file] = files_of(tmp_path / "folder")
    assert read_bytes(file, 100) == b"plain"
    return file


def _to_link(path, secret):
    path.unlink()
    path.symlink_to(secret)


def _to_pipe(path, _):
    path.unlink()
    os.mkfifo(path)


def _to_folder(path, _):
    path.unlink()
    path.mkdir()


def _folder_to_link(path, secret):
    path.parent.rename(path.parent.with_name("other"))
    path.parent.symlink_to(secret.parent)
    secret.rename(secret.with_name(path.name))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("exchange", [_to_link, _to_pipe, _to_folder, _folder_to_link])
def test_an_exchanged_file_is_not_read(listed, tmp_path, exchange):
    exchange(listed.path, tmp_path / "secret.md")
    with pytest.raises(InvalidArgumentError, match=r"it (leads out|is no regular)"):
        read_bytes(listed, 100)


@pytest.mark.skipif(os.name == "nt", reason="Windows checks the resolved path alone")
def test_a_link_that_appears_after_the_check_is_not_followed(listed, tmp_path, monkeypatch):
    place = listed.path.resolve()
    _to_link(listed.path, tmp_path / "secret.md")
    monkeypatch.setattr(type(place), "resolve", lambda *_, **__: place)
    with pytest.raises(OSError, match="symbolic link"):
        read_bytes(listed, 100)


def test_a_link_within_the_folder_is_read(listed):
    link = listed.path.with_name("b.md")
    link.symlink_to(listed.path)
    assert [read_bytes(file, 100) for file in files_of(listed.folder)] == [b"plain"] * 2
