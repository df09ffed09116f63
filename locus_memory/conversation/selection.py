"""The choice of the newest groups of a conversation that fit; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from locus_memory.conversation.groups import Group

__all__ = ["Size", "from_user", "newest_fitting", "newest_run"]


class Size(NamedTuple):
    """A number of messages and of tokens; infinity means no limit."""

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


def newest_fitting(
    groups: Sequence[Group], size_of: Callable[[Group], Size], limit: Size
) -> tuple[list[Group], Size]:
    """Choose the newest groups that fit, without a gap.

    The newest group is always kept, even where it exceeds the limit. If the kept groups hold no
    user message, the latest one before them is kept as well, and older groups are dropped for it.

    Args:
        groups: The groups, oldest first.
        size_of: Returns the size of a group; called for the newest groups only.
        limit: The limit of their total size, which may be below zero.

    Returns:
        The groups, in order, and their total size.
    """
    if not groups:
        return [], Size(0, 0)
    first, size = newest_run(groups, size_of, limit)
    request = _request_before(groups, first)
    if request is None:
        return [*groups[first:]], size
    first, size = newest_run(groups, size_of, limit.minus(size_of(groups[request])))
    size = size.plus(size_of(groups[request]))
    return [groups[request], *groups[first:]], size


def from_user(groups: Sequence[Group]) -> list[Group]:
    """Return the groups without those before the first user message, except system messages.

    It returns all of them if there is no user message.
    """
    places = (place for place, group in enumerate(groups) if group.role == "user")
    first = next(places, 0)
    before = [group for group in groups[:first] if group.role == "system"]
    return [*before, *groups[first:]]


def newest_run(
    groups: Sequence[Group], size_of: Callable[[Group], Size], limit: Size
) -> tuple[int, Size]:
    """Return the index of the first of the newest groups that fit, at least one, and their size.

    Args:
        groups: The groups, oldest first; not empty.
        size_of: Returns the size of a group; called for the newest groups only.
        limit: The limit of their total size.
    """
    first = len(groups) - 1
    size = size_of(groups[first])
    while first > 0:
        larger = size.plus(size_of(groups[first - 1]))
        if larger.exceeds(limit):
            break
        first, size = first - 1, larger
    return first, size


def _request_before(groups: Sequence[Group], first: int) -> int | None:
    """Return the latest user message before `first`, unless one follows there."""
    if any(group.role == "user" for group in groups[first:]):
        return None
    places = (place for place in range(first - 1, -1, -1) if groups[place].role == "user")
    return next(places, None)
