"""The difference of two checkpoints, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from starlette.responses import Response

from locus_memory.web.pages.frame.filters import as_json
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.frame.wording import Piece, compare_words
from locus_memory.web.pages.threads.messages import MessageView, view_message
from locus_memory.web.questions.threads import (
    DifferenceAsked,
    NumberedMessage,
    diff_checkpoints,
)

__all__ = ["MessagePair", "show"]

_RELATED: Final = 0.3
"""The share of two texts that they have in common; below, marks hide more than they show."""


@dataclass(frozen=True, slots=True)
class MessagePair:
    """Two messages beside each other.

    Attributes:
        left: The message of the first side; `None`: there is none.
        right: The message of the second side; `None`: there is none.
        pieces: The words of both.
    """

    left: MessageView | None
    right: MessageView | None
    pieces: list[Piece]


async def show(visit: Visit) -> Response:
    """Return the difference of two checkpoints, of one thread or of two."""
    found = await diff_checkpoints(visit.data, visit.asked(DifferenceAsked))
    changes = [
        (each, _related(*map(_written, (each.before, each.after)))) for each in found.changes
    ]
    return visit.render(
        "threads/diff.html",
        found=found,
        runs=[
            [_row(*pair) for pair in zip_longest(each.removed, each.added)]
            for each in found.messages.edits
        ],
        changes=changes,
    )


def _row(left: NumberedMessage | None, right: NumberedMessage | None) -> MessagePair:
    one, other = (
        None if each is None else view_message(each.place, each.message) for each in (left, right)
    )
    return MessagePair(one, other, _related(one.text if one else "", other.text if other else ""))


def _related(old: str, new: str) -> list[Piece]:
    """Return two texts in pieces; those that have nearly nothing in common share no piece."""
    pieces = compare_words(old, new)
    same = sum(len(piece.text) for piece in pieces if piece.kind == "same")
    if 2 * same < _RELATED * (len(old) + len(new)):
        return [Piece("removed", old), Piece("added", new)]
    return pieces


def _written(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)
