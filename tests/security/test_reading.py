"""No document stops the reading of a folder: it is read in a process with limits."""

from __future__ import annotations

import asyncio
import html
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from contextlib import closing
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_memory.backends.inmemory.store import InMemoryStore
from locus_memory.documents import DocumentIndex, DocumentLimits, ingest_path
from locus_memory.documents.ingest import reader as reader_module
from locus_memory.documents.ingest.formats import kind_of, read_text
from locus_memory.documents.ingest.pages import markdown_of
from locus_memory.documents.ingest.reader import DocumentReader
from locus_memory.errors import InvalidArgumentError, LocusMemoryError
from locus_memory.events import subscribe
from locus_memory.resources.tree import MemoryTree

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
RELATIONS = "application/vnd.openxmlformats-package.relationships+xml"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
RELATION = f"""<Relationships xmlns="{PACKAGE}/relationships">
  <Relationship Id="a" Target="{{}}" Type="{OFFICE}/{{}}"/></Relationships>"""
SHEET = f'<worksheet xmlns="{MAIN}"><sheetData>{{}}</sheetData></worksheet>'
PARTS = {
    "[Content_Types].xml": f"""<Types xmlns="{PACKAGE}/content-types">
      <Default Extension="rels" ContentType="{RELATIONS}"/>
      <Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/>
      <Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPE}.worksheet+xml"/>
    </Types>""",
    "_rels/.rels": RELATION.format("xl/workbook.xml", "officeDocument"),
    "xl/workbook.xml": f"""<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>
      <sheet name="S" sheetId="1" r:id="a"/></sheets></workbook>""",
    "xl/_rels/workbook.xml.rels": RELATION.format("worksheets/sheet1.xml", "worksheet"),
}


def cell(place, text="x"):
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def workbook(rows):
    """Return a spreadsheet that says what its rows are."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {**PARTS, "xl/worksheets/sheet1.xml": SHEET.format(rows)}.items():
            archive.writestr(name, text)
    return made.getvalue()


def far_row():
    return workbook(f'<row r="100000000">{cell("A100000000")}</row>')


def wide_rows(count=9000):
    rows = "".join(f'<row r="{n}">{cell(f"A{n}")}</row>' for n in range(2, count))
    return workbook(f'<row r="1">{cell("XFD1")}</row>{rows}')


def heavy_rows(count=4000):
    return workbook("".join(f'<row r="{n}">{cell(f"XFD{n}")}</row>' for n in range(1, count)))


def parser(body):
    """Return a module in the place of `pypdf` that does something else than to read."""
    return "class PdfReader:\n    is_encrypted = False\n    def __init__(self, file):\n" + (
        textwrap.indent(textwrap.dedent(body), " " * 8)
    )


PARSERS = {
    "endless": ("while True: pass", "seconds"),
    "asleep": ("import time; time.sleep(1000)", r"more than 1 s to read \(DocumentLimits.seconds"),
    "greedy": ("kept = [bytes(2**20) for _ in range(2000)]", "DocumentLimits.memory"),
    "greedy at once": ("kept = b'x' * 2**31", "DocumentLimits.memory"),
    "crashing": ("import os; os.abort()", r"ended with status -?\d+"),
    "exiting": ("import os; os._exit(3)", "ended with status 3"),
    "deep": ("self.__init__(file)", "RecursionError"),
    "chatty": (
        "import os; os.write(1, b'x' * 99999); print('x' * 9999); raise KeyError",
        "KeyError",
    ),
    "long": (
        "class Page:\n    extract_text = lambda self: 'long ' * 9000\nself.pages = [Page()]",
        r"40,000 characters \(DocumentLimits.characters",
    ),
}
LIMITS = DocumentLimits(seconds=1, memory=300 * 2**20, characters=40_000)


@pytest.fixture
def folder(tmp_path):
    """A folder whose second file is for each test, between two that can be read."""
    made = tmp_path / "folder"
    made.mkdir()
    (made / "a.html").write_text("<p>An apple.")
    (made / "c.html").write_text("<p>A cherry.")
    return made


async def skipped(folder, **options):
    """Return why the second file was skipped; the others were not."""
    async with DocumentIndex("memory", kind="text") as index:
        done = await index.add_path(folder, **options)
        assert [each.source for each in await index.sources()] == ["a.html", "c.html"]
    assert done.added == 2
    [(path, reason)] = done.skipped
    assert path.startswith("b.")
    return reason


@POSIX
@pytest.mark.parametrize("name", PARSERS)
async def test_a_parser_that_misbehaves_stops_nothing(folder, tmp_path, monkeypatch, name):
    body, reason = PARSERS[name]
    (tmp_path / "pypdf.py").write_text(parser(body))
    monkeypatch.syspath_prepend(tmp_path)
    (folder / "b.pdf").write_bytes(b"%PDF")
    started = time.monotonic()
    assert re.search(reason, await skipped(folder, limits=LIMITS))
    assert time.monotonic() - started < 30


async def test_limits_beyond_those_of_the_machine_are_none(folder):
    (folder / "b.html").write_text("<p>A berry.")
    limits = DocumentLimits(memory=2**62, cpu_seconds=2**62, characters=2**40)
    async with DocumentIndex("memory", kind="text") as index:
        assert (await index.add_path(folder, limits=limits)).added == 3


@pytest.mark.parametrize("most", [sys.maxsize, 10**25])
def test_no_limit_is_too_high(most, monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    names = [each.name for each in fields(DocumentLimits)]
    with closing(DocumentReader(DocumentLimits(**dict.fromkeys(names, most)))) as reader:
        assert reader.read("a.html", b"<p>A berry.").text == "A berry."
    assert not failed


@pytest.mark.parametrize("source", ["\udcff.html", "a\nb.html", "\x00.html", "\U0001f600.html"])
def test_any_name_of_a_file_is_read(source):
    """A name of a POSIX system is bytes, of which some are no characters."""
    with closing(DocumentReader()) as reader:
        assert reader.read(source, b"<p>A berry.").text == "A berry."


@POSIX
async def test_the_time_of_the_processor_is_bounded(folder, tmp_path, monkeypatch):
    (tmp_path / "pypdf.py").write_text(parser(PARSERS["endless"][0]))
    monkeypatch.syspath_prepend(tmp_path)
    (folder / "b.pdf").write_bytes(b"%PDF")
    reason = await skipped(folder, limits=DocumentLimits(cpu_seconds=1))
    assert reason == "it takes more than 1 s of the processor to read (DocumentLimits.cpu_seconds)"


@POSIX
def test_memory_is_bounded_where_there_is_no_bound_of_the_address_space():
    """The process watches its own size on a system such as macOS."""
    script = """
        from pathlib import Path
        from locus_memory.documents.ingest import reader_process
        reader_process._SIZES = Path("/nowhere")
        reader_process._limit(100 * 2**20, 60)
        kept = []
        while True:
            kept.append(b"x" * 2**20)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 77


async def test_a_sheet_with_a_row_far_away_ends(folder):
    pytest.importorskip("openpyxl")
    (folder / "b.xlsx").write_bytes(far_row())
    assert len(far_row()) < 1500
    assert "1,048,576 rows" in await skipped(folder)


@POSIX
async def test_a_small_sheet_makes_no_huge_text(folder):
    pytest.importorskip("openpyxl")
    (folder / "b.xlsx").write_bytes(wide_rows(2000))
    limits = DocumentLimits(characters=1_000_000)
    assert "1,000,000 characters" in await skipped(folder, limits=limits)


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("content", [wide_rows(), heavy_rows(40_000)], ids=["wide", "heavy"])
async def test_sheets_that_took_gigabytes_take_no_more_than_the_limits(folder, content):
    pytest.importorskip("openpyxl")
    (folder / "b.xlsx").write_bytes(content)
    assert len(content) < 500_000
    assert "DocumentLimits." in await skipped(folder)


@pytest.mark.parametrize("name", ["b.txt", "b.md", "b.html"])
async def test_the_number_of_chunks_is_bounded(folder, name):
    (folder / name).write_text("Some words of a sentence. " * 2000)
    limits = DocumentLimits(chunks=5)
    assert (
        await skipped(folder, limits=limits) == "it has more than 5 chunks (DocumentLimits.chunks)"
    )
    seen = []
    unsubscribe = subscribe(seen.append)
    try:
        found = ingest_path(folder, limits=limits)
    finally:
        unsubscribe()
    assert {each.source for each in found} == {"a.html", "c.html"}
    assert [each.attributes["source"] for each in seen if each.name == "documents.skipped"] == [
        name
    ]


async def test_a_document_of_the_resources_stops_nothing(folder):
    pytest.importorskip("openpyxl")
    (folder / "b.xlsx").write_bytes(far_row())
    async with MemoryTree(InMemoryStore()) as tree:
        done = await tree.add_resource(str(folder))
    assert done.added == 2
    [(path, reason)] = done.skipped
    assert path == "b.xlsx"
    assert "rows" in reason


NUMBERS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["&#", "&#x", "&#X", "&"]),
        st.sampled_from(["", "0", "0" * 5000]),
        st.text("0123456789abcfx", max_size=12),
        st.sampled_from(["", "1" * 4301, "0" * 4301]),
        st.sampled_from([";", "", " ", "<p>"]),
    ),
)


@given(st.lists(st.one_of(NUMBERS, st.text(max_size=5)), max_size=6))
def test_a_page_of_any_character_references_is_read(parts):
    markdown_of("".join(parts))


@given(st.integers(0, 0x11FFFF), st.integers(0, 12), st.sampled_from([";", " "]))
def test_character_references_say_what_they_say(number, zeros, end):
    """Leading zeros change nothing, and the standard library reads the rest."""
    text = f"a&#{'0' * zeros}{number}{end}b"
    assert markdown_of(text) == markdown_of(html.escape(html.unescape(text)))
    assert markdown_of(f"a&#{'9' * 5000};b") == "a\ufffdb"


@settings(max_examples=25)
@given(
    name=st.sampled_from(["a.html", "a.pdf", "a.docx", "a.xlsx", "a.txt"]),
    content=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.binary(max_size=50).map(b"%PDF-1.7\n".__add__),
        st.binary(max_size=50).map(b"PK\x03\x04".__add__),
    ),
)
def test_the_process_reads_what_this_one_would(shared, name, content):
    def outcome(read):
        try:
            return read(name, content)
        except LocusMemoryError as error:
            return type(error), str(error)

    expected = outcome(read_text)
    assert outcome(shared.read) == expected
    assert isinstance(expected, tuple) or expected.kind == kind_of(name)


@pytest.fixture(scope="module")
def shared():
    with closing(DocumentReader()) as reader:
        yield reader


def test_one_process_reads_many_documents_and_ends():
    with closing(DocumentReader()) as reader:
        reader.read("a.txt", b"plain")
        assert reader._process is None
        reader.read("a.html", b"<p>one")
        first = reader._process
        reader.read("b.html", b"<p>two")
        assert reader._process is first
    assert first.poll() is not None
    reader.close()


@POSIX
def test_a_process_that_was_ended_is_replaced():
    with closing(DocumentReader()) as reader:
        reader.read("a.html", b"<p>one")
        os.kill(reader._process.pid, signal.SIGKILL)
        with pytest.raises(InvalidArgumentError, match="ended with status -9"):
            reader.read("b.html", b"<p>two")
        assert reader.read("b.html", b"<p>two").text == "two"


async def test_a_cancelled_caller_ends_the_process(folder, tmp_path, monkeypatch):
    mark = tmp_path / "pid"
    body = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    (tmp_path / "pypdf.py").write_text(parser(body))
    monkeypatch.syspath_prepend(tmp_path)
    (folder / "b.pdf").write_bytes(b"%PDF")
    made = []
    real = subprocess.Popen
    monkeypatch.setattr(
        reader_module.subprocess, "Popen", lambda *a, **b: made.append(real(*a, **b)) or made[-1]
    )
    async with DocumentIndex("memory", kind="text") as index:
        task = asyncio.create_task(index.add_path(folder))
        while not mark.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    [process] = made
    assert process.returncode is not None


def test_a_program_without_a_guard_of_its_main_module_reads_documents(folder, tmp_path):
    """The process runs neither the program again, nor a module of the current folder."""
    script = tmp_path / "program.py"
    script.write_text(
        "import asyncio\n"
        "from locus_memory.documents import DocumentIndex, ingest_path\n"
        "print('begun')\n"
        f"print(len(ingest_path({str(folder)!r})))\n"
        "async def main():\n"
        "    async with DocumentIndex('memory', kind='text') as index:\n"
        f"        print((await index.add_path({str(folder)!r})).added)\n"
        "asyncio.run(main())\n"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "orjson.py").write_text("raise SystemExit('a module of the current folder')")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [b"begun", b"2", b"2"]


def test_a_frozen_program_is_not_started_again(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with closing(DocumentReader()) as reader, pytest.raises(OSError, match="set_executable"):
        reader.read("a.html", b"<p>one")


@pytest.mark.parametrize("name", ["seconds", "cpu_seconds", "memory", "characters", "chunks"])
@pytest.mark.parametrize("value", [-1, True, 1.5, "1", None])
def test_a_limit_is_a_number(name, value):
    with pytest.raises(InvalidArgumentError, match=name):
        DocumentLimits(**{name: value})
