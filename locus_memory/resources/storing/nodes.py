"""Entries and folders as stored values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

from locus_memory._internal.offload import aside
from locus_memory.documents.chunking.chunks import chunk_text
from locus_memory.documents.chunking.config import Chunk, DocumentKind
from locus_memory.documents.ingest.formats import format_of
from locus_memory.documents.layout import digest_of
from locus_memory.resources.levels.rules import Levels, levels_of
from locus_memory.store.item import StoreItem

__all__ = ["FOLDER", "Entry", "Text", "is_folder", "prepared"]

FOLDER: Final[Mapping[str, Any]] = {"kind": "folder"}
"""The value of a folder's item."""


def is_folder(item: StoreItem) -> bool:
    """Whether an item of the tree is a folder."""
    return not isinstance(item.value, dict) or item.value.get("kind") == "folder"


@dataclass(frozen=True, slots=True)
class Text:
    """A text, and everything that is made of it.

    Attributes:
        content: The text.
        digest: Its digest.
        size: Its bytes in UTF-8.
        chunks: Its chunks.
        levels: Its levels by rules.
    """

    content: str = field(repr=False)
    digest: str
    size: int
    chunks: Sequence[Chunk]
    levels: Levels


async def prepared(content: str, name: str) -> Text:
    """Return a text with its chunks and levels; `name` says what kind of text it is."""
    return await aside(len(content), _prepared, content, name)


def _prepared(content: str, name: str) -> Text:
    digest = digest_of(content)
    kind: DocumentKind = "code" if format_of(name) == "code" else "markdown"
    chunks = chunk_text(content, kind=kind)
    return Text(content, digest, len(content.encode()), chunks, levels_of(content, digest))


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is stored.

    Attributes:
        content: The text.
        metadata: The caller's texts by name.
        digest: The digest of the text.
        size: Its bytes in UTF-8.
        revision: How many times it was written.
        chunks: How many chunks it has.
        levels: Its levels; `None`: the model has still to make them.
        written_at: The moment of the write, ISO 8601 in UTC.
    """

    content: str = field(repr=False)
    metadata: Mapping[str, str]
    digest: str
    size: int
    revision: int
    chunks: int
    levels: Levels | None
    written_at: str

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the entry of a stored value."""
        return cls(
            value["content"],
            dict(value["metadata"]),
            value["digest"],
            value["size"],
            value["revision"],
            value["chunks"],
            Levels.from_value(value["levels"], value["digest"]),
            value["written_at"],
        )

    def to_value(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        return {"kind": "entry", **asdict(self)}
