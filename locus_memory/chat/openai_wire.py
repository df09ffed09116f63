"""The OpenAI chat protocol, pure: messages out, answers in, also from servers that are sloppy."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from locus_memory.chat.base import INVALID_ARGUMENTS
from locus_memory.chat.storable import whole
from locus_memory.errors import (
    ModelAnswerError,
    ModelUnavailableError,
    ValueNotSerializableError,
)
from locus_memory.messages import Message, Role, ToolCall
from locus_memory.store.item import decode_json, encode_json

__all__ = ["StreamedAnswer", "read_answer", "write_message"]

_NOT_IN_A_NAME: Final = re.compile(r"[\s<|\\/>]+")
_USAGE: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def write_message(message: Message) -> dict[str, Any]:
    """Return a message as the API takes it: no metadata, no name of a tool, never no content."""
    wire = message.to_openai_format()
    name = wire.pop("name", None)
    if name and message.role != Role.TOOL:
        wire["name"] = _NOT_IN_A_NAME.sub("_", name)
    if "content" not in wire:
        wire["content"] = None if message.tool_calls else ""
    return wire


@dataclass(slots=True)
class _Call:
    """A tool call as it was sent, perhaps in fragments."""

    id: str = ""
    name: str = ""
    arguments: Any = ""


def read_answer(completion: Any) -> Message:
    """Return the first choice of a completion as an assistant message.

    Raises:
        ModelAnswerError: There is no choice.
    """
    choice = _first_choice(completion)
    if choice is None or getattr(choice, "message", None) is None:
        _refuse(completion)
    said = choice.message
    calls = [
        _Call(call.id or "", _name(call), getattr(getattr(call, "function", None), "arguments", ""))
        for call in getattr(said, "tool_calls", None) or ()
    ]
    refusal = getattr(said, "refusal", None)
    facts = _facts(completion, choice) | ({"refusal": True} if refusal else {})
    return _message(_text(said.content) or _text(refusal), calls, facts)


class StreamedAnswer:
    """An answer put together from the chunks of a stream."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._held = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._facts: dict[str, Any] = {}
        self._begun = False

    async def pieces(self, stream: AsyncIterable[Any]) -> AsyncIterator[str]:
        """Take all chunks of a stream, and yield the text in them as it can be shown."""
        async for chunk in stream:
            if piece := self.add(chunk):
                yield piece

    def add(self, chunk: Any) -> str:
        """Take a chunk, and return the text in it that can be shown already."""
        choice = _first_choice(chunk)
        self._facts |= _facts(chunk, choice)
        delta = getattr(choice, "delta", None)
        if delta is None:
            return ""
        self._begun = True
        for fragment in getattr(delta, "tool_calls", None) or ():
            self._add_fragment(fragment)
        refusal = _text(getattr(delta, "refusal", None))
        if refusal:
            self._facts["refusal"] = True
        return self._show(_text(getattr(delta, "content", None)) + refusal)

    def message(self, *, done: bool) -> Message:
        """Return the whole answer.

        Args:
            done: Whether the endpoint said that there is no more to come; else it must have
                given a reason why it finished.

        Raises:
            ModelAnswerError: There was none.
            ModelUnavailableError: It was cut off.
        """
        if not self._begun:
            _refuse(None)
        if not done and "finish_reason" not in self._facts:
            raise ModelUnavailableError("the stream ended before the answer did")
        return _message("".join(self._pieces), self._calls, self._facts)

    def _show(self, piece: str) -> str:
        """Return what can be shown: half a surrogate pair waits for the other half."""
        self._pieces.append(piece)
        text = self._held + piece
        self._held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole(text.removesuffix(self._held))

    def _add_fragment(self, fragment: Any) -> None:
        function = getattr(fragment, "function", None)
        call_id, name = _text(getattr(fragment, "id", None)), _name(fragment)
        call = self._call_of(getattr(fragment, "index", None), call_id, name)
        call.id = call.id or call_id
        # Some servers repeat the name with every fragment.
        if name != call.name:
            call.name += name
        arguments = getattr(function, "arguments", None)
        if isinstance(arguments, str) and isinstance(call.arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments = arguments

    def _call_of(self, index: object, call_id: str, name: str) -> _Call:
        """Return the call a fragment belongs to.

        A server that sends calls whole may give none an index, or all the same one.
        """
        known = self._at.get(index) if isinstance(index, int) else None
        if known is None and not isinstance(index, int) and self._calls:
            latest = self._calls[-1]
            known = latest if not name or call_id == latest.id != "" else None
        if known is not None and name and call_id and known.id not in {"", call_id}:
            known = None
        if known is None:
            known = _Call()
            self._calls.append(known)
        if isinstance(index, int):
            self._at[index] = known
        return known


def _first_choice(completion: Any) -> Any:
    choices = getattr(completion, "choices", None)
    return choices[0] if isinstance(choices, list) and choices else None


def _name(call: Any) -> str:
    return _text(getattr(getattr(call, "function", None), "name", None))


def _text(content: Any) -> str:
    """Return content as text; a list of parts is their texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def _facts(completion: Any, choice: Any) -> dict[str, Any]:
    """Return what the endpoint says of its answer, as far as it is what it should be."""
    usage = getattr(completion, "usage", None)
    counts = {name: getattr(usage, name, None) for name in _USAGE}
    facts = {
        "model": getattr(completion, "model", None),
        "finish_reason": getattr(choice, "finish_reason", None),
        "usage": {name: count for name, count in counts.items() if isinstance(count, int)},
    }
    return {name: fact for name, fact in facts.items() if fact and isinstance(fact, str | dict)}


def _message(text: str, calls: Sequence[_Call], facts: dict[str, Any]) -> Message:
    read: list[ToolCall] = []
    invalid: dict[str, str] = {}
    for call in _with_ids(calls):
        arguments: dict[str, Any] = {}
        try:
            arguments = _arguments(call.arguments)
        except ValueError as error:
            invalid[call.id] = str(error)
        read.append(ToolCall(id=call.id, name=whole(call.name), arguments=arguments))
    return Message(
        role=Role.ASSISTANT,
        content=whole(text) if text or not read else None,
        tool_calls=tuple(read),
        metadata=facts | ({INVALID_ARGUMENTS: invalid} if invalid else {}),
    )


def _with_ids(calls: Iterable[_Call]) -> Iterable[_Call]:
    """Yield the calls, each with an id that no other one has."""
    seen: set[str] = set()
    for call in calls:
        if not call.id or call.id in seen:
            call.id = ToolCall(name="").id
        seen.add(call.id)
        yield call


def _arguments(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call, sent as JSON, as JSON in JSON, or as an object.

    Raises:
        ValueError: They are no JSON object.
    """
    parsed = raw
    for _ in range(2):
        if isinstance(parsed, str):
            parsed = _parsed(parsed)
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise ValueError(f"a JSON object is expected, not {type(parsed).__name__}")  # noqa: TRY004 - the caller's one case
    try:
        copied: dict[str, Any] = decode_json(encode_json(parsed))
    except ValueNotSerializableError as error:
        raise ValueError(str(error)) from error
    return copied


def _parsed(raw: str) -> Any:
    try:
        return json.loads(raw) if raw.strip() else None
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _refuse(completion: Any) -> NoReturn:
    error = getattr(completion, "error", None)
    said = error.get("message") if isinstance(error, dict) else error
    reason = f": {said}" if isinstance(said, str) and said else ""
    raise ModelAnswerError(f"the endpoint answered without a message{reason}")
