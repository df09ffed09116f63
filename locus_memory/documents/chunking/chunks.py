"""Chunking: a text cut into pieces that fit a search and a prompt; pure.

Nothing of the text is lost but spaces between chunks, and the same text gives the same chunks. The
time is linear in the length of the text, whatever it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from locus_memory._internal.quoting import quote
from locus_memory.documents.chunking.atoms import CJK, atoms_of
from locus_memory.documents.chunking.blocks import blocks_of
from locus_memory.documents.chunking.config import Chunk, ChunkConfig, DocumentKind
from locus_memory.errors import InvalidArgumentError

__all__ = ["chunk_text"]

_DEFAULT: Final = ChunkConfig()
_SENTENCE: Final = re.compile(
    "(?<=[.!?\u2026])[\"'\u201d\u2019)\\]]*(?=\\s)|(?<=[\u3002\uff01\uff1f])"
)
_LINE: Final = re.compile(r"[\r\n](?!\n)")
_MARGIN: Final = re.compile(r"(?:\s*[\n\r\f])?")
_SPACES: Final = re.compile(r"\s*")
_IS_CJK: Final = re.compile(f"[{CJK}]")


def chunk_text(
    text: str,
    *,
    source: str = "",
    config: ChunkConfig | None = None,
    kind: DocumentKind = "text",
) -> list[Chunk]:
    """Cut a text into chunks.

    Blocks are put into a chunk while they fit: paragraphs, in Markdown also tables and fenced code,
    in code definitions. A block that is longer than a chunk is cut between sentences or lines, else
    words, else characters. A chunk begins with the end of the one before it, but never before a
    heading, and never inside a word. In Markdown, a chunk that is not too small ends before a
    heading.

    Args:
        text: The text; one without anything but spaces has no chunks.
        source: Its name, for `Chunk.source`.
        config: The sizes; `None` for the defaults.
        kind: Its shape: `text`, `markdown` or `code`.

    Raises:
        InvalidArgumentError: The text or the source is not a string, or an unknown kind.
    """
    if not all(isinstance(each, str) for each in (text, source)):
        raise InvalidArgumentError("a text and its source are strings")
    if kind not in get_args(DocumentKind):
        raise InvalidArgumentError(
            f"the kind of a text is 'text', 'markdown' or 'code', not {quote(kind)}"
        )
    return list(_Cutter(text, config or _DEFAULT, kind).chunks(source))


class _Cutter:
    """The cuts of one text; positions are numbers of atoms unless they are of characters."""

    def __init__(self, text: str, config: ChunkConfig, kind: DocumentKind) -> None:
        self._text = text
        self._config = config
        self._starts, self._weights = atoms_of(text, config)
        # The spaces at the end are no atoms.
        self._count = bisect_left(self._starts, len(text.rstrip()))
        blocks = blocks_of(text, kind)
        self._blocks = blocks
        self._levels = [self._atoms_at(each) for each in blocks.levels]
        self._sections = self._atoms_at(blocks.sections)
        self._whole = self._atoms_at([start for start, _ in blocks.whole])
        self._places = [start for start, _ in blocks.headings]
        self._least = min(config.min_chunk_size, config.chunk_size)

    def _atoms_at(self, places: Sequence[int]) -> list[int]:
        """Return the atoms that hold these characters, each once, in order."""
        found = (bisect_right(self._starts, each) - 1 for each in places)
        return list(dict.fromkeys(found))

    def chunks(self, source: str) -> Iterator[Chunk]:
        """Yield the chunks in order."""
        line, before = 1, 0
        for index, (start, end) in enumerate(self._cuts()):
            first, last = self._trimmed(start, end)
            line += self._text.count("\n", before, first)
            before = first
            content = self._text[first:last]
            places = {"start": first, "end": last, "line": line}
            metadata: dict[str, Any] = {**places, "end_line": line + content.count("\n")}
            if heading := self._heading(first, last):
                metadata["heading"] = heading
            yield Chunk(content, source, int(self._weights[start]), index, metadata)

    def _cuts(self) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each chunk that is not only spaces."""
        start = fresh = 0
        while fresh < self._count:
            end = self._end(start, fresh)
            if end <= fresh:
                start = fresh
                continue
            if self._text[self._starts[fresh] : self._starts[end]].isspace():
                start = fresh = end
                continue
            if self._weights[self._count] - self._weights[end] < self._least:
                # What is left is too small for a chunk of its own.
                end = self._count
            yield start, end
            start, fresh = self._overlap(start, end), end

    def _end(self, start: int, fresh: int) -> int:
        """Return the end of a chunk; not after `fresh` if its overlap leaves no room."""
        full = self._weights[start] + self._config.chunk_size
        limit = bisect_right(self._weights, full) - 1
        if limit <= fresh:
            return fresh if start < fresh else fresh + 1
        end = limit if limit >= self._count else self._best(start, fresh, limit)
        place = bisect_right(self._sections, fresh)
        while place < len(self._sections) and self._sections[place] < end:
            section = self._sections[place]
            if self._weights[section] - self._weights[start] >= self._least:
                return section
            place += 1
        return end

    def _best(self, start: int, fresh: int, limit: int) -> int:
        """Return the best place of a cut after `fresh` and at most at `limit`."""
        for level in self._levels:
            place = bisect_right(level, limit) - 1
            end = level[place] if place >= 0 else 0
            if end > fresh and (self._is_enough(start, end) or self._is_whole(end)):
                return end
        half = bisect_left(
            self._weights, (self._weights[start] + self._weights[limit]) / 2, fresh + 1, limit
        )
        by_lines = self._cuts_lines(limit)
        for pattern in (_LINE,) if by_lines else (_SENTENCE, _LINE):
            found = self._last(pattern, half, limit)
            if found is not None:
                return found
        for end in range(limit, half, -1):
            if self._begins_word(end):
                return end
        return limit

    def _is_enough(self, start: int, end: int) -> bool:
        return self._weights[end] - self._weights[start] >= self._least

    def _is_whole(self, start: int) -> bool:
        """Return whether a table or fenced code begins here that fits one chunk."""
        place = bisect_left(self._whole, start)
        if place == len(self._whole) or self._whole[place] != start:
            return False
        last = bisect_left(self._starts, self._blocks.whole[place][1])
        weight = self._weights[min(last, self._count)] - self._weights[start]
        return weight <= self._config.chunk_size

    def _cuts_lines(self, at: int) -> bool:
        if self._blocks.by_lines:
            return True
        place = bisect_right(self._whole, at) - 1
        return place >= 0 and self._starts[at] < self._blocks.whole[place][1]

    def _last(self, pattern: re.Pattern[str], first: int, limit: int) -> int | None:
        """Return the last atom in a range before which the pattern is found."""
        last = None
        # One character more is seen than may be cut, for a look ahead.
        end = self._starts[limit]
        for found in pattern.finditer(self._text, self._starts[first], end + 1):
            place = found.end() if pattern is _SENTENCE else found.start()
            if place <= end:
                last = place
        return None if last is None else max(bisect_right(self._starts, last) - 1, first)

    def _begins_word(self, at: int) -> bool:
        place = self._starts[at]
        if place >= len(self._text) or place == 0:
            return True
        both = self._text[place - 1 : place + 1]
        return both[0].isspace() or both[1].isspace() or _IS_CJK.search(both) is not None

    def _overlap(self, start: int, end: int) -> int:
        """Return the start of the chunk after the one from `start` to `end`."""
        place = bisect_left(self._sections, end)
        if self._sections[place : place + 1] == [end] or end == self._count:
            return end
        whole = self._weights[end] - self._weights[start]
        # A short chunk is not repeated whole.
        most = min(self._config.chunk_overlap, whole / 2)
        first = bisect_left(self._weights, self._weights[end] - most)
        by_lines = self._cuts_lines(min(end, self._count - 1))
        for at in range(first, end):
            if self._begins_line(at) if by_lines else self._begins_word(at):
                return at
        return end

    def _begins_line(self, at: int) -> bool:
        spaces = _SPACES.match(self._text, self._starts[at], self._starts[at + 1])
        return spaces is not None and "\n" in spaces[0]

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of a chunk, without blank lines and spaces around them."""
        first, last = self._starts[start], self._starts[end]
        last = first + len(self._text[first:last].rstrip())
        margin = _MARGIN.match(self._text, first, last)
        place = margin.end() if margin else first
        if place == first and first > 0 and (spaces := _SPACES.match(self._text, first, last)):
            place = spaces.end()
        return place, last

    def _heading(self, first: int, last: int) -> str:
        """Return the path of headings that the text from `first` on stands under."""
        spaces = _SPACES.match(self._text, first, last)
        place = bisect_right(self._places, spaces.end() if spaces else first) - 1
        return self._blocks.headings[place][1] if place >= 0 else ""
