"""The sentences of a conversation that are its user's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from locus_memory.conversation.roles import is_memory_block, role_of
from locus_memory.memory.heuristic.clauses import Sentence, sentences
from locus_memory.memory.heuristic.confirming import confirmed
from locus_memory.memory.heuristic.material import begins_play, ends_play
from locus_memory.memory.secrets.detection import asks_for_secret, find_secret, mentions_secret

__all__ = ["answer_before", "heard", "is_joke", "is_secret", "text_of"]

# How much of the end of an answer is searched for a question or an order.
_LAST_WORDS: Final = 2000
_LAST_SENTENCE: Final = 200


def heard(messages: Sequence[Any]) -> Iterator[list[Sentence]]:
    """Yield the user's sentences of each message, with what they confirm; of others, none.

    Answers to questions for a secret are left out, and what is said in a game of roles.
    """
    asked = plays = False
    for place, message in enumerate(messages):
        role, content = role_of(message), text_of(message)
        told: list[Sentence] = []
        if role == "user" and not is_memory_block(message) and not asked:
            ends = ends_play(content)
            begins = not ends and begins_play(content)
            plays = begins or (plays and not ends)
            if begins or not plays:
                told = _of_message(messages, place)
        asked = role == "assistant" and _asks_for_secret(content)
        yield told


def text_of(message: Any) -> str:
    """Return the text of a message, empty if it has none."""
    return message.content if isinstance(message.content, str) else ""


def answer_before(messages: Sequence[Any], place: int) -> str | None:
    """Return the text of the assistant's message just before a position, if there is one."""
    before = messages[place - 1] if place else None
    if before is None or role_of(before) != "assistant" or is_memory_block(before):
        return None
    return text_of(before)


def is_joke(said: Sequence[Sentence], place: int) -> bool:
    """Return whether the next sentence of the message takes this one back."""
    rest = said[place + 1 : place + 2]
    return any(after.takes_back and after.message == said[place].message for after in rest)


def is_secret(said: Sequence[Sentence], place: int) -> bool:
    """Return whether a sentence holds a secret, or is beside one that mentions secrets.

    A password may look like any word, and the next sentence may name it.
    """
    near = [sentence.text for sentence in said[max(0, place - 1) : place + 2]]
    return (
        find_secret(said[place].text) is not None
        or any(map(mentions_secret, near))
        or any(
            find_secret("\n".join(pair)) and not any(map(find_secret, pair))
            for pair in pairwise(near)
        )
    )


def _of_message(messages: Sequence[Any], place: int) -> list[Sentence]:
    """Return the sentences of a user's message, with what it confirms of the one before."""
    answer = answer_before(messages, place)
    told = list(sentences(text_of(messages[place]), place, reply=answer is not None))
    return told if answer is None else told + confirmed(told, answer, place - 1)


def _asks_for_secret(content: str) -> bool:
    """Return whether an answer ends with a question for a secret, or an order to give one."""
    return asks_for_secret(content[-_LAST_WORDS:]) or mentions_secret(content[-_LAST_SENTENCE:])
