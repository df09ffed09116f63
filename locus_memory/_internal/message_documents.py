"""The JSON of a sequence of messages, computed again only for a message changed in place.

A message is frozen, but the mappings in it, its metadata and the arguments of its tool calls, are
not. So their contents are copied, and compared with the copy before the JSON is used again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

from locus_memory._internal.sameness import is_plain, same_types
from locus_memory.messages import Message, is_closed, written_of

__all__ = ["MessageDocuments"]


@dataclass(frozen=True, slots=True)
class MessageDocuments:
    """The JSON of a sequence of messages; it never changes, so it may be shared.

    Attributes:
        messages: The messages.
        documents: Their JSON, in the same order.
    """

    messages: tuple[Message, ...] = ()
    documents: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _empty: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _mappings: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _copies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _numbered: list[tuple[dict[str, Any], dict[str, Any]]] = field(
        default_factory=list[tuple[dict[str, Any], dict[str, Any]]]
    )
    _is_open: bool = False

    def extended(self, messages: Iterable[Message]) -> MessageDocuments:
        """Return the documents of a longer sequence."""
        added = tuple(messages)
        documents, empty = self.documents.copy(), self._empty.copy()
        mappings, copies = self._mappings.copy(), self._copies.copy()
        numbered, is_open = self._numbered.copy(), self._is_open
        for message in added:
            written = written_of(message)
            documents.append(written.document)
            # The fields that the caller's own class adds to a message may change as well.
            is_open = is_open or not is_closed(message)
            for mapping, copy in zip(written.mappings, written.copies, strict=True):
                if not copy:
                    empty.append(mapping)
                    continue
                mappings.append(mapping)
                copies.append(copy)
                if not is_plain(copy, in_list=True):
                    numbered.append((copy, mapping))
        row = (*self.messages, *added) if self.messages else added
        return MessageDocuments(row, documents, empty, mappings, copies, numbered, is_open)

    def current(self) -> MessageDocuments:
        """Return the documents of the current messages: these, unless a message was changed."""
        return self if self._is_true() else MessageDocuments().extended(self.messages)

    def _is_true(self) -> bool:
        # Nearly all mappings of a long thread are empty: `any` takes 4 ns for each.
        return not (
            self._is_open
            or any(self._empty)
            or self._copies != self._mappings
            or not all(starmap(same_types, self._numbered))
        )
