"""Blocks: where a text may be cut best, by its kind; pure.

A block is a paragraph, a heading, a table, fenced code or a definition. The positions of blocks are
those of their first character that is not a space.
"""

from __future__ import annotations

import re
from typing import Final

from locus_memory.documents.chunking.config import Blocks, DocumentKind

__all__ = ["blocks_of"]

_BREAK: Final = re.compile(r"(?:\f|(?:\r\n|\r|\n)[^\S\r\n]*(?:\r\n|\r|\n))\s*")


def blocks_of(text: str, kind: DocumentKind) -> Blocks:
    """Return the blocks of a text; linear in its length."""
    if kind == "markdown":
        # Its parser takes longer to import than most texts to cut.
        from locus_memory.documents.chunking.markdown import markdown_blocks  # noqa: PLC0415

        return markdown_blocks(text)
    breaks = [found.end() for found in _BREAK.finditer(text)]
    if kind == "code":
        return Blocks(([each for each in breaks if _is_top(text, each)], breaks), by_lines=True)
    return Blocks((breaks,))


def _is_top(text: str, place: int) -> bool:
    """Return whether a line begins here that is not indented and does not close a block."""
    return text[place - 1] in "\r\n\f" and text[place : place + 1] not in {"", "]", ")", "}"}
