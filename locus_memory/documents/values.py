"""The values of a document index: what was found, what is there, and what was added."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from locus_memory.retrieval.ranking.explain import Explanation

__all__ = ["Ingested", "RetrievalResult", "SourceInfo"]


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """A chunk that was found.

    Attributes:
        content: The text of the chunk.
        score: From 0 to 1, higher is better; comparable between queries, indexes and backends.
        source: The name of its document, such as a path.
        metadata: The caller's own metadata, and `source`, `document`, `index`, `offset`, `digest`,
            `kind`, `start`, `end`, `line`, `end_line` and, in Markdown, `heading`.
        doc_id: The document, for `DocumentIndex.delete`.
        offset: The tokens before the chunk in its document.
        index: The place of the chunk in its document, from 0.
        explanation: The parts of its rank, if `explain` was set.
        contrast: How far the nearest chunk of the search stands out by its vector, from 0 to 1; the
            same for all results of a query. `None`: there are no vectors.
        by_chance: Whether nothing speaks for the chunk but one or two words that it may have by
            chance: its own vector does not stand out. `False`: there are no vectors.
    """

    content: str
    score: float = 0.0
    source: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    doc_id: str = ""
    offset: int = 0
    index: int = 0
    explanation: Explanation | None = None
    contrast: float | None = None
    by_chance: bool = False

    @property
    def heading(self) -> str:
        """The path of headings that the chunk stands under, or an empty string."""
        heading = self.metadata.get("heading")
        return heading if isinstance(heading, str) else ""

    @property
    def lines(self) -> tuple[int, int] | None:
        """The first and the last line in the document, from 1; `None` for a piece of no file."""
        first, last = self.metadata.get("line"), self.metadata.get("end_line")
        return (first, last) if isinstance(first, int) and isinstance(last, int) else None


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A document that an index holds.

    Attributes:
        source: Its name; empty for a piece that was stored without one.
        document: Its id, for `DocumentIndex.delete`.
        chunks: The number of its chunks.
        digest: BLAKE2b of its bytes, in hex.
        kind: `text`, `markdown` or `code`.
        updated_at: When it was indexed, UTC.
        cursor: The value of `after` that continues behind it.
    """

    source: str
    document: str
    chunks: int
    digest: str
    kind: str
    updated_at: datetime
    cursor: str


@dataclass(frozen=True, slots=True)
class Ingested:
    """The result of adding a text, a file or a folder.

    Attributes:
        added: The number of new sources.
        updated: The number of sources that had changed.
        unchanged: The number of sources that were left as they are.
        deleted: The number of sources that were deleted, because their files are gone.
        skipped: The path of each file that was not read, and the reason.
        chunks: The number of chunks that were written.
        seconds: How long it took.
        notes: The path of each file that was read with a doubt, such as a guessed encoding.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    chunks: int = 0
    seconds: float = 0.0
    notes: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: Ingested) -> Ingested:
        """Return the sum of two results."""
        return Ingested(
            self.added + other.added,
            self.updated + other.updated,
            self.unchanged + other.unchanged,
            self.deleted + other.deleted,
            self.skipped + other.skipped,
            self.chunks + other.chunks,
            self.seconds + other.seconds,
            self.notes + other.notes,
        )
