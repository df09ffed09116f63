"""The extractors: one that calls a model, and one that calls the caller's own function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast

from typing_extensions import override

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.offload import call, in_thread
from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.chat.asking import ask, is_model
from locus_memory.chat.base import ChatModel
from locus_memory.chat.usage import report_usage
from locus_memory.conversation.tokens import as_token_counter
from locus_memory.errors import ConfigurationError, InvalidArgumentError, ModelAnswerError
from locus_memory.events import emit
from locus_memory.memory.extraction.distillate import (
    LINES_TASK,
    Distillate,
    parse_distillate,
    parse_lines,
    parse_plain,
)
from locus_memory.memory.extraction.extraction import as_memory
from locus_memory.memory.extraction.prompt import TASK, Prompt, Prompter
from locus_memory.memory.models import Extractor, Memory, MemoryChange
from locus_memory.memory.options import check_one_of
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.messages import Message

__all__ = ["FunctionExtractor", "LLMExtractor", "as_extractor"]

_LONGEST_REPAIR: Final = 4000
_FORMS: Final[Mapping[str, tuple[str, Callable[[str, str], Distillate]]]] = {
    "json": (TASK, parse_distillate),
    "lines": (LINES_TASK, parse_lines),
}
"""The task and the parser of each form of answers."""


class LLMExtractor(Resource):
    """An extractor that calls a model once per extraction: for facts and notes.

    The model sees the new messages and the present memories as data, and answers with JSON. Of
    an answer with several changes, each valid one is accepted, and the event
    `memory.change_refused` reports each other one. An empty answer, or `NONE`, keeps nothing, and
    plain lines that are facts are facts about the user. Any other answer without readable JSON, or
    with two different documents, is sent back once to be repaired. If that fails too, it is an
    error and the event `memory.extraction_invalid`. Messages that do not fit into one prompt are
    read in several, one after the other, so that none is left out. A message that is too long for a
    prompt of its own is clipped, and so are the memories (`memory.extraction_clipped`). Errors of
    the model are raised as they are.

    Args:
        model: Any async function from messages to a message; or a string for `get_model`, such as
            `"openai:gpt-4.1-mini"`, whose model `close` closes.
        max_prompt_tokens: The most tokens of a prompt, the task included; a repair adds the
            answer to it.
        token_counter: Counts tokens: a function or a tokenizer; `None` estimates them.
        instructions: More instructions on what to keep or leave out, added to the task.
        answer: `"json"`; or `"lines"`, for small models that write no valid JSON: a short prompt,
            of whose answer each line is a fact about the user, and `NONE` none. It only adds
            memories, at most ten, and makes no notes.

    Attributes:
        name: The model's `name`, if it has one, else `"llm"`.
        model: The model.
        room: The least characters of messages that a prompt holds.

    Raises:
        ConfigurationError: The model is no function or string of a model, or `answer` is unknown.
        InvalidArgumentError: `max_prompt_tokens` has no room beside the task.
    """

    def __init__(
        self,
        model: ChatModel | str,
        *,
        max_prompt_tokens: int = 8000,
        token_counter: object | None = None,
        instructions: str = "",
        answer: Literal["json", "lines"] = "json",
    ) -> None:
        check_one_of(tuple(_FORMS), answer=answer)
        from locus_memory.chat.registry import as_model  # noqa: PLC0415 - most processes have no model

        made, self._owned = as_model(model)
        name = getattr(made, "name", None)
        self.name: str = name if isinstance(name, str) and name else "llm"
        self.model: ChatModel = made
        task, self._parse = _FORMS[answer]
        wishes = instructions.strip()
        task += f"\n\nAlso:\n{wishes}" if wishes else ""
        self._prompter = Prompter(task, max_prompt_tokens, as_token_counter(token_counter))
        # No script has more tokens than characters: so many characters fit into a prompt.
        self.room = self._prompter.room

    @override
    async def close(self) -> None:
        """Close the model, if a string named it."""
        if self._owned and isinstance(self.model, Resource):
            await self.model.close()

    async def extract(
        self, messages: Sequence[Any], memories: Sequence[Memory]
    ) -> Sequence[MemoryChange | Memory]:
        """Return the changes that the model requests; without messages, it is not called.

        Raises:
            ModelAnswerError: Neither the answer nor the repaired one is readable.
        """
        return (await self.distill(messages, memories)).changes

    async def distill(self, messages: Sequence[Any], memories: Sequence[Memory]) -> Distillate:
        """Return the changes and the notes of sessions, with one call if they fit into a prompt.

        Raises:
            ModelAnswerError: Neither the answer nor the repaired one is readable.
        """
        prompts = await in_thread(self._prompter.prompts, tuple(messages), tuple(memories))
        clipped = sum(each.clipped for each in prompts)
        forgotten = max((each.forgotten for each in prompts), default=0)
        if clipped or forgotten:
            emit("memory.extraction_clipped", clipped=clipped, memories=forgotten)
        made = [_meant(await self._asked(each), each.places, memories) for each in prompts]
        return Distillate(
            changes=tuple(change for each in made for change in each.changes),
            notes=tuple(note for each in made for note in each.notes),
        )

    async def _asked(self, prompt: Prompt) -> Distillate:
        """Return the answer to a prompt; one that is not readable is repaired once."""
        told, reason = list(prompt.messages), ""
        for _ in range(2):
            answer = await ask(self.model, told)
            report_usage(answer, "extraction")
            said = answer.content or ""
            is_whole = answer.metadata.get("finish_reason") != "length"
            try:
                made = self._parsed(said, prompt, is_whole=is_whole)
            except InvalidArgumentError as error:
                reason = str(error)
                wish = f"That is not valid: {reason}. Answer again, in the form that is asked for."
                repair = Message.assistant(said[:_LONGEST_REPAIR]), Message.user(wish)
                told = [*prompt.messages, *repair]
                continue
            for each in made.refused:
                refusal = InvalidArgumentError(each)
                emit("memory.change_refused", error=refusal, extractor=self.name, reason=each)
            return made
        invalid = ModelAnswerError(f"the model's answer is not readable, twice: {reason}")
        emit("memory.extraction_invalid", error=invalid, extractor=self.name, reason=reason)
        raise invalid

    def _parsed(self, said: str, prompt: Prompt, *, is_whole: bool) -> Distillate:
        """Return what a text tells, in the form that was asked for or else plainly.

        Raises:
            InvalidArgumentError: It is not readable.
        """
        task, data = (each.content or "" for each in prompt.messages)
        try:
            return self._parse(said, f"{task}\n{data}")
        except InvalidArgumentError:
            plain = parse_plain(said, data) if is_whole else None
            if plain is None:
                raise
            return plain


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
        if not isinstance(returned, Iterable | None):
            raise InvalidArgumentError(
                f"{self.name} returned {type(returned).__name__}, not a list of memories"
            )
        return tuple(
            each if isinstance(each, MemoryChange) else as_memory(each) for each in returned or ()
        )


def as_extractor(extract: object | None) -> Extractor:
    """Return an extractor for the argument `extract_fn`.

    Args:
        extract: `None` for the `HeuristicExtractor`; an object with `extract`, returned as it is;
            a model, or a string for `get_model`, for an `LLMExtractor`, or the `HeuristicExtractor`
            if the model declares that it follows no instructions; or a function, see
            `FunctionExtractor`.

    Raises:
        ConfigurationError: It is none of these, or as for `get_model`.
    """
    if extract is None:
        return HeuristicExtractor()
    if not isinstance(extract, type):
        if callable(getattr(extract, "extract", None)):
            return cast("Extractor", extract)
        if isinstance(extract, str) or is_model(extract):
            made = LLMExtractor(cast("ChatModel | str", extract))
            is_able = getattr(made.model, "follows_instructions", True)
            return made if is_able else HeuristicExtractor()
        if callable(extract):
            return FunctionExtractor(extract)
    raise ConfigurationError(
        "extract_fn is a function, a model, the string of a model, or has"
        f" extract(messages, memories), not {quote(extract)}"
    )


def _meant(made: Distillate, places: Sequence[int], memories: Sequence[Memory]) -> Distillate:
    """Return an answer with the positions of its messages, and with the keys of the memories.

    A retirement of a memory that the model did not see is left out.
    """
    keys = {(each.type, neutralise(each.key)): each.key for each in memories}
    changes: list[MemoryChange | Memory] = []
    for each in made.changes:
        key = keys.get((each.type, neutralise(each.key)))
        if isinstance(each, MemoryChange) and (key or each.op != "delete"):
            sources = _places(each.sources, places)
            changes.append(replace(each, key=key or each.key, sources=sources))
    notes = (replace(each, sources=_places(each.sources, places)) for each in made.notes)
    return Distillate(changes=changes, notes=tuple(notes))


def _places(numbers: Iterable[int], places: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of messages from their numbers in the prompt."""
    return tuple(dict.fromkeys(places[n - 1] for n in numbers if 1 <= n <= len(places)))


def _takes_memories(function: Callable[..., Any]) -> bool:
    """Return whether a function has a second parameter that is meant for memories."""
    try:
        signature = inspect.signature(function)
        signature.bind([], [])
    except (TypeError, ValueError):
        return False
    second = list(signature.parameters.values())[1:2]
    return all(each.default is each.empty or each.name == "memories" for each in second)
