"""Candidates: which facts of a session are known already, in other words; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import current_key
from locus_memory.store.text import query_words, stem

__all__ = ["Mention", "Sifted", "is_known_as", "sift"]

_ALIKE: Final = 0.8
"""The share of common words from which two facts say the same."""

_WORD: Final = re.compile(r"\w+(?:['\u2019]\w+)?")
_NEGATION: Final = re.compile(r"no|not|never|none|nor|without|cannot|\w+n['\u2019]t")


@dataclass(frozen=True, slots=True)
class Mention:
    """The statement of a memory in a session.

    Attributes:
        salience: The salience that the session gives it.
        messages: The ids of the messages that state it.
    """

    salience: float
    messages: tuple[str, ...] = ()

    def joined(self, other: Mention | None) -> Mention:
        """Return this mention together with another one of the same memory."""
        if other is None:
            return self
        messages = dict.fromkeys((*other.messages, *self.messages))
        return Mention(max(self.salience, other.salience), tuple(messages))


def _messages_of(statement: Statement) -> tuple[str, ...]:
    """Return the ids of the messages that a statement comes from."""
    ids: object = statement.memory.metadata.get("message_ids")
    return tuple(str(each) for each in ids) if isinstance(ids, list) else ()


@dataclass(frozen=True, slots=True)
class Sifted:
    """The changes of a session without the facts that are known already.

    Attributes:
        edits: The changes to write, in order.
        mentioned: The memories that the session mentions, by `current_key`.
        known: The keys of the facts that are not written, each with the known one's key.
    """

    edits: tuple[Statement | Retirement, ...]
    mentioned: Mapping[str, Mention]
    known: Mapping[str, str]


def sift(
    edits: Sequence[Statement | Retirement], current: Mapping[MemoryType, Iterable[Memory]]
) -> Sifted:
    """Return the changes without new facts that are known under another key.

    Args:
        edits: The changes.
        current: The current memories of each type of the changes.
    """
    changed = {(edit.type, edit.key) for edit in edits}
    # A memory that the same session changes is not what it was.
    kept = {
        kind: {each.key: each for each in memories if (kind, each.key) not in changed}
        for kind, memories in current.items()
    }
    keys = {(kind, each.key) for kind, memories in current.items() for each in memories}
    written: list[Statement | Retirement] = []
    mentioned: dict[str, Mention] = {}
    known: dict[str, str] = {}
    for edit in edits:
        if isinstance(edit, Retirement):
            written.append(edit)
            continue
        others = kept.setdefault(edit.type, {})
        name = None if (edit.type, edit.key) in keys else _known(edit.memory, others.values())
        if name is None:
            written.append(edit)
            others[edit.key] = edit.memory
        else:
            known[current_key(edit.type, edit.key)] = current_key(edit.type, name)
        mention = Mention(importance_of(edit.memory), _messages_of(edit))
        shown = current_key(edit.type, edit.key if name is None else name)
        mentioned[shown] = mention.joined(mentioned.get(shown))
    return Sifted(tuple(written), mentioned, known)


def _known(memory: Memory, others: Iterable[Memory]) -> str | None:
    found = (each.key for each in others if is_known_as(memory.content, each.content))
    return next(found, None)


def is_known_as(content: str, known: str) -> bool:
    """Return whether a known fact says what a new one says, in other words.

    At least 80% of the stemmed content words of both are common (their Jaccard similarity). A
    name, a number or a negation that only the new one has makes it another fact, and so does a
    negation that only the known one has: "likes tea" and "does not like tea" have the same
    content words.
    """
    new, old = _words(content), _words(known)
    if not new or len(new & old) < _ALIKE * len(new | old):
        return False
    return _negations(content) == _negations(known) and not (_telling(content) - old)


def _words(content: str) -> set[str]:
    return {stem(word) for word in query_words(content)}


def _negations(content: str) -> int:
    return sum(bool(_NEGATION.fullmatch(word.lower())) for word in _WORD.findall(content))


def _telling(content: str) -> set[str]:
    """Return the stems of numbers, and of names but the first word."""
    words = _WORD.findall(content)
    told = [
        word
        for place, word in enumerate(words)
        if any(map(str.isdigit, word)) or (place > 0 and word[0].isupper())
    ]
    return {stem(word) for each in told for word in query_words(each)}
