"""The extractors: one that calls a model, and one that calls the caller's own function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, cast

from locus_memory._internal.offload import call, in_thread
from locus_memory._internal.quoting import quote
from locus_memory.chat.asking import called, check_model
from locus_memory.chat.base import ChatModel
from locus_memory.chat.usage import report_usage
from locus_memory.conversation.tokens import TokenCounter, as_token_counter, count_tokens
from locus_memory.errors import InvalidArgumentError, ModelAnswerError
from locus_memory.events import emit
from locus_memory.memory.extraction.answer import AnsweredChange
from locus_memory.memory.extraction.distillate import (
    Distillate,
    DistilledAnswer,
    IdentityClaim,
    parse_distillate,
)
from locus_memory.memory.extraction.lines import parse_lines
from locus_memory.memory.extraction.prompt import (
    Line,
    Prompt,
    build_prompt,
    lines_of,
    lines_text,
    system_text,
)
from locus_memory.memory.models import Extractor, Memory, MemoryChange, MemoryType
from locus_memory.memory.options import check_one_of
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message

__all__ = ["FunctionExtractor", "LLMExtractor", "as_extractor"]

_MIN_SPACE = 200
_LONGEST_REPAIR = 4000
# A prompt of more characters is built in a worker thread: this takes a few milliseconds.
_LARGE = 50_000
_NUMBERED: Final = re.compile(r"m(\d{1,6})")


class LLMExtractor:
    """An extractor that calls a model once per extraction: for facts and notes.

    The model sees the new messages and the present memories as data, and answers with JSON. Of
    an answer with several changes, each valid one is accepted, and the event
    `memory.change_refused` reports each other one. An answer without readable JSON, or with two
    different documents, is sent back once to be repaired. If that fails too, it is an error
    and the event `memory.extraction_invalid`. Data that does not fit the prompt is clipped
    (`memory.extraction_clipped`), and surplus changes are dropped (`memory.changes_dropped`).
    Errors of the model are raised as they are.

    Args:
        model: Any async function from messages to a message.
        max_prompt_tokens: The most tokens of the prompt, the task included; a repair adds the
            answer to it.
        max_changes: The most changes accepted from one answer, in order.
        token_counter: Counts tokens: a function or a tokenizer; `None` estimates them. Long texts
            are counted in a worker thread.
        instructions: More instructions on what to keep or leave out, added to the task.
        answer: `"json"`; or `"lines"`, for small models that write no valid JSON: a short prompt,
            of whose answer each line is a fact about the user, and `NONE` none. It only adds
            memories, at most ten, and makes no notes.

    Attributes:
        name: The model's `name`, if it has one, else `"llm"`.
        model: The model.

    Raises:
        ConfigurationError: The model is not a function, or `answer` is unknown.
        InvalidArgumentError: `max_prompt_tokens` has no room beside the task, or `max_changes`
            is less than 1.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        max_prompt_tokens: int = 8000,
        max_changes: int = 20,
        token_counter: object | None = None,
        instructions: str = "",
        answer: Literal["json", "lines"] = "json",
    ) -> None:
        check_model(model)
        check_one_of(("json", "lines"), answer=answer)
        name = getattr(model, "name", None)
        self.name: str = name if isinstance(name, str) and name else "llm"
        self.model = model
        self._budget = max_prompt_tokens
        self._max_changes = max_changes
        self._count: TokenCounter = as_token_counter(token_counter)
        self._in_lines = answer == "lines"
        self._system = (lines_text if self._in_lines else system_text)(instructions)
        if max_changes < 1:
            raise InvalidArgumentError(f"max_changes is 1 or more, not {max_changes}")
        needed = count_tokens([Message.system(self._system)], self._count) + _MIN_SPACE
        if max_prompt_tokens < needed:
            raise InvalidArgumentError(
                f"max_prompt_tokens is at least {needed} for this task, not {max_prompt_tokens}"
            )

    async def extract(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[MemoryChange, ...]:
        """Return the changes that the model requests; without messages, it is not called.

        Raises:
            ModelAnswerError: Neither the answer nor the repaired one is readable.
        """
        made = await self.distill(messages, memories)
        return cast("tuple[MemoryChange, ...]", made.changes)

    async def distill(self, messages: Sequence[Any], memories: Sequence[Memory]) -> Distillate:
        """Return the changes, the notes and the identity facts of sessions, with one call.

        Raises:
            ModelAnswerError: Neither the answer nor the repaired one is readable.
        """
        lines, prompt = await self._prepared(messages, memories)
        if prompt is None:
            return Distillate()
        if self._in_lines:
            return Distillate(changes=self._bounded(await self._told(prompt, lines, memories)))
        answered = await self._ask(prompt)
        return Distillate(
            changes=self._bounded(_mapped(answered.changes, lines, memories)),
            notes=tuple(
                replace(each, sources=_places(each.sources, lines)) for each in answered.notes
            ),
            identity=tuple(
                IdentityClaim(each.text, _places(each.sources, lines)) for each in answered.identity
            ),
        )

    async def _told(
        self, prompt: Prompt, lines: Sequence[Line], memories: Sequence[Memory]
    ) -> list[MemoryChange]:
        """Return the facts of an answer in lines; their sources are the user's messages."""
        try:
            facts = parse_lines(await self._answer(prompt.messages), memories)
        except InvalidArgumentError as error:
            invalid = ModelAnswerError(f"the model's answer is not readable: {error}")
            emit("memory.extraction_invalid", error=invalid, extractor=self.name, reason=str(error))
            raise invalid from None
        said = tuple(number for number, line in enumerate(lines, 1) if line.is_of_user)
        return _mapped([replace(each, messages=said) for each in facts], lines, memories)

    def _bounded(self, changes: Sequence[MemoryChange]) -> tuple[MemoryChange, ...]:
        if len(changes) > self._max_changes:
            surplus = len(changes) - self._max_changes
            emit("memory.changes_dropped", extractor=self.name, dropped=surplus)
        return tuple(changes[: self._max_changes])

    async def _prepared(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[list[Line], Prompt | None]:
        size = sum(len(each.content) for each in messages if isinstance(each.content, str))
        build = partial(self._build, tuple(messages), tuple(memories))
        lines, prompt = build() if size < _LARGE else await in_thread(build)
        if prompt is not None:
            _report_clipping(prompt)
        return lines, prompt

    def _build(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[list[Line], Prompt | None]:
        lines = lines_of(messages, self._budget)
        if not lines:
            return lines, None
        return lines, build_prompt(self._system, lines, memories, self._budget, self._count)

    async def _ask(self, shown: Prompt) -> DistilledAnswer:
        prompt: tuple[Message, Message] = shown.messages
        data = prompt[1].content or ""
        answer = await self._answer(prompt)
        try:
            return self._read(parse_distillate(answer, data))
        except InvalidArgumentError as error:
            repair = [
                *prompt,
                Message.assistant(answer[:_LONGEST_REPAIR]),
                Message.user(f"That is not valid: {error}. Answer again, with the JSON only."),
            ]
        try:
            return self._read(parse_distillate(await self._answer(repair), data))
        except InvalidArgumentError as error:
            invalid = ModelAnswerError(f"the model's answer is not readable, twice: {error}")
            emit("memory.extraction_invalid", error=invalid, extractor=self.name, reason=str(error))
            raise invalid from None

    def _read(self, read: DistilledAnswer) -> DistilledAnswer:
        for reason in read.refused:
            error = InvalidArgumentError(reason)
            emit("memory.change_refused", error=error, extractor=self.name, reason=reason)
        return read

    async def _answer(self, prompt: Sequence[Message]) -> str:
        answer = await called(self.model, prompt)
        if not hasattr(answer, "content"):
            raise ModelAnswerError(
                f"the model answered with {type(answer).__name__}, not a message"
            )
        content: object = answer.content
        if content is not None and not isinstance(content, str):
            raise ModelAnswerError(
                f"the model answered with a content of {type(content).__name__}, not a text"
            )
        report_usage(answer, "extraction")
        return content or ""


class FunctionExtractor:
    """An extractor that calls the caller's own function.

    Args:
        function: Gets the messages, and the present memories if it has a second parameter;
            returns `Memory` or `MemoryChange` objects, or nothing. It may be async; a function
            that is not runs in a worker thread.

    Attributes:
        name: The function's name.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        name = getattr(function, "__name__", None) or type(function).__name__
        self.name: str = str(name)
        self._function = function
        self._takes_memories = _takes_memories(function)

    async def extract(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> tuple[Memory | MemoryChange, ...]:
        """Return the changes of the function; a `Memory` is written as it is.

        Raises:
            InvalidArgumentError: The function returned something else.
        """
        given = (list(messages), list(memories)) if self._takes_memories else (list(messages),)
        returned = await call(self._function, *given)
        if isinstance(returned, Iterator):
            # An iterator runs where the function ran: it may take as long.
            returned = await in_thread(tuple, returned)
        if returned is None:
            return ()
        if not isinstance(returned, Iterable):
            raise InvalidArgumentError(
                f"{self.name} returned {type(returned).__name__}, not a list of memories"
            )
        return tuple(self._checked(each) for each in returned)

    def _checked(self, each: Any) -> Memory | MemoryChange:
        if isinstance(each, Memory | MemoryChange):
            return each
        if not (hasattr(each, "type") and hasattr(each, "key") and hasattr(each, "content")):
            raise InvalidArgumentError(
                f"{self.name} returned a {type(each).__name__} among the memories"
            )
        return Memory(
            each.type, each.key, each.content, dict(getattr(each, "metadata", None) or {})
        )


def as_extractor(extract: object | None) -> Extractor:
    """Return an extractor for the argument `extract_fn`.

    Args:
        extract: `None` for the `HeuristicExtractor`; an object with `extract`, returned as it is;
            or a function, see `FunctionExtractor`.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if extract is None:
        return HeuristicExtractor()
    if not isinstance(extract, type):
        if callable(getattr(extract, "extract", None)):
            return cast("Extractor", extract)
        if callable(extract):
            return FunctionExtractor(extract)
    raise InvalidArgumentError(
        f"extract_fn is a function or has extract(messages, memories), not {quote(extract)}"
    )


def _report_clipping(prompt: Prompt) -> None:
    if prompt.clipped or prompt.dropped or prompt.forgotten:
        emit(
            "memory.extraction_clipped",
            clipped=prompt.clipped,
            dropped=prompt.dropped,
            memories=prompt.forgotten,
        )


def _mapped(
    answered: Sequence[AnsweredChange], lines: Sequence[Line], memories: Sequence[Memory]
) -> list[MemoryChange]:
    """Return the changes in the library's terms; an update of an unknown memory adds it."""
    known = {(memory.type, memory.key) for memory in memories}
    changes: list[MemoryChange] = []
    for each in answered:
        name = _name(each, known, memories)
        if name not in known and each.op == "delete":
            continue
        op: Literal["update", "add"] = "update" if name in known else "add"
        changes.append(
            MemoryChange(
                op="delete" if each.op == "delete" else op,
                type=name[0],
                key=name[1],
                content="" if each.op == "delete" else each.content,
                importance=each.importance,
                sources=_places(each.messages, lines),
            )
        )
    return changes


def _places(numbers: Iterable[int], lines: Sequence[Line]) -> tuple[int, ...]:
    """Return the positions of messages from their numbers in the prompt."""
    return tuple(dict.fromkeys(lines[n - 1].place for n in numbers if 1 <= n <= len(lines)))


def _name(
    change: AnsweredChange, known: set[tuple[MemoryType, str]], memories: Sequence[Memory]
) -> tuple[MemoryType, str]:
    """Return the memory that a change names: by its key, or by its number in the prompt."""
    key = " ".join(change.key.split())
    numbered = _NUMBERED.fullmatch(key)
    if (change.type, key) not in known and numbered and 1 <= int(numbered[1]) <= len(memories):
        meant = memories[int(numbered[1]) - 1]
        return meant.type, meant.key
    return change.type, key


def _takes_memories(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return True
    second = positional[1] if len(positional) > 1 else None
    return second is not None and (second.default is second.empty or second.name == "memories")
