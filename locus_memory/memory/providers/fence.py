"""The fence around recalled text, and the cap on its length; pure."""

from __future__ import annotations

from typing import Final

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.roles import BLOCK_CLOSE, BLOCK_OPENING, STABLE_OPENING

__all__ = ["cap", "fence"]

_EMPTY: Final = ""


def fence(text: str) -> str:
    """Return recalled text as one fenced block of data; empty if nothing is left of it.

    Each line is neutralised, see `neutralise`, so that no line closes the fence. Text that is such
    a block already is fenced once only.
    """
    head, body, _ = _parts(text)
    lines = [line for each in (body if head else text.splitlines()) if (line := neutralise(each))]
    return _whole(BLOCK_OPENING, lines, BLOCK_CLOSE) if lines else _EMPTY


def cap(block: str, characters: int) -> str:
    """Return a block of at most so many characters, cut at whole lines.

    The fence and its explanation stay whole; the last lines between them go first. If not even
    one line fits, the block is empty.

    Args:
        block: A fenced block, or any text, which then has no fence to keep.
        characters: The most characters, those of the fence included.
    """
    if len(block) <= characters:
        return block
    head, body, tail = _parts(block)
    left = characters - len(head) - len(tail)
    kept: list[str] = []
    for line in body:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return _whole(head, kept, tail) if kept else _EMPTY


def _parts(block: str) -> tuple[str, list[str], str]:
    """Return the opening of a block, its lines and its closing line; text without a fence has none.

    Only line feeds separate lines: any other line break is part of a line.
    """
    text = block.strip("\n")
    for opening in (BLOCK_OPENING, STABLE_OPENING):
        if text.startswith(opening) and text.endswith(BLOCK_CLOSE):
            body = text[len(opening) : -len(BLOCK_CLOSE)]
            return opening, body.strip("\n").split("\n"), BLOCK_CLOSE
    return "", text.split("\n"), ""


def _whole(head: str, lines: list[str], tail: str) -> str:
    return head + "".join(f"{line}\n" for line in lines) + tail
