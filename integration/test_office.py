"""Office files that real libraries wrote are read back, and damaged ones are refused."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime

import docx
import openpyxl
import pptx
import pytest

from locus_memory.documents import get_documents
from locus_memory.documents.ingest.formats import read_text
from locus_memory.errors import InvalidArgumentError


def saved(document) -> bytes:
    made = io.BytesIO()
    document.save(made)
    return made.getvalue()


def guide() -> bytes:
    made = docx.Document()
    made.add_heading("Guide", 1)
    made.add_heading("Rig", 2)
    made.add_paragraph("The mast is of spruce; its varnish is caf\u00e9-coloured.")
    table = made.add_table(rows=2, cols=2)
    for number, text in enumerate(("Spar", "Wood", "Gaff", "Ash")):
        table.cell(number // 2, number % 2).text = text
    return saved(made)


def prices() -> bytes:
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Prices"
    for row in (("Part", "Price"), ("Halyard", 40), ("Sheet", 25)):
        sheet.append(row)
    made.create_sheet("Suppliers").append(["Chandler of Wexford"])
    return saved(made)


def talk() -> bytes:
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "Tides"
    slide.placeholders[1].text = "High water at noon."
    slide.notes_slide.notes_text_frame.text = "Mention the neap."
    return saved(made)


FILES = {"guide.docx": guide, "prices.xlsx": prices, "talk.pptx": talk}
QUESTIONS = {
    "Of which wood is the mast?": "guide.docx",
    "What does a halyard cost?": "prices.xlsx",
    "Who is the chandler?": "prices.xlsx",
    "When is high water?": "talk.pptx",
    "neap": "talk.pptx",
}


async def test_office_files_are_found_by_what_is_in_them(tmp_path):
    for name, make in FILES.items():
        (tmp_path / name).write_bytes(make())
    async with get_documents(f"sqlite:{tmp_path / 'kb.db'}", kind="text") as index:
        done = await index.add_path(tmp_path)
        assert (done.added, done.skipped) == (3, ())
        for question, name in QUESTIONS.items():
            [best] = await index.retrieve(question, top_k=1)
            assert best.source == name
        [best] = await index.retrieve("spruce varnish", top_k=1)
        assert best.heading == "Guide > Rig"
        assert "caf\u00e9-coloured" in best.content
        assert (await index.add_path(tmp_path)).unchanged == 3


def test_a_table_is_a_table_of_markdown():
    assert "| Gaff | Ash |" in read_text("a.docx", guide()).text
    assert "| Halyard | 40" in read_text("a.xlsx", prices()).text


def test_an_empty_cell_is_empty_and_words_stay_words():
    made = openpyxl.Workbook()
    made.active.title = "P|r"
    for row in ((None, "Price"), ("NA", None), (None, None), ("None", 3.0, "a|b"), ("nan",)):
        made.active.append(row)
    made.active["B9"] = datetime(2026, 1, 2)  # noqa: DTZ001 - a sheet has no time zones
    assert read_text("a.xlsx", saved(made)).text.splitlines() == [
        "## P\\|r",
        "",
        "|  | Price |  |",
        "| --- | --- | --- |",
        "| NA |  |  |",
        "| None | 3 | a\\|b |",
        "| nan |  |  |",
        "|  | 2026-01-02 |  |",
    ]


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_office_document_is_refused(name):
    whole = FILES[name]()
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("secret.txt", "A zip of texts.")
    for content in (b"", b"PK\x03\x04nonsense", b"Plain words.", other.getvalue(), whole[:2000]):
        with pytest.raises(InvalidArgumentError, match="Office document"):
            read_text(name, content)
    damaged = bytearray(whole)
    damaged[100:900] = bytes(800)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_text(name, bytes(damaged))
