"""The sliding window: the newest messages, in whole groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.conversation.base import ConversationManager, sound_groups
from locus_memory.conversation.cache import MessageCache
from locus_memory.conversation.groups import Group
from locus_memory.conversation.selection import Size, from_user, newest_fitting
from locus_memory.conversation.tokens import as_token_counter, message_tokens
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit

__all__ = ["SlidingWindowManager", "check_positive", "token_cache", "windowed"]


class SlidingWindowManager(ConversationManager):
    """The newest messages, as many as fit.

    An assistant's tool calls and their results are kept or dropped together. The newest group is
    kept even if it alone is too large (event `conversation.oversized`). The latest user message is
    kept even if many tool calls follow it. When messages are dropped, the event
    `conversation.trimmed` reports how many.

    Args:
        window_size: The number of messages to keep, without system messages; `None`: no limit, if
            `max_tokens` is given.
        preserve_system: Keep all system messages, in place; otherwise they are treated like other
            messages. Blocks of memories always stay.
        max_tokens: The limit of tokens for all returned messages; `None`: no limit.
        token_counter: Counts the tokens; see `as_token_counter`.
        start_on_user: Whether the first message after the system messages must be a user message,
            as some providers require: earlier messages are dropped. A conversation without a user
            message is not changed.

    Attributes:
        window_size: As given.
        preserve_system: As given.
        max_tokens: As given.

    Raises:
        InvalidArgumentError: A size that is not positive, or no size at all.
    """

    def __init__(
        self,
        window_size: int | None = 20,
        preserve_system: bool = True,  # noqa: FBT001, FBT002 - the signature users know
        *,
        max_tokens: int | None = None,
        token_counter: object | None = None,
        start_on_user: bool = False,
    ) -> None:
        if window_size is None and max_tokens is None:
            raise InvalidArgumentError("a window needs a window_size or max_tokens")
        self.window_size = check_positive("window_size", window_size)
        self.max_tokens = check_positive("max_tokens", max_tokens)
        self.preserve_system = preserve_system
        self._tokens = token_cache(max_tokens, token_counter)
        self.start_on_user = start_on_user

    @override
    def apply(self, messages: Sequence[Any]) -> list[Any]:
        pinned: list[Group] = []
        others: list[Group] = []
        for group in sound_groups(messages):
            stays = group.stays(preserve_system=self.preserve_system)
            (pinned if stays else others).append(group)
        limit = Size(self.window_size or math.inf, self.max_tokens or math.inf)
        return windowed(pinned, others, limit, self._tokens, start_on_user=self.start_on_user)

    @override
    def _settings(self) -> dict[str, Any]:
        return {
            "window_size": self.window_size,
            "preserve_system": self.preserve_system,
            "max_tokens": self.max_tokens,
            **({"start_on_user": True} if self.start_on_user else {}),
        }


def windowed(
    pinned: Sequence[Group],
    others: Sequence[Group],
    limit: Size,
    tokens: MessageCache[int] | None,
    *,
    start_on_user: bool = False,
) -> list[Any]:
    """Return all pinned groups and the newest others that fit, in the conversation's order.

    Args:
        pinned: The groups that are always kept; they count for tokens only.
        others: The groups that have to fit.
        limit: The limits of other messages and of all tokens.
        tokens: Counts the tokens of messages; `None` without a limit of tokens.
        start_on_user: Whether to drop the messages before the first user message.
    """

    def size_of(group: Group) -> Size:
        counted = 0 if tokens is None else sum(map(tokens.value, group.messages))
        return Size(len(group.messages), counted)

    taken = Size(0, sum(size_of(group).tokens for group in pinned))
    kept, size = newest_fitting(others, size_of, limit.minus(taken))
    if size.plus(taken).exceeds(limit):
        _tell_oversized(size.plus(taken), limit)
    kept = from_user(kept) if start_on_user else kept
    if len(kept) < len(others):
        _tell_trimmed(kept, others)
    shown = sorted([*pinned, *kept], key=lambda group: group.start)
    return [message for group in shown for message in group.messages]


def _tell_oversized(size: Size, limit: Size) -> None:
    limits = {"window_size": limit.messages, "max_tokens": limit.tokens}
    known: dict[str, Any] = {key: value for key, value in limits.items() if value < math.inf}
    emit("conversation.oversized", messages=size.messages, tokens=size.tokens, **known)


def _tell_trimmed(kept: Sequence[Group], others: Sequence[Group]) -> None:
    count = sum(len(group.messages) for group in kept)
    total = sum(len(group.messages) for group in others)
    emit("conversation.trimmed", dropped=total - count, kept=count)


def token_cache(max_tokens: int | None, counter: object | None) -> MessageCache[int] | None:
    """Return a cache that counts the tokens of each message once; `None` without a token limit.

    Raises:
        InvalidArgumentError: It is not a token counter.
    """
    count = partial(message_tokens, counter=as_token_counter(counter))
    return None if max_tokens is None else MessageCache(count)


def check_positive(name: str, value: int | None, *, needed: bool = False) -> int | None:
    """Return the value of an argument that must be a positive number, or `None` if not needed.

    Raises:
        InvalidArgumentError: It is neither.
    """
    if (value is not None or needed) and (type(value) is not int or value < 1):
        raise InvalidArgumentError(f"{name} is a positive number, not {quote(value)}")
    return value
