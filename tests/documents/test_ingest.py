"""Files and folders: which are read, how, and what happens when a run is cut short."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from fpdf import FPDF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus_memory import ConfigurationError, InvalidArgumentError, subscribe
from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.backends.sqlite.store import SQLiteStore
from locus_memory.documents import (
    ChunkConfig,
    DocumentIndex,
    chunk_text,
    get_documents,
    ingest_path,
)
from locus_memory.documents.ingest.formats import read_text
from locus_memory.testing import FakeEmbedder
from locus_memory.testing.document_suite.base import Halt, HaltingStore, dump

CHUNKING = ChunkConfig(chunk_size=64, chunk_overlap=8, min_chunk_size=5)
ROOT = Path(__file__).parents[2]


def pdf(*pages, password=None):
    made = FPDF()
    made.set_font("helvetica", size=12)
    if password:
        made.set_encryption("owner", password)
    for text in pages:
        made.add_page()
        made.multi_cell(0, 8, text)
    return bytes(made.output())


def test_a_pdf_is_the_text_of_its_pages(tmp_path):
    (tmp_path / "guide.pdf").write_bytes(pdf("The kettle boils.", "Invoices are paid."))
    [chunk] = ingest_path(tmp_path)
    assert (chunk.source, chunk.metadata["kind"]) == ("guide.pdf", "text")
    assert chunk.content.split("\n\n") == ["The kettle boils.", "Invoices are paid."]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"%PDF-1.7 nonsense", "it cannot be read"),
        (b"", "it cannot be read"),
        (pdf("secret", password="known")[:200], "it cannot be read"),
    ],
)
def test_a_damaged_pdf_says_so(content, says):
    with pytest.raises(InvalidArgumentError, match=says):
        read_text("a.pdf", content)


@pytest.mark.slow
def test_a_damaged_pdf_says_so_once(tmp_path):
    """In a process whose logging nobody configured."""
    (tmp_path / "a.pdf").write_bytes(b"no PDF")
    script = f"from locus_memory.documents import ingest_path; ingest_path({str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("\n") == 1
    assert "documents.skipped" in done.stderr


@pytest.mark.parametrize("extra", ["pypdf", "markitdown"])
async def test_a_missing_extra_is_named_and_stops_nothing(tmp_path, monkeypatch, extra):
    # The process that reads sees it as well.
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / f"{extra}.py").write_text(f"raise ModuleNotFoundError(name={extra!r})")
    monkeypatch.syspath_prepend(modules)
    tmp_path = tmp_path / "folder"
    tmp_path.mkdir()
    name, wanted = {"pypdf": ("a.pdf", "documents"), "markitdown": ("a.docx", "documents-all")}[
        extra
    ]
    (tmp_path / name).write_bytes(pdf("text"))
    (tmp_path / "b.txt").write_text("A plum.")
    async with get_documents("memory") as index:
        done = await index.add_path(tmp_path)
    assert done.added == 1
    [(path, reason)] = done.skipped
    assert path == name
    assert f"needs the '{wanted}' extra" in reason


def test_what_is_left_out(tmp_path):
    for name in (
        *("a.txt", ".hidden.md", ".git/b.txt", "node_modules/c.js", "x/__pycache__/d.py"),
        *("photo.png", "x/build/e.txt", "x/deep/f.py", "song.MP3", "kb.db-wal"),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Some words.")
    assert [each.source for each in ingest_path(tmp_path)] == ["a.txt", "x/deep/f.py"]
    assert [each.source for each in ingest_path(tmp_path / "a.txt")] == ["a.txt"]
    with pytest.raises(InvalidArgumentError, match="no file and no folder"):
        ingest_path(tmp_path / "nowhere")


def test_links_lead_nowhere_outside(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (inside / "own.txt").write_text("own")
    (inside / "file.txt").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside)
    (inside / "loop").symlink_to(inside)
    (inside / "again.txt").symlink_to(inside / "own.txt")
    (inside / "broken.txt").symlink_to(inside / "none.txt")
    (inside / "circle.txt").symlink_to(inside / "round.txt")
    (inside / "round.txt").symlink_to(inside / "circle.txt")
    assert [each.source for each in ingest_path(inside)] == ["again.txt", "own.txt"]


async def test_large_and_unreadable_files_are_skipped(tmp_path):
    (tmp_path / "big.txt").write_text("x" * 101)
    (tmp_path / "small.txt").write_text("x" * 100)
    os.mkfifo(tmp_path / "pipe.txt")
    seen = []
    unsubscribe = subscribe(lambda event: seen.append((event.name, event.attributes)))
    try:
        assert [each.source for each in ingest_path(tmp_path, max_bytes=100)] == ["small.txt"]
        async with get_documents("memory") as index:
            done = await index.add_path(tmp_path, max_bytes=100)
    finally:
        unsubscribe()
    assert done.skipped == (("big.txt", "it has more than 100 bytes"),)
    told = [facts for name, facts in seen if name == "documents.ingested"]
    assert [(each["source"], each["outcome"], each["number"], each["total"]) for each in told] == [
        ("big.txt", "skipped", 1, 2),
        ("small.txt", "added", 2, 2),
    ]
    assert "documents.skipped" in [name for name, _ in seen]


@pytest.mark.slow
async def test_of_two_runs_at_once_only_one_counts_a_file(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("Some words.")
    async with get_documents("memory") as index:
        both = await asyncio.gather(index.add_path(tmp_path), index.add_path(tmp_path))
    whole = both[0] + both[1]
    assert (whole.added, whole.updated, whole.unchanged, whole.chunks) == (20, 0, 20, 20)


@pytest.mark.parametrize("name", [b"half\xff.txt", b"a\nb.txt"])
async def test_a_file_with_a_name_that_is_no_source_is_skipped(tmp_path, name):
    """A source is one line of whole characters: a name on two lines would look like a piece."""
    for each in (b"a", name):
        (tmp_path / os.fsdecode(each)).write_text("Some words.")
    async with get_documents("memory") as index:
        done = await index.add_path(tmp_path)
        assert (done.added, len(done.skipped)) == (1, 1)
        path, reason = done.skipped[0]
        assert path.encode()
        assert "half a character" in reason or "one line" in reason
        assert [each.source for each in await index.sources()] == ["a"]


@pytest.mark.parametrize(
    "options", [{"metadata": {"at": float("nan")}}, {"metadata": {1: "a"}}, {"prefix": "a\nb"}]
)
async def test_what_fits_no_file_is_refused(tmp_path, options):
    """It is an error, and no reason to skip each file."""
    (tmp_path / "a.txt").write_text("Some words.")
    async with get_documents("memory") as index:
        with pytest.raises(InvalidArgumentError):
            await index.add_path(tmp_path, **options)


async def test_a_path_that_cannot_be_looked_at_is_refused():
    async with get_documents("memory") as index:
        with pytest.raises(
            InvalidArgumentError, match=r"cannot be read: File name too long|no file"
        ):
            await index.add_path("a" * 300)


async def test_an_empty_path_is_refused():
    """It is not the current folder: a variable that is not set would index anything."""
    async with get_documents("memory") as index:
        with pytest.raises(InvalidArgumentError, match="a path is not empty"):
            await index.add_path("")


async def test_a_folder_that_cannot_be_listed_is_skipped_and_not_pruned(tmp_path, monkeypatch):
    """Nobody knows which of its files are gone."""
    for name in ("a.txt", "closed/b.txt", "closed-too.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("Some words.")
    listed = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    async with get_documents("memory") as index:
        await index.add_path(tmp_path)
        (tmp_path / "closed-too.txt").unlink()
        monkeypatch.setattr(os, "scandir", refusing)
        done = await index.add_path(tmp_path, prune=True)
        assert (done.unchanged, done.deleted) == (1, 1)
        assert done.skipped == (("closed", "Permission denied"),)
        assert [each.source for each in await index.sources()] == ["a.txt", "closed/b.txt"]
        with pytest.raises(InvalidArgumentError, match="cannot be listed: Permission denied"):
            await index.add_path(tmp_path / "closed", prune=True)


async def test_a_file_that_another_process_adds_meanwhile_is_not_pruned(tmp_path):
    """It came after the first process had listed the folder."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.txt", "gone.txt"):
        (folder / name).write_text("Some words.")
    one, other = (DocumentIndex(f"sqlite:{tmp_path}/kb.db", kind="text") for _ in range(2))
    loop, during = asyncio.get_running_loop(), []

    def add(event):
        if event.name == "documents.ingested" and not during:
            (folder / "new.txt").write_text("A plum grows.")
            during.append(loop.create_task(other.add_path(folder)))

    async with one, other:
        await one.add_path(folder)
        (folder / "gone.txt").unlink()
        scanned = one._writer._store.scan

        async def waiting(*arguments, **options):
            await asyncio.gather(*during)
            return await scanned(*arguments, **options)

        one._writer._store.scan = waiting
        unsubscribe = subscribe(add)
        try:
            assert (await one.add_path(folder, prune=True)).deleted == 1
        finally:
            unsubscribe()
        assert [each.source for each in await other.sources()] == ["a.txt", "new.txt"]


async def test_a_file_belongs_to_the_folder_that_had_it_last(tmp_path):
    """It was added alone, or its folder had another name: `prune` deletes it all the same."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    for name in ("a.txt", "b.txt"):
        (first / name).write_text("Some words.")
    async with get_documents("memory") as index:
        await index.add_path(first / "a.txt")
        assert (await index.add_path(first)).unchanged == 1
        await index.add_path(first / "a.txt")
        (first / "a.txt").unlink()
        assert (await index.add_path(first, prune=True)).deleted == 1
        first.rename(second)
        done = await index.add_path(second, prune=True)
        assert (done.unchanged, done.deleted) == (1, 0)
        (second / "b.txt").unlink()
        assert (await index.add_path(second, prune=True)).deleted == 1
        assert await index.sources() == []


async def test_a_changed_file_that_is_added_alone_stays_with_its_folder(tmp_path):
    """`prune` deletes it when it is gone; one of another folder with its name is left."""
    folder, other = tmp_path / "folder", tmp_path / "other"
    for place in (folder / "sub", other):
        place.mkdir(parents=True)
        for name in ("a.txt", "b.txt"):
            (place / name).write_text(f"Some words of {place.name}.")
    async with get_documents("memory") as index:
        await index.add_path(folder / "sub", prefix="kb/")
        (folder / "sub/a.txt").write_text("A plum grows.")
        assert (await index.add_path(folder / "sub/a.txt", prefix="kb/")).updated == 1
        assert (await index.add_path(other / "b.txt", prefix="kb/")).updated == 1
        for name in ("a.txt", "b.txt"):
            (folder / "sub" / name).unlink()
        assert (await index.add_path(folder / "sub", prefix="kb/", prune=True)).deleted == 1
        assert [each.source for each in await index.sources()] == ["kb/b.txt"]


async def test_a_file_that_cannot_be_looked_at_stops_nothing(tmp_path, monkeypatch):
    """Such as one in a folder that may be listed and not entered."""
    (tmp_path / "a.txt").write_text("Some words.")
    (tmp_path / "b.txt").write_text("Other words.")

    def refusing(verb):
        def look(path, **options):
            if path.name == "a.txt":
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return verb(path, **options)

        return look

    for name in ("is_file", "resolve"):
        monkeypatch.setattr(Path, name, refusing(getattr(Path, name)))
    async with get_documents("memory") as index:
        done = await index.add_path(tmp_path)
    assert (done.added, done.skipped) == (1, (("a.txt", "Permission denied"),))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("\u00e9t\u00e9".encode(), "\u00e9t\u00e9"),
        ("\u00e9t\u00e9".encode("utf-8-sig"), "\u00e9t\u00e9"),
        ("\u00e9t\u00e9".encode("utf-16"), "\u00e9t\u00e9"),
        ("\ufeff\u00e9t\u00e9".encode("utf-16-be"), "\u00e9t\u00e9"),
        ("\u00e9t\u00e9".encode("utf-32"), "\u00e9t\u00e9"),
        ("\u00e9t\u00e9 \u20ac".encode("cp1252"), "\u00e9t\u00e9 \u20ac"),
        (b"\x81bad", "\ufffdbad"),
        (b"\xff\xfe\x00", "\ufffd"),
    ],
)
def test_encodings(content, text):
    assert read_text("a.txt", content).text == text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_character_of_number_0_is_binary(encoding):
    with pytest.raises(InvalidArgumentError, match="it is binary"):
        read_text("a.txt", "plum\0tree".encode(encoding))


@given(st.binary(max_size=60), st.sampled_from(["a.txt", "a.md", "a.py", "a.pdf"]))
def test_any_bytes_are_text_or_refused(content, source):
    with suppress(InvalidArgumentError):
        read_text(source, content).text.encode()


FILES = st.dictionaries(
    st.sampled_from(["a.txt", "b.md", "sub/c.py", "sub/d.txt"]),
    st.sampled_from(["A plum grows.\n\n" * n for n in (1, 2, 60, 300)] + ["", "# H\n\nA pear."]),
)


def write(folder, files):
    for path in folder.rglob("*.*"):
        if path.is_file():
            path.unlink()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(FILES, st.integers(0, 12)), max_size=3), FILES, st.booleans())
async def test_a_killed_run_that_is_run_again_equals_one_run(tmp_path, earlier, last, has_vectors):
    """Whatever was killed before, and whatever changed meanwhile."""
    options = {
        "chunking": CHUNKING,
        "kind": "hybrid" if has_vectors else "text",
        "embedder": FakeEmbedder() if has_vectors else None,
    }
    folder = tmp_path / "kb"
    folder.mkdir(exist_ok=True)
    killed, whole = InMemoryStore(), InMemoryStore()
    for files, writes in earlier:
        write(folder, files)
        with suppress(Halt):
            await DocumentIndex(HaltingStore(killed, writes), **options).add_path(
                folder, prune=True
            )
    write(folder, last)
    again, once = DocumentIndex(killed, **options), DocumentIndex(whole, **options)
    await again.add_path(folder, prune=True)
    await once.add_path(folder, prune=True)
    assert await dump(again, killed) == await dump(once, whole)


@pytest.mark.parametrize("writes", range(4))
@pytest.mark.parametrize("verb", ["delete_source", "delete", "clear"])
async def test_what_a_killed_deletion_left_is_added_again(tmp_path, verb, writes):
    """No record says that chunks are there which are gone."""
    (tmp_path / "a.txt").write_text("A plum grows.")
    store = InMemoryStore()
    index = DocumentIndex(store, kind="text")
    await index.add_path(tmp_path)
    [found] = await index.retrieve("plum")
    named = {"delete_source": ("a.txt",), "delete": (found.doc_id,), "clear": ()}[verb]
    with suppress(Halt):
        await getattr(DocumentIndex(Halting(store, writes), kind="text"), verb)(*named)
    await index.add_path(tmp_path)
    assert [each.source for each in await index.retrieve("plum")] == ["a.txt"]


class Halting(HaltingStore):
    """A store whose process is killed before one of its writes, also one that deletes."""

    async def delete(self, namespace, key, *, if_version=None):
        await self._count()
        return await super().delete(namespace, key, if_version=if_version)

    async def clear_namespace(self, namespace):
        await self._count()
        return await super().clear_namespace(namespace)


@pytest.mark.slow
async def test_the_chunks_of_small_files_are_embedded_together(tmp_path):
    for number in range(150):
        (tmp_path / f"{number:03}.txt").write_text(f"Plum {number} grows.")
    (tmp_path / "010.txt").write_bytes(b"\x00")
    (tmp_path / "long.txt").write_text("A plum grows here.\n\n" * 1300)
    embedder, told = FakeEmbedder(), []
    unsubscribe = subscribe(lambda event: told.append((event.name, event.attributes)))
    try:
        index = DocumentIndex(InMemoryStore(), embedder=embedder, chunking=CHUNKING)
        done = await index.add_path(tmp_path)
    finally:
        unsubscribe()
    assert (done.added, len(done.skipped)) == (150, 1)
    assert sum(embedder.calls) == done.chunks
    assert max(embedder.calls) <= 64
    assert embedder.calls[:2] == [64, 64]
    assert len(embedder.calls) <= done.chunks / 64 + 3
    numbers = [facts["number"] for name, facts in told if name == "documents.ingested"]
    assert numbers == list(range(1, 152))
    for each in ("149.txt", "long.txt"):
        [found] = await index.retrieve("plum", top_k=1, filter={"source": each}, explain=True)
        assert found.explanation.vector_rank is not None


@pytest.mark.slow
@pytest.mark.parametrize("make", [InMemoryStore, lambda: SQLiteStore(":memory:")])
async def test_files_that_have_no_vectors_get_them_when_they_are_added_again(tmp_path, make):
    for number in range(70):
        (tmp_path / f"{number:03}.txt").write_text(f"Plum {number} grows.")
    async with make() as store:
        await DocumentIndex(store).add_path(tmp_path)
        embedder = FakeEmbedder()
        index = DocumentIndex(store, embedder=embedder)
        assert (await index.add_path(tmp_path)).unchanged == 70
        assert (await index.reembed()).current == 70
        seen = list(embedder.calls)
        await index.add_path(tmp_path)
        assert embedder.calls == seen
        with pytest.raises(ConfigurationError, match="cannot be compared"):
            await DocumentIndex(store, embedder=FakeEmbedder(32)).add_path(tmp_path)


async def test_chunks_without_vectors_beside_others_are_told(tmp_path):
    (tmp_path / "a.txt").write_text("A plum grows.")
    store = InMemoryStore()
    told = []
    unsubscribe = subscribe(lambda event: told.append((event.name, event.attributes)))
    try:
        plain = DocumentIndex(store)
        await plain.add("A pear.", source="pear")
        assert told == []
        await DocumentIndex(store, embedder=FakeEmbedder()).add("A fig.", source="fig")
        plain = DocumentIndex(store)
        await plain.add("A nut.", source="nut")
        await plain.add("An oak.", source="oak")
    finally:
        unsubscribe()
    assert told == [("documents.not_embedded", {"model": FakeEmbedder().name})]


async def test_texts_of_an_index_without_an_embedder_get_vectors_by_reembed():
    store = InMemoryStore()
    await DocumentIndex(store).add("A fig.", source="fig")
    await DocumentIndex(store).add("A nut.", source="nut")
    embedder = FakeEmbedder()
    index = DocumentIndex(store, embedder=embedder)
    assert await index.embedding_model() is None
    assert (await index.add("A fig.", source="fig")).unchanged == 1
    assert embedder.calls == []
    assert (await index.reembed()).embedded == 2
    assert await index.embedding_model() == embedder.name
    found = await DocumentIndex(store, kind="dense", embedder=embedder).retrieve("fig")
    assert {each.source for each in found} == {"fig", "nut"}


async def test_a_failing_embedder_leaves_chunks_that_reembed_finds():
    class Failing(FakeEmbedder):
        is_down = True

        async def embed(self, texts, *, kind="document"):
            if self.is_down:
                raise OSError("down")
            return await super().embed(texts, kind=kind)

    embedder = Failing()
    seen = []
    unsubscribe = subscribe(lambda event: seen.append(event.name))
    try:
        index = DocumentIndex(InMemoryStore(), embedder=embedder)
        await index.add("A plum grows here.", source="a")
    finally:
        unsubscribe()
    assert seen == ["documents.embed_failed"]
    embedder.is_down = False
    assert [each.source for each in await index.retrieve("plum")] == ["a"]
    report = await index.reembed()
    assert report.embedded == 1
    [found] = await index.retrieve("plum", explain=True)
    assert found.explanation.vector_rank == 1


async def test_chunking_leaves_the_loop_free(monkeypatch):
    threads = set()

    def seen(*args, **kwargs):
        threads.add(threading.current_thread())
        return chunk_text(*args, **kwargs)

    monkeypatch.setattr("locus_memory.documents.writing.chunk_text", seen)
    async with get_documents("memory", kind="text") as index:
        await index.add("Some words of a sentence. " * 1000, source="long")
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.slow
async def test_of_this_repository_only_what_changed_is_read_again(tmp_path):
    """Real pages and source: a touched file is the same, and an edited one is not.

    `tests/benchmarks/run.py documents` does it with the whole repository, and compares the times.
    """
    kept = shutil.ignore_patterns("__pycache__", "assets")
    for name in ("docs/backends", "docs/integrations", "locus_memory/documents"):
        shutil.copytree(ROOT / name, tmp_path / "tree" / name, ignore=kept)
    async with get_documents(f"sqlite:{tmp_path / 'kb.db'}", kind="text") as index:
        first = await index.add_path(tmp_path / "tree")
        assert first.added > 30
        (tmp_path / "tree/docs/backends/redis.md").touch()
        second = await index.add_path(tmp_path / "tree")
        assert (second.added, second.updated, second.deleted) == (0, 0, 0)
        assert second.unchanged == first.added
        with (tmp_path / "tree/docs/backends/new.md").open("w", encoding="utf-8") as page:
            page.write("The walrus has a page of its own.\n")
        with (tmp_path / "tree/docs/backends/redis.md").open("a", encoding="utf-8") as page:
            page.write("\nThe narwhal was added.\n")
        third = await index.add_path(tmp_path / "tree")
        assert (third.added, third.updated, third.unchanged) == (1, 1, first.added - 1)
        for word, source in (("walrus", "new.md"), ("narwhal", "redis.md")):
            [found] = await index.retrieve(word)
            assert found.source == f"docs/backends/{source}"
