"""The origin of a fact, decided from the messages, not from a model's claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from locus_memory.conversation.roles import role_of
from locus_memory.memory.extraction.thread import text_of
from locus_memory.memory.models import QUOTED, Origin, own_words
from locus_memory.store.text import query_words, stem

__all__ = ["Speakers", "follows_tool"]


class Speakers:
    """The speakers of messages, and their words; it takes long where the texts are long.

    Args:
        messages: The messages, oldest first.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self._roles = [role_of(message) for message in messages]
        texts = [text_of(message) for message in messages]
        said = list(zip(self._roles, texts, strict=True))
        users = [text for role, text in said if role == "user"]
        self._of_tools = _words(text for role, text in said if role == "tool")
        self._quoted = _words(found[0] for text in users for found in QUOTED.finditer(text))
        # They are only compared with those.
        is_compared = bool(self._of_tools or self._quoted)
        self._of_user = _words(map(own_words, users if is_compared else ()))

    def origin(self, places: Sequence[int], content: str, key: str = "") -> Origin:
        """Return the origin of a fact.

        It is a tool if its sources include a message of a tool, or if they include no message of
        the user but an answer of the assistant to a tool. Whatever its sources are, it is a tool
        or a document if most of its words are in the tools' messages, or in texts that the user
        quotes, and in no own words of the user: a web page can tell a model which messages to
        name. So it is if a retirement has no sources, and its key no own words of the user. Else
        it is the assistant if all sources are the assistant's.

        Args:
            places: The source messages, as positions in the sequence.
            content: The fact; empty if one is retired.
            key: Its key.
        """
        named = [place for place in places if 0 <= place < len(self._roles)]
        roles = {self._roles[place] for place in named}
        if "tool" in roles or (
            "user" not in roles and any(follows_tool(self._roles, place) for place in named)
        ):
            return Origin.TOOL
        words, is_unnamed = _words([content or key]), not (named or content)
        for told, origin in ((self._of_tools, Origin.TOOL), (self._quoted, Origin.DOCUMENT)):
            foreign = words - self._of_user if told else set[str]()
            if len(foreign & told) * 2 > len(words) or (told and is_unnamed and foreign == words):
                return origin
        return Origin.ASSISTANT if roles == {"assistant"} else Origin.USER


def follows_tool(roles: Sequence[str], place: int) -> bool:
    """Return whether a message of a tool follows the last one of the user before a place."""
    since = takewhile(lambda role: role != "user", reversed(roles[:place]))
    return "tool" in since


def _words(texts: Iterable[str]) -> set[str]:
    whole = (text.encode("utf-8", "replace").decode() for text in texts)
    return {stem(word) for text in whole for word in query_words(text)}
