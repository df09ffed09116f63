"""PDFs of a few hundred bytes that lead a careless reader in circles: each ends."""

from __future__ import annotations

from contextlib import suppress

import pytest

from locus_memory.documents.ingest.formats import read_text
from locus_memory.errors import InvalidArgumentError

CATALOG = "<< /Type /Catalog /Pages 2 0 R >>"
PAGE = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>"


def pages(*kids, more=""):
    return f"<< /Type /Pages /Count 1 /Kids [{' '.join(f'{n} 0 R' for n in kids)}] {more} >>"


def stream(text, entries=""):
    return f"<< /Length {len(text)} {entries} >>\nstream\n{text}\nendstream"


def form(text, inner):
    resources = f"/Resources << /XObject << /X {inner} 0 R >> >>"
    return stream(text, f"/Type /XObject /Subtype /Form /BBox [0 0 1 1] {resources}")


def document(objects, trailer=""):
    """Return a PDF of numbered objects."""
    made, places = "%PDF-1.7\n", {}
    for number, content in objects.items():
        places[number] = len(made)
        made += f"{number} 0 obj\n{content}\nendobj\n"
    count = max(objects) + 1
    table = "".join(f"{places.get(number, 0):010} 00000 n \n" for number in range(1, count))
    start = f"startxref\n{len(made)}\n%%EOF\n"
    trailer = trailer.format(start=len(made))
    made += f"xref\n0 {count}\n0000000000 65535 f \n{table}"
    return (made + f"trailer\n<< /Size {count} /Root 1 0 R {trailer} >>\n{start}").encode()


def usual(**changed):
    objects = {1: CATALOG, 2: pages(3), 3: PAGE, 4: stream("/X Do")}
    return objects | {int(name.removeprefix("o")): content for name, content in changed.items()}


HOSTILE = {
    "a page tree that holds itself": document(usual(o2=pages(2, 3))),
    "parents in a circle": document(
        usual(o2=pages(3, more="/Parent 6 0 R"), o6=pages(2, more="/Parent 2 0 R"))
    ),
    "a page tree of ten billion leaves": document(
        usual(o2=pages(*[6] * 10))
        | {n: pages(*[n + 1] * 10, more="/Parent 2 0 R") for n in range(6, 16)}
        | {16: PAGE}
    ),
    "a form that shows itself": document(usual(o5=form("/X Do /X Do", 5))),
    "a form of many forms": document(
        usual() | {n: form("/X Do " * 3, n + 1) for n in range(5, 30)}
    ),
    "a table of references before itself": document(usual(), "/Prev {start}"),
    "an image without an end": document(
        usual(o4=stream("q BI /W 1 /H 1 /BPC 8 /CS /G /F /DCT ID " + "A" * 200))
    ),
    "widths of two billion characters": document(
        usual(
            o3=PAGE.replace("/XObject << /X", "/Font << /F"),
            o4=stream("BT /F 12 Tf (x) Tj ET"),
            o5="<< /Type /Font /Subtype /Type1 /BaseFont /A /FirstChar 0 /LastChar 2000000000 "
            "/Widths [1] >>",
        )
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_it_ends(content):
    # Whether there is text in it is up to the reader.
    with suppress(InvalidArgumentError):
        assert len(read_text("a.pdf", content).text) < 1000
