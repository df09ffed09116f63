"""A chat model that follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any

from locus_memory.chat.base import ToolSpec
from locus_memory.messages import Message

__all__ = ["Answer", "FakeModel", "ScriptEndedError"]

Answer = str | Message | BaseException | Callable[[list[Message]], Any]
"""A text, a whole message, an error to raise, or a function of the messages (sync or async)
that returns one of these."""


class ScriptEndedError(AssertionError):
    """The model was called more often than its script has answers."""


class FakeModel:
    """A scripted model with tools and streaming: each call returns the next answer.

    Attributes:
        name: The name of the model.
        calls: The messages of each call.
        tools: The tools of each call.
    """

    def __init__(self, answers: Iterable[Answer] = (), *, name: str = "fake") -> None:
        self.name = name
        self.calls: list[list[Message]] = []
        self.tools: list[tuple[ToolSpec, ...]] = []
        self._script = list(answers)

    @property
    def remaining(self) -> int:
        """The number of answers left."""
        return max(0, len(self._script) - len(self.calls))

    async def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> Message:
        """Return the next answer.

        Raises:
            ScriptEndedError: There is none.
        """
        self.calls.append(list(messages))
        self.tools.append(tuple(tools))
        asked = len(self.calls)
        if asked > len(self._script):
            raise ScriptEndedError(
                f"model {self.name!r} was called {asked} times,"
                f" but its script has {len(self._script)} answers"
            )
        return await self._play(self._script[asked - 1], self.calls[-1])

    async def stream(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | Message]:
        """Yield the text of the next answer word by word, then the whole message."""
        message = await self(messages, tools=tools)
        for word in _words(message.content or ""):
            yield word
        yield message

    async def _play(self, answer: Any, messages: list[Message]) -> Message:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return Message.assistant(answer)
        if isinstance(answer, Message):
            return answer
        made = answer(messages)
        return await self._play(await made if isawaitable(made) else made, messages)


def _words(text: str) -> list[str]:
    """Return the words, each with the space before it; joined, they are the text."""
    head, *rest = text.split(" ")
    return [piece for piece in (head, *(f" {word}" for word in rest)) if piece]
