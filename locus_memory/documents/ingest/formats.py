"""The formats of files: which suffix is which, and how bytes become a text."""

from __future__ import annotations

import codecs
import io
import logging
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from locus_memory._internal.providers.drivers import require
from locus_memory.documents.chunking.config import DocumentKind
from locus_memory.documents.ingest.pages import charset_of, markdown_of
from locus_memory.documents.ingest.sheets import sheets_of
from locus_memory.errors import InvalidArgumentError, LocusMemoryError

__all__ = ["Text", "format_of", "read_text"]

Format = Literal["text", "markdown", "code", "html", "pdf", "office"]

_SUFFIXES: Final[Mapping[Format, str]] = {
    "markdown": "md markdown mdx",
    "code": "py pyi js jsx mjs ts tsx rs go java c h cpp hpp cc cs rb php swift kt scala sh bash"
    " sql r lua pl yaml yml toml json css scss xml",
    "html": "html htm xhtml",
    "pdf": "pdf",
    "office": "docx pptx xlsx",
}
_FORMATS: Final[Mapping[str, Format]] = {
    each: name for name, some in _SUFFIXES.items() for each in some.split()
}
_KINDS: Final[Mapping[Format, DocumentKind]] = {
    "markdown": "markdown",
    "code": "code",
    "html": "markdown",
    "office": "markdown",
}
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # Those of UTF-32 begin like those of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTENT_TYPES: Final = "[Content_Types].xml"
"""The part that every Office document has, see ECMA-376, part 2."""

_LARGEST_PARTS: Final = 1_000_000_000
"""More bytes than this, unpacked, are no document to read."""

# The reason for which a file is skipped says it once; who configured logging gets the details.
_QUIET: Final = logging.NullHandler()

_LOOKED_AT: Final = 8192
_GUESSED: Final = "it is not UTF-8, and was read as Windows-1252"
_INVALID: Final = "its byte order mark promises characters that are not all there"


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a file.

    Attributes:
        text: The text.
        kind: Its shape.
        note: What is doubtful about it; empty if nothing is.
    """

    text: str
    kind: DocumentKind
    note: str = ""


def format_of(source: str) -> Format:
    """Return the format that the suffix of a file says; `text` for an unknown one."""
    return _FORMATS.get(PurePath(source).suffix[1:].lower(), "text")


def kind_of(source: str) -> DocumentKind:
    """Return the kind of the text of a file."""
    return _KINDS.get(format_of(source), "text")


def read_text(source: str, content: bytes) -> Text:
    """Return the text of a file.

    Raises:
        InvalidArgumentError: It is binary, damaged or encrypted.
        MissingDriverError: Its format needs an extra.
        MemoryError: It does not fit into the memory.
    """
    try:
        text, note = _read(source, content)
    except (MemoryError, LocusMemoryError):
        raise
    except Exception as error:
        # Damaged files make a parser raise almost anything.
        raise InvalidArgumentError(f"it cannot be read: {type(error).__name__}") from error
    # Half a character is no text that a store can keep.
    whole = text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
    return Text(whole, kind_of(source), note)


def _decoded(content: bytes, charset: str | None = None) -> tuple[str, str]:
    """Return a text, and what is doubtful about it; the character set is that which it names.

    Raises:
        InvalidArgumentError: It is binary: it has the character of number 0.
    """
    for mark, encoding in _BOMS:
        if content.startswith(mark):
            try:
                text, doubt = content.decode(encoding), ""
            except UnicodeDecodeError:
                text, doubt = content.decode(encoding, "replace"), _INVALID
            if "\0" not in text[:_LOOKED_AT]:
                return text, doubt
    if b"\x00" in content[:_LOOKED_AT]:
        raise InvalidArgumentError("it is binary")
    for known in ("utf-8", charset or "utf-8"):
        try:
            return content.decode(known), ""
        except UnicodeDecodeError:
            continue
    return content.decode("cp1252", "replace"), _GUESSED


def _read(source: str, content: bytes) -> tuple[str, str]:
    """Return the text of a file, and what is doubtful about it."""
    found = format_of(source)
    if found == "pdf":
        return _pdf(content), ""
    if found == "office":
        return _office(source, content), ""
    text, note = _decoded(content, charset_of(content) if found == "html" else None)
    return (markdown_of(text) if found == "html" else text), note


def _pdf(content: bytes) -> str:
    pypdf = require("pypdf", "documents", needed_by="PDF files")
    logging.getLogger("pypdf").addHandler(_QUIET)
    reader = pypdf.PdfReader(io.BytesIO(content))
    if reader.is_encrypted and not reader.decrypt(""):
        raise InvalidArgumentError("the PDF is encrypted")
    return "\n\n".join(page.extract_text() or "" for page in reader.pages)


def _office(source: str, content: bytes) -> str:
    suffix = PurePath(source).suffix.lower()
    is_sheet = suffix == ".xlsx"
    reader = require(
        "openpyxl" if is_sheet else "markitdown", "documents-all", needed_by="Office files"
    )
    _check_office(content)
    if is_sheet:
        return sheets_of(reader, content)
    converter = reader.MarkItDown(enable_plugins=False)
    text: str = converter.convert_stream(io.BytesIO(content), file_extension=suffix).text_content
    return text


def _check_office(content: bytes) -> None:
    """Check that a file is an Office document; of any other, a text would be guessed.

    Raises:
        InvalidArgumentError: It is not, or too much is packed into it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise InvalidArgumentError("it is damaged, encrypted or no Office document") from error
    if _CONTENT_TYPES not in [each.filename for each in parts]:
        raise InvalidArgumentError("it is no Office document")
    if sum(each.file_size for each in parts) > _LARGEST_PARTS:
        raise InvalidArgumentError("it has too much packed into it")
