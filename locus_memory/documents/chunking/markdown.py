"""The blocks of Markdown: CommonMark with the tables of GitHub, read by `markdown-it-py`; pure."""

from __future__ import annotations

import re
from typing import Final, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from typing_extensions import override

from locus_memory.documents.chunking.config import Blocks

__all__ = ["markdown_blocks"]

_END: Final = re.compile(r"\r\n?|\n")
_SPACES: Final = re.compile(r"[ \t]*")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(?![ \t]*\n)(?:.*\n)*?(?:---|\.\.\.)[ \t]*\n")

_WHOLE: Final = frozenset(["table_open", "fence", "code_block"])
_BEGINS: Final = _WHOLE | {
    *("heading_open", "paragraph_open", "html_block", "hr"),
    *("blockquote_open", "bullet_list_open", "ordered_list_open", "list_item_open"),
}

_LONGEST_TITLE: Final = 200
"""The characters of a heading that are kept in a path."""

_PARSER: Final = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable("reference")
"""Only its block rules run; the definition of a link counts as text."""


class _State(StateBlock):
    """Keeps a token only where a block begins: those of cells are much larger than a table."""

    @override
    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        last = self.tokens[-1].type if self.tokens else ""
        token = super().push(ttype, tag, nesting)
        if ttype not in _BEGINS and not (ttype == "inline" and last == "heading_open"):
            self.tokens.pop()
        return token


def markdown_blocks(text: str) -> Blocks:
    """Return the blocks of a text; linear in its length.

    Front matter of YAML is a block of its own. A heading in a list or a quote begins no section.
    """
    source = _END.sub("\n", text) + "\n"
    front = _FRONT_MATTER.match(source)
    first = source.count("\n", 0, front.end()) if front else 0
    state = _State(source, _PARSER, {}, [])
    _PARSER.block.tokenize(state, first, state.lineMax)
    reading = _Reading(text)
    if front:
        reading.blocks.whole.append((0, reading.starts[first]))
    for token, after in zip(state.tokens, [*state.tokens[1:], None], strict=False):
        if token.type != "heading_open" or token.level > 0 or after is None:
            reading.block(token)
        else:
            reading.head(token, after.content)
    return reading.blocks


class _Reading:
    """Makes blocks of tokens.

    Attributes:
        blocks: The blocks; those of the second level are also those in lists and quotes.
        starts: The start of each line.
    """

    def __init__(self, text: str) -> None:
        self.blocks = Blocks(([], []))
        self.starts = [0, *(found.end() for found in _END.finditer(text)), len(text)]
        self._text = text
        self._titles: list[tuple[int, str]] = []
        self._after_heading = False
        self._line = -1

    def block(self, token: Token) -> None:
        """Add a block, unless another one begins in its line."""
        if token.map is None or token.type == "inline":
            return
        line, end = token.map
        if token.type in _WHOLE:
            self.blocks.whole.append((self._place(line), self.starts[end]))
        if line > self._line and not self._after_heading:
            self._add(line, token.level)
        self._line, self._after_heading = line, False

    def head(self, token: Token, title: str) -> None:
        """Add a heading, which begins a section."""
        [line, _] = token.map or [0, 0]
        level = int(token.tag[1:])
        while self._titles and self._titles[-1][0] >= level:
            self._titles.pop()
        self._titles.append((level, " ".join(title.split())[:_LONGEST_TITLE]))
        start = self._place(line)
        if self._after_heading:
            # A chunk that begins with several headings is about the last of them.
            start, _ = self.blocks.headings.pop()
        else:
            self._add(line, 0)
            self.blocks.sections.append(start)
        path = " > ".join(each for _, each in self._titles if each)
        self.blocks.headings.append((start, path))
        self._after_heading = True

    def _add(self, line: int, level: int) -> None:
        for each in self.blocks.levels[min(level, 1) :]:
            each.append(self._place(line))

    def _place(self, line: int) -> int:
        """Return the first character of a line that is not a space."""
        spaces = _SPACES.match(self._text, self.starts[line])
        return spaces.end() if spaces else self.starts[line]
