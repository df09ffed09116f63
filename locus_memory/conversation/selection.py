"""Choosing the newest groups of a conversation that fit; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from locus_memory.conversation.groups import Group

__all__ = ["Selection", "Size", "newest_fitting"]


class Size(NamedTuple):
    """A number of messages and of tokens; infinity as a limit means none."""

    messages: float
    tokens: float

    def plus(self, other: Size) -> Size:
        """Return the sum."""
        return Size(self.messages + other.messages, self.tokens + other.tokens)

    def minus(self, other: Size) -> Size:
        """Return the difference."""
        return Size(self.messages - other.messages, self.tokens - other.tokens)

    def exceeds(self, limit: Size) -> bool:
        """Whether either number is above its limit."""
        return self.messages > limit.messages or self.tokens > limit.tokens


class Selection(NamedTuple):
    """What is kept of a list of groups.

    Attributes:
        kept: The places of the kept groups, ascending.
        size: Their size together.
        oversized: Whether that exceeds the limit, since the newest group and the request it
            works on are always kept.
    """

    kept: list[int]
    size: Size
    oversized: bool


def newest_fitting(groups: Sequence[Group], sizes: Sequence[Size], limit: Size) -> Selection:
    """Choose the newest groups that fit, without a gap.

    The newest group is always kept. If there is no user message among them, the latest one
    before is kept as well, and older groups make room for it.

    Args:
        groups: The groups, oldest first.
        sizes: The size of each.
        limit: What they may come to.
    """
    if not groups:
        return Selection([], Size(0, 0), oversized=False)
    first, size = _newest(sizes, limit)
    request = _request_before(groups, first)
    if request is None:
        return Selection([*range(first, len(groups))], size, size.exceeds(limit))
    first, size = _newest(sizes, limit.minus(sizes[request]))
    size = size.plus(sizes[request])
    oversized = size.exceeds(Size(limit.messages + 1, limit.tokens))
    return Selection([request, *range(first, len(groups))], size, oversized)


def _newest(sizes: Sequence[Size], limit: Size) -> tuple[int, Size]:
    first = len(sizes) - 1
    size = sizes[first]
    while first > 0 and not size.plus(sizes[first - 1]).exceeds(limit):
        first -= 1
        size = size.plus(sizes[first])
    return first, size


def _request_before(groups: Sequence[Group], first: int) -> int | None:
    """Return the latest user message before `first`, unless there is one from there on."""
    if any(group.is_user for group in groups[first:]):
        return None
    places = (place for place in range(first - 1, -1, -1) if groups[place].is_user)
    return next(places, None)
