"""Candidates: the memories that a session mentions; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.scope import current_key

__all__ = ["Mention", "Sifted", "sift"]


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
    """The changes of a session, and what they mention.

    Attributes:
        edits: The changes to write, in order.
        mentioned: The memories that the session mentions, by `current_key`.
    """

    edits: Sequence[Statement | Retirement]
    mentioned: Mapping[str, Mention]


def sift(edits: Sequence[Statement | Retirement], known: Mapping[str, str]) -> Sifted:
    """Return the changes, and the memories that they mention.

    Args:
        edits: The changes.
        known: The `current_key` of each memory that is the same as another one, with the other's.
    """
    mentioned: dict[str, Mention] = {}
    for edit in edits:
        if isinstance(edit, Statement):
            name = current_key(edit.type, edit.key)
            shown = known.get(name, name)
            mention = Mention(importance_of(edit.memory), _messages_of(edit))
            mentioned[shown] = mention.joined(mentioned.get(shown))
    return Sifted(edits, mentioned)
