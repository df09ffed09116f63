"""The fence around recalled text, and the cap on its length; pure."""

from __future__ import annotations

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.roles import BLOCK_CLOSE, BLOCK_OPENING, STABLE_OPENING

__all__ = ["cap", "fence"]


def fence(text: str) -> str:
    """Return recalled text as one fenced block of data; empty if nothing is left of it.

    Each line is neutralised, see `neutralise`, so that no line closes the fence. Text that is such
    a block already is fenced once only.
    """
    _, body, _ = _parts(text)
    told = "".join(f"{line}\n" for each in body.splitlines() if (line := neutralise(each)))
    return f"{BLOCK_OPENING}{told}{BLOCK_CLOSE}" if told else ""


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
    room = max(0, characters - len(head) - len(tail))
    kept = body[: body.rfind("\n", 0, room) + 1]
    return f"{head}{kept}{tail}" if kept else ""


def _parts(block: str) -> tuple[str, str, str]:
    """Return the opening of a block, its lines and its closing line; text without a fence has none.

    Each of the lines ends with a line feed.
    """
    text = block.strip("\n")
    for opening in (BLOCK_OPENING, STABLE_OPENING):
        if text.startswith(opening) and text.endswith(BLOCK_CLOSE):
            return opening, text[len(opening) : -len(BLOCK_CLOSE)].strip("\n") + "\n", BLOCK_CLOSE
    return "", f"{text}\n", ""
