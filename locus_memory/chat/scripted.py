"""A model without an endpoint: a few rules, for demos, tests and first steps."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import takewhile
from typing import Any, Final

import orjson

from locus_memory.chat.base import ToolSpec
from locus_memory.conversation.roles import BLOCK_MARK, split_block
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.store.text import query_words, stem

__all__ = ["ScriptedModel"]

_GREETING: Final = re.compile(r"(hi|hello|hey|good (morning|day|evening))\b[^?]*", re.IGNORECASE)
_ABOUT_ME: Final = re.compile(r"(?mi)^(?>.*?\b(?:know|remember)\b).*\bme\b")
_ASKING: Final = re.compile(
    r"(who|what|which|where|when|why|how|do|does|did|is|are|am|can|tell me)\b", re.IGNORECASE
)
_REQUEST: Final = re.compile(r"(?:please )?use ([\w-]+)(?: with (.+?))?[.!]?", re.IGNORECASE)
_NEXT_REQUEST: Final = re.compile(r"(?:;|,? and) +(?=use )", re.IGNORECASE)
_ARGUMENT: Final = re.compile(r"(?s)(?<!\w)(\w+)=(.*?)(?=, *\w+=|\Z)")
_MEMORY: Final = re.compile(
    r"- (?:(?:user|feedback|project|reference|always|about the user|session)"
    r"(?: \((?:told by|imported|written)[a-z ]*\))?: )?(?:\((?:told by|imported)[a-z ]*\) )?"
    r"(.*?)(?: \[since [\d-]+\])?"
)


class ScriptedModel:
    """A chat model that follows fixed rules instead of a language model.

    - It first gives the answers of `script`, in order.
    - `use NAME with key=value, key=value` calls a given tool; a value is JSON or else text.
      Several calls are joined by ` and `: `use a with x=1 and use b`. The results of the tools
      become its answer.
    - "What do you know about me?" lists the memories in the prompt.
    - It answers any other question with the text that shares most words with it: a statement of
      the user in this conversation, newest first, or else a memory. Without such a text, it says
      that it does not know.
    - It greets back, and acknowledges any other text.

    Attributes:
        follows_instructions: False: it ignores prompts, so an agent never calls it to extract
            memories.

    Args:
        script: Answers to give first.
    """

    follows_instructions = False

    def __init__(self, script: Iterable[str | Message] = ()) -> None:
        self._script = list(script)

    async def __call__(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> Message:
        """Return the answer of the rules."""
        if self._script:
            answer = self._script.pop(0)
            return Message.assistant(answer) if isinstance(answer, str) else answer
        if messages and messages[-1].role == Role.TOOL:
            return Message.assistant(_report(messages))
        said = [_own_text(m) for m in messages if m.role == Role.USER and _own_text(m)]
        text = said[-1].strip() if said else ""
        if calls := _requests(text, {each.name for each in tools}):
            return Message.assistant(tool_calls=calls)
        return Message.assistant(_answer(text, said[:-1], _memories(messages)))

    async def stream(
        self, messages: Sequence[Message], /, *, tools: Sequence[ToolSpec] = ()
    ) -> AsyncIterator[str | Message]:
        """Yield the answer word by word, then the whole message."""
        answer = await self(messages, tools=tools)
        for piece in re.findall(r"\s*\S+|\s+$", answer.content or ""):
            yield piece
        yield answer

    def __repr__(self) -> str:
        return "ScriptedModel()"


def _answer(text: str, said: Sequence[str], memories: Sequence[str]) -> str:
    if _GREETING.fullmatch(text) or not text:
        return "Hello! What can I do for you?"
    if not _is_question(text):
        return "Noted."
    if _ABOUT_ME.search(text):
        return (
            "\n".join(["I remember:", *(f"- {each}" for each in memories)])
            if memories
            else ("I know nothing about you yet.")
        )
    statements = [each for each in reversed(said) if not _is_question(each)]
    found = _best(text, [*statements, *memories])
    if found is None:
        return "I do not know."
    return f"You said: {found}" if found in statements else f"I remember: {found}"


def _is_question(text: str) -> bool:
    return text.rstrip().endswith("?") or _ASKING.match(text.lstrip()) is not None


def _best(question: str, candidates: Sequence[str]) -> str | None:
    """Return the candidate that shares most words with the question; the first of equals."""
    asked = _words(question)
    scores = [len(asked & _words(each)) for each in candidates]
    highest = max(scores, default=0)
    return candidates[scores.index(highest)] if highest else None


def _words(text: str) -> set[str]:
    return {stem(word) for word in query_words(text)}


def _own_text(message: Message) -> str:
    """Return what a message says itself, without a block of memories; empty for a block."""
    if message.metadata.get(BLOCK_MARK) is True:
        return ""
    found = split_block(message)
    return (message.content or "") if found is None else found[1]


def _memories(messages: Sequence[Message]) -> list[str]:
    marked = [m.content or "" for m in messages if m.metadata.get(BLOCK_MARK) is True]
    blocks = marked + [block[0] for m in messages if (block := split_block(m)) is not None]
    found = (_MEMORY.fullmatch(line) for block in blocks for line in block.splitlines())
    return [each[1] for each in found if each]


def _requests(text: str, known: set[str]) -> list[ToolCall]:
    """Return the tool calls that a text requests; none if it contains anything else."""
    found = [_REQUEST.fullmatch(part) for part in _NEXT_REQUEST.split(text)]
    calls = [
        ToolCall(name=each[1], arguments=_arguments(each[2] or ""))
        for each in found
        if each and each[1] in known
    ]
    return calls if len(calls) == len(found) else []


def _arguments(text: str) -> dict[str, Any]:
    return {name: _value(value.strip()) for name, value in _ARGUMENT.findall(text)}


def _value(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _report(messages: Sequence[Message]) -> str:
    """Return the results of the last tool calls."""
    last = takewhile(lambda message: message.role == Role.TOOL, reversed(messages))
    return "\n".join(f"{each.name}: {each.content}" for each in reversed(list(last)))
