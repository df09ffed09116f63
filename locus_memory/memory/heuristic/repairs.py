"""Sentences whose speaker replaces some of the words at once: "I live in Graz, no wait, in Linz".

The words before the repair are not meant. What is not understood after it leaves nothing to keep.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["repaired"]

_REPAIR: Final = re.compile(
    r"(?i)(?P<before>.+?)(?:[,;]| -| \u2013| \u2014|\.{3}|\u2026) ?"
    r"(?:(?P<surely>(?:no,? wait|wait,? no|(?:no|oops),? sorry|scratch that|make that|or rather"
    r"|(?:sorry,? |no,? )?I meant|oops)\b[,:.]?|(?:no|wait)[,:])|(?:sorry|wait|I mean)\b[,:]?)"
    r" (?P<after>[^,;]+?)[\s.!]*"
)
_MORE_WORDS: Final = 4
"""A repair has no more words than these; more of them are a sentence."""

_HEAD: Final = re.compile(
    r"(?i)(?:'m|'s|'re|\b(?:am|is|are|was|me|have|has|own|speak|play|use|drink|eat|like|love|hate"
    r"|prefer|called|named|in|at|on|near|as|to|for|from|of))(?= )"
)
_SURELY: Final = re.compile(r"(?i)(?:really|seriously|honestly|truly|just kidding|not)\b")
_CLAUSE: Final = re.compile(r"(?i)(?:I|I'm|I've|my|we|we're|our)\b")
_THING: Final = re.compile(r"[^\W\d_a-z]|\d")


def repaired(text: str) -> str | None:
    """Return a sentence with its repaired words; as it is, if it has no repair.

    Returns:
        The sentence; `None` if it takes back something and says nothing instead that is understood.
    """
    found = _REPAIR.fullmatch(text)
    if found is None or _CLAUSE.match(found["after"]):
        return text
    before, after = found["before"], found["after"]
    if _SURELY.match(after):
        return before
    heads = list(_HEAD.finditer(before))
    head = heads[-1] if heads else None
    is_same = head is not None and after.casefold().startswith(f"{head[0].casefold()} ")
    if not (found["surely"] or is_same or _THING.match(after)):
        return text
    if head is None or len(after.split()) > _MORE_WORDS:
        return None
    return _joined(before, head, after)


def _joined(before: str, head: re.Match[str], after: str) -> str:
    """Return the words until the head, which stays unless the repair has one of its own."""
    end = head.start() if _HEAD.match(after) else head.end()
    return f"{before[:end].rstrip()} {after}"
