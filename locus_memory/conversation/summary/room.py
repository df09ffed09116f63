"""The limits of a summary's length, and summaries without a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from locus_memory.conversation.roles import role_of
from locus_memory.conversation.summary.text import (
    MAX_LENGTH,
    fenced,
    root_of_summary,
    summary_message,
    text_of_summary,
)
from locus_memory.conversation.tokens import TokenCounter, message_tokens

__all__ = ["SummaryRoom"]

_EXTRACT_LENGTH = 4_000
_LINE_LENGTH = 200


class SummaryRoom:
    """The limits of a summary message.

    Args:
        max_tokens: The limit of tokens, with the fence; `None`: only characters are limited.
        count: Counts the tokens of a text.
    """

    def __init__(self, max_tokens: int | None, count: TokenCounter) -> None:
        self._limit = math.inf if max_tokens is None else max_tokens
        self._count: TokenCounter = count if max_tokens is not None else lambda _: 0

    def fitted(self, message: Any) -> Any | None:
        """Return a summary message, its text cut at the end until the message fits.

        It returns `None` if the fence leaves no room for text.
        """
        size, fence = message_tokens(message, self._count), self._size("")
        if size <= self._limit:
            return message
        text = text_of_summary(message)
        while text and size > self._limit > fence:
            share = (self._limit - fence) / (size - fence)
            text = text[: min(len(text) - 1, int(len(text) * share))].rstrip()
            size = self._size(text)
        if not text or size > self._limit:
            return None
        return summary_message(message, text, root_of_summary(message))

    def extract(self, previous: str, messages: Sequence[Any]) -> str:
        """Return the beginnings of the newest messages, one line per message.

        Args:
            previous: The result for the earlier messages, or `""`.
            messages: The messages since.
        """
        lines = [*previous.splitlines(), *map(_line, messages)]
        return "\n".join(self._newest([], lines, _EXTRACT_LENGTH))

    def stand_in(self, good: str, messages: Sequence[Any]) -> str:
        """Return the whole last good summary, and the later messages that fit.

        Args:
            good: The summary, or `""`.
            messages: The messages since.
        """
        length = min(_EXTRACT_LENGTH, MAX_LENGTH - len(good))
        kept = [good] if good else []
        return "\n".join([*kept, *self._newest(kept, [*map(_line, messages)], length)])

    def _newest(self, kept: list[str], lines: Sequence[str], length: int) -> Sequence[str]:
        """Return the newest lines that fit after the lines that are always kept."""
        first = len(lines)
        tokens = self._tokens_beside(kept)
        while first and length > len(lines[first - 1]) and tokens >= 0:
            first -= 1
            length -= len(lines[first]) + 1
            tokens -= self._count(f"{lines[first]}\n")
        # The tokens of the parts need not add up to those of the whole text.
        while first < len(lines) and self._tokens_beside([*kept, *lines[first:]]) < 0:
            first += 1
        return lines[first:]

    def _tokens_beside(self, lines: list[str]) -> float:
        """Return how many tokens remain beside these lines; below zero if they do not fit."""
        return self._limit - self._size("\n".join(lines))

    def _size(self, text: str) -> int:
        return message_tokens(SimpleNamespace(content=fenced(text)), self._count)


def _line(message: Any) -> str:
    said = " ".join(str(message.content or "").split())
    if len(said) > _LINE_LENGTH:
        said = f"{said[: _LINE_LENGTH - 1]}\u2026"
    role = role_of(message)
    if message.tool_calls and role == "assistant":
        called = ", ".join(str(call.name) for call in message.tool_calls)
        said = f"{said} [calls {called}]".strip()
    return f"{role}: {said}"
