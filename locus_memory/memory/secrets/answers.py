"""Answers to requests for a secret: whatever their words are, they may be it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from locus_memory._internal.offload import aside
from locus_memory.memory.secrets.detection import asks_for_secret, find_secret

__all__ = ["WITHHELD", "answers_in", "asks_at_end", "secrets_in"]

WITHHELD: Final = "[an answer that is not shown]"
"""What an extractor is shown in place of such an answer."""

_TELLING: Final = 4
"""The characters from which a word with a digit gives an answer away."""

_Said = tuple[str, str]
"""The role and the text of a message."""


def answers_in(said: Iterable[_Said], *, asked: bool = False) -> list[bool]:
    """Return for each message whether it answers a request for a secret, or repeats an answer.

    The answers are the messages of the user after a request of the assistant, up to the
    assistant's next message.

    Args:
        said: The messages, oldest first.
        asked: Whether the assistant's last message before them is such a request.
    """
    found: list[bool] = []
    answers: set[str] = set()
    for role, text in said:
        folded = text.casefold().strip()
        if role == "user" and asked and folded:
            answers |= {folded, *filter(_is_telling, folded.split())}
        found.append(any(each in folded for each in answers))
        if role == "assistant" and folded:
            asked = asks_for_secret(text)
    return found


def _is_telling(word: str) -> bool:
    return len(word) >= _TELLING and any(map(str.isdigit, word))


def asks_at_end(said: Iterable[_Said], *, asked: bool = False) -> bool:
    """Return whether the assistant's last message requests a secret; without one, `asked`."""
    texts = [text for role, text in said if role == "assistant" and text.strip()]
    return asks_for_secret(texts[-1]) if texts else asked


async def secrets_in(said: Sequence[_Said], *, asked: bool = False) -> list[str | None]:
    """Return the kind of secret that each message may hold, see `find_secret`, or `"answer"`.

    Args:
        said: As for `answers_in`.
        asked: Likewise.
    """

    def search() -> list[str | None]:
        told = zip(said, answers_in(said, asked=asked), strict=True)
        return [find_secret(text) or ("answer" if hides else None) for (_, text), hides in told]

    return await aside(sum(len(text) for _, text in said), search)
