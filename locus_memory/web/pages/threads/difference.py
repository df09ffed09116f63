"""The difference of two checkpoints, side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from starlette.responses import Response

from locus_memory.web.pages.frame.filters import as_json
from locus_memory.web.pages.frame.visit import Visit
from locus_memory.web.pages.threads.messages import MessageView, view_message
from locus_memory.web.questions.threads import (
    DifferenceAsked,
    Edit,
    NumberedMessage,
    diff_checkpoints,
)

__all__ = ["Piece", "Row", "compare_words", "show"]

_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS: Final = 2_000
"""The longest text whose words are compared: the time grows with the square."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text, and whether the other side lacks it."""

    text: str
    is_changed: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Two messages beside each other.

    Attributes:
        left: The message of the first side; `None`: there is none.
        right: The message of the second side; `None`: there is none.
        left_text: The text of the left message in pieces.
        right_text: The text of the right message in pieces.
    """

    left: MessageView | None
    right: MessageView | None
    left_text: list[Piece]
    right_text: list[Piece]


async def show(visit: Visit) -> Response:
    """Return the difference of two checkpoints, of one thread or of two."""
    asked = visit.asked(DifferenceAsked)
    found = await diff_checkpoints(visit.data, asked)
    changes = [
        (each, *compare_words(_written(each.before), _written(each.after)))
        for each in found.changes
    ]
    return visit.render(
        "threads/diff.html",
        found=found,
        runs=[[_row(*pair) for pair in _pairs(each)] for each in found.messages.edits],
        changes=changes,
    )


def _pairs(edit: Edit) -> list[tuple[NumberedMessage | None, NumberedMessage | None]]:
    return list(zip_longest(edit.removed, edit.added))


def _row(left: NumberedMessage | None, right: NumberedMessage | None) -> Row:
    views = [
        None if each is None else view_message(each.place, each.message) for each in (left, right)
    ]
    texts = ["" if view is None else view.text for view in views]
    return Row(views[0], views[1], *compare_words(*texts))


def compare_words(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Return two texts in pieces, the words marked that the other one lacks.

    Texts that have nothing to do with each other, or that are long, come unmarked.
    """
    left, right = _WORDS.findall(old), _WORDS.findall(new)
    if not left or not right or max(len(left), len(right)) > _MOST_WORDS:
        return _plain(old), _plain(new)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < 0.3:  # noqa: PLR2004 - below, marks hide more than they show
        return _plain(old), _plain(new)
    old_pieces, new_pieces = list[Piece](), list[Piece]()
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if a < a_end:
            old_pieces.append(Piece("".join(left[a:a_end]), tag != "equal"))
        if b < b_end:
            new_pieces.append(Piece("".join(right[b:b_end]), tag != "equal"))
    return old_pieces, new_pieces


def _plain(text: str) -> list[Piece]:
    return [Piece(text, is_changed=False)] if text else []


def _written(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)
