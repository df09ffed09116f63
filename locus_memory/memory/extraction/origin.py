"""The origin of a fact: user or tool, decided from the messages, not from a model's claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, Final

from locus_memory._internal.offload import in_thread
from locus_memory.conversation.roles import role_of
from locus_memory.memory.extraction.thread import text_of
from locus_memory.store.text import query_words, stem

__all__ = ["Speakers"]

# In a text of more characters, finding the words takes more than a few milliseconds.
_LARGE: Final = 20_000


class Speakers:
    """The messages and their speakers.

    Args:
        messages: The messages, oldest first.
    """

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = messages
        self._roles = [role_of(message) for message in messages]

    async def read(self) -> None:
        """Find the words of all messages beforehand; of long texts, in a worker thread."""
        if "tool" not in self._roles:
            return
        if sum(len(text_of(message)) for message in self._messages) < _LARGE:
            self._find_words()
        else:
            await in_thread(self._find_words)

    def is_of_tool(self, places: Sequence[int], content: str) -> bool:
        """Return whether a fact comes from a tool's output.

        It does if its sources include a message of a tool, or if they include no message of the
        user but an answer of the assistant to a tool. Whatever its sources are, it does if most
        of its words are in the tools' messages and in no message of the user: a web page can tell
        a model which messages to name.

        Args:
            places: The source messages, as positions in the sequence.
            content: The fact; empty if there is none.
        """
        if "tool" not in self._roles:
            return False
        named = [place for place in places if 0 <= place < len(self._roles)]
        roles = {self._roles[place] for place in named}
        if "tool" in roles:
            return True
        if named and "user" not in roles:
            return any(map(self._answers_tool, named))
        words = _words([content])
        return len((words - self._of_user) & self._of_tools) * 2 > len(words)

    def _answers_tool(self, place: int) -> bool:
        """Return whether a message of a tool follows the last one of the user."""
        since = takewhile(lambda role: role != "user", reversed(self._roles[:place]))
        return "tool" in since

    def _find_words(self) -> None:
        _ = self._of_user, self._of_tools

    @cached_property
    def _of_user(self) -> set[str]:
        return self._words_of("user")

    @cached_property
    def _of_tools(self) -> set[str]:
        return self._words_of("tool")

    def _words_of(self, role: str) -> set[str]:
        said = zip(self._messages, self._roles, strict=True)
        return _words(text_of(message) for message, its in said if its == role)


def _words(texts: Iterable[str]) -> set[str]:
    whole = (text.encode("utf-8", "replace").decode() for text in texts)
    return {stem(word) for text in whole for word in query_words(text)}
