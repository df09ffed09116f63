"""Blocks: where a text may be cut best, by its kind; pure.

A block is a paragraph, a heading, a table, fenced code or a definition. The positions of blocks are
those of their first character that is not a space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from locus_memory.documents.chunking.config import DocumentKind

__all__ = ["Blocks", "blocks_of"]

_END: Final = r"(?:\r\n|\r|\n)"
_BREAK: Final = re.compile(rf"(?:\f|{_END}[^\S\r\n]*{_END})\s*")
_LINE: Final = re.compile(rf"[^\r\n]*(?:{_END}|\Z)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_DIVIDER: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$")

_LONGEST_TITLE: Final = 200
"""The characters of a heading that are kept in a path."""


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


def blocks_of(text: str, kind: DocumentKind) -> Blocks:
    """Return the blocks of a text; linear in its length."""
    if kind == "markdown":
        return _Markdown().read(text)
    breaks = [found.end() for found in _BREAK.finditer(text)]
    if kind == "code":
        return Blocks(([each for each in breaks if _is_top(text, each)], breaks), by_lines=True)
    return Blocks((breaks,))


def _is_top(text: str, place: int) -> bool:
    """Return whether a line begins here that is not indented and does not close a block."""
    return text[place - 1] in "\r\n\f" and text[place : place + 1] not in {"", "]", ")", "}"}


class _Markdown:
    """A reader of the lines of Markdown: https://spec.commonmark.org/0.31.2/#leaf-blocks."""

    def __init__(self) -> None:
        self.blocks = Blocks(([],))
        self._titles: list[tuple[int, str]] = []
        self._after_heading = False
        # The block that is open: its start, its lines, whether a second line makes it a table.
        self._start = -1
        self._lines: list[str] = []
        self._is_table = False
        self._fence = ""

    def read(self, text: str) -> Blocks:
        """Return the blocks of a text."""
        end = 0
        for start, line in _lines(text):
            end = start + len(line)
            if self._fence:
                self._read_fenced(line, end)
            else:
                self._read_line(start, line)
        self._close(end)
        return self.blocks

    def _read_fenced(self, line: str, end: int) -> None:
        closing = line.strip()
        fence = self._fence
        if len(closing) >= len(fence) and closing == fence[0] * len(closing):
            self._is_table = False
            self.blocks.whole.append((self._start, end))
            self._fence, self._start = "", -1

    def _read_line(self, start: int, line: str) -> None:
        if not line.strip():
            self._close(start)
            return
        first = start + len(line) - len(line.lstrip())
        if line.lstrip()[0] in "#`~=-" and self._read_marked(start, first, line):
            return
        if self._start < 0:
            self._open(first)
        elif len(self._lines) == 1 and "|" in self._lines[0] and _DIVIDER.match(line):
            self._is_table = True
        self._lines.append(line)

    def _read_marked(self, start: int, first: int, line: str) -> bool:
        """Return whether a line is a heading, the line under one, or the begin of a fence."""
        if fence := _FENCE.match(line):
            self._close(start)
            self._open(first)
            self._fence = fence[1]
            return True
        if heading := _HEADING.match(line):
            self._close(start)
            self._head(first, len(heading[1]), heading[2] or "")
            return True
        underline = _UNDERLINE.match(line)
        if underline and len(self._lines) == 1 and "|" not in self._lines[0]:
            title, first = self._lines[0], self._start
            self._drop()
            self._head(first, 1 if underline[1][0] == "=" else 2, title)
            return True
        return False

    def _open(self, first: int) -> None:
        self._start = first
        if not self._after_heading:
            self.blocks.levels[0].append(first)
        self._after_heading = False

    def _drop(self) -> None:
        """Forget the open block, which is a heading."""
        if self.blocks.levels[0][-1:] == [self._start]:
            self.blocks.levels[0].pop()
        else:
            self._after_heading = True
        self._start, self._lines = -1, []

    def _close(self, end: int) -> None:
        if self._start >= 0 and (self._is_table or self._fence):
            self.blocks.whole.append((self._start, end))
        self._start, self._lines, self._is_table, self._fence = -1, [], False, ""

    def _head(self, first: int, level: int, title: str) -> None:
        while self._titles and self._titles[-1][0] >= level:
            self._titles.pop()
        self._titles.append((level, " ".join(title.split())[:_LONGEST_TITLE]))
        path = " > ".join(each for _, each in self._titles if each)
        if self._after_heading:
            # A chunk that begins with several headings is about the last of them.
            start = self.blocks.headings.pop()[0] if self.blocks.headings else first
            self.blocks.headings.append((start, path))
            return
        self.blocks.levels[0].append(first)
        self.blocks.sections.append(first)
        self.blocks.headings.append((first, path))
        self._after_heading = True


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for found in _LINE.findall(text):
        if found:
            yield start, found
            start += len(found)
