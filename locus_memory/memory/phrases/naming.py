"""Names of sentences that a person or a model remembers without a key."""

from __future__ import annotations

import re
from typing import Any, Final

from locus_memory.memory.ledger.likeness import made_up_key
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message

__all__ = ["named_memory"]

_USERS: Final = re.compile(r"(?i)(?:the )?user's (?=\w)")
_USER: Final = re.compile(r"(?i)(?:the )?user (?P<verb>[a-z']+)\b")
_VERBS: Final = {
    "is": "am",
    "isn't": "am not",
    "has": "have",
    "does": "do",
    "doesn't": "don't",
    "studies": "study",
    **{f"{verb}s": verb for verb in ("live", "work", "prefer", "speak", "play", "eat", "come")},
}
"""The verbs of facts about the user, with their forms after "I"."""


async def named_memory(
    content: str,
    key: str | None = None,
    kind: MemoryType | str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Memory:
    """Return the memory of a sentence.

    A fact that the table of the `HeuristicExtractor` has, such as a home, gets its type and
    key, so it replaces the earlier one, whether it is told by the user or of "the user". Any other
    sentence is of the type `user` and gets a key of its own, see `made_up_key`.

    Args:
        content: The sentence.
        key: The key, in place of the table's.
        kind: The type, likewise.
        metadata: The metadata.

    Raises:
        InvalidArgumentError: The content or the key is empty, or the type is unknown.
    """
    changes = await HeuristicExtractor().extract([Message.user(_as_told(content))], [])
    found = changes[0] if len(changes) == 1 and changes[0].op != "delete" else None
    if kind is not None and found is not None and found.type != kind:
        found = None
    return Memory(
        MemoryType(kind or (found.type if found else MemoryType.USER)),
        (found.key if found else made_up_key(content)) if key is None else key,
        content.strip(),
        metadata or {},
    )


def _as_told(content: str) -> str:
    """Return a sentence about the user as the user says it: "The user is" is "I am"."""
    text = content.strip()
    if found := _USERS.match(text):
        return f"My {text[found.end() :]}"
    found = _USER.match(text)
    verb = _VERBS.get(found["verb"].lower()) if found else None
    return text if found is None or verb is None else f"I {verb}{text[found.end() :]}"
