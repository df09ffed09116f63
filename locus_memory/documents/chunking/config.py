"""The values of chunking: its options, the blocks of a text, and the chunks it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory._internal.quoting import quote
from locus_memory.errors import ConfigurationError

__all__ = ["Blocks", "Chunk", "ChunkConfig", "DocumentKind"]

DocumentKind = Literal["text", "markdown", "code"]
"""The shape of a text: what its headings and its blocks look like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkConfig:
    """The sizes of chunks.

    Attributes:
        chunk_size: At most this many tokens are in a chunk. The last chunk of a text may have up to
            `min_chunk_size` more. A single character that has more tokens is a chunk of its own.
        chunk_overlap: A chunk begins with up to this many of the last tokens of the one before it.
        min_chunk_size: A last chunk of fewer tokens is joined to the one before it.
        unit: `tokens`: the estimate of `locus_memory.estimate_tokens`; `words`: words between
            spaces, which suits no language without spaces.

    Raises:
        ConfigurationError: A size that is not a whole number, `chunk_size` below 1, an overlap
            that is negative or not smaller than `chunk_size`, a negative `min_chunk_size`, or an
            unknown unit.
    """

    chunk_size: int = 512
    chunk_overlap: int = 64
    min_chunk_size: int = 50
    unit: Literal["tokens", "words"] = "tokens"

    def __post_init__(self) -> None:
        check_fields(self)
        least = {"chunk_size": 1, "chunk_overlap": 0, "min_chunk_size": 0}
        check_ranges("ChunkConfig", self, least, one_of={"unit": ("tokens", "words")})
        if self.chunk_overlap >= self.chunk_size:
            raise ConfigurationError(
                f"ChunkConfig: chunk_overlap is below chunk_size ({self.chunk_size}), not"
                f" {quote(self.chunk_overlap)}"
            )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document.

    Attributes:
        content: The piece, as it is in the document: `text[start:end] == content`.
        source: The name of the document.
        offset: The tokens before it in the document, in the unit of the `ChunkConfig`.
        index: Its place among the chunks of the document, from 0.
        metadata: `start` and `end`, in characters; `line` and `end_line`, from 1; in Markdown
            `heading`, the path of headings it stands under, such as `Guide > Install`.
    """

    content: str
    source: str = ""
    offset: int = 0
    index: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text that is searched: the path of headings, and the content."""
        heading = self.metadata.get("heading")
        return f"{heading}\n{self.content}" if heading else self.content


@dataclass(slots=True)
class Blocks:
    """The blocks of a text.

    Attributes:
        levels: The starts of blocks; at those of the first level a cut is best.
        sections: The starts of sections, at which a chunk ends if it is not too small.
        whole: The starts and ends of tables and fenced code, which are cut only if they are longer
            than a chunk.
        headings: The start of each section, and the path of headings it stands under.
        by_lines: Whether a long block is cut at lines, not at sentences.
    """

    levels: tuple[list[int], ...]
    sections: list[int] = field(default_factory=list[int])
    whole: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    headings: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    by_lines: bool = False
