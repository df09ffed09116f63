"""The OpenAI chat protocol, pure: it writes messages and reads answers, also inexact ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
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
from locus_memory.store.json_values import decode_json, encode_json

__all__ = ["StreamedAnswer", "read_answer", "write_message"]

_NOT_IN_A_NAME: Final = re.compile(r"[\s<|\\/>]+")
_USAGE: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def write_message(message: Message) -> dict[str, Any]:
    """Return a message for the API: without metadata and tool name, always with content."""
    wire = message.to_openai_format()
    name = wire.pop("name", None)
    if name and message.role != Role.TOOL:
        wire["name"] = _NOT_IN_A_NAME.sub("_", name)
    if "content" not in wire:
        wire["content"] = None if message.tool_calls else ""
    return wire


@dataclass(slots=True)
class _Call:
    """A tool call as sent, whole or in fragments."""

    id: str = ""
    name: str = ""
    arguments: Any = ""


def read_answer(completion: Any) -> Message:
    """Return the first choice of a completion as an assistant message.

    Raises:
        ModelAnswerError: There is no choice, or a part of it violates the protocol.
    """
    choice = _first_choice(completion)
    if choice is None or getattr(choice, "message", None) is None:
        _refuse(completion)
    said = _object(choice.message, "message")
    if not any(_has(said, name) for name in ("content", "tool_calls", "refusal")):
        raise ModelAnswerError("the endpoint answered with an empty message")
    calls = [_whole_call(call) for call in _listed(said, "tool_calls")]
    refusal = _text(getattr(said, "refusal", None), "refusal")
    text = _text(getattr(said, "content", None), "content") or refusal
    if not (text or calls):
        _check_empty(said)
    return _message(
        text, calls, _facts(completion, choice) | ({"refusal": True} if refusal else {})
    )


class StreamedAnswer:
    """An answer assembled from the chunks of a stream."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._held = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._facts: dict[str, Any] = {}
        self._begun = False

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return the text that can be shown already.

        Raises:
            ModelAnswerError: A part of it violates the protocol.
        """
        choice = _first_choice(_object(chunk, "chunk"))
        self._facts |= _facts(chunk, choice)
        delta = getattr(choice, "delta", None)
        if delta is None:
            return ""
        said = _object(delta, "delta")
        self._begun = True
        for fragment in _listed(said, "tool_calls"):
            self._add_fragment(_object(fragment, "tool call"))
        refusal = _text(getattr(said, "refusal", None), "refusal")
        if refusal:
            self._facts["refusal"] = True
        return self._show(_text(getattr(said, "content", None), "content") + refusal)

    def message(self, *, done: bool) -> Message:
        """Return the whole answer.

        Args:
            done: Whether the endpoint announced the end; otherwise it must have sent a finish
                reason.

        Raises:
            ModelAnswerError: There was no answer.
            ModelUnavailableError: It was cut off.
        """
        if not self._begun:
            _refuse(None)
        if not done and "finish_reason" not in self._facts:
            raise ModelUnavailableError("the stream ended before the answer did")
        return _message("".join(self._pieces), self._calls, self._facts)

    def _show(self, piece: str) -> str:
        """Return the text that can be shown: half a surrogate pair waits for the other half."""
        self._pieces.append(piece)
        text = self._held + piece
        self._held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return whole(text.removesuffix(self._held))

    def _add_fragment(self, fragment: Any) -> None:
        function = _function(fragment)
        call_id, name = _id(fragment), _name(function)
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
        """Return the call that a fragment belongs to.

        A server that sends whole calls may omit the index, or send the same one for all.
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
    choices = _listed(completion, "choices")
    return _object(choices[0], "choice") if choices else None


def _check_empty(said: Any) -> None:
    """Check that a message without text and calls is empty, and not of an unknown kind."""
    for name in ("content", "function_call"):
        if getattr(said, name, None):
            raise ModelAnswerError(f"the endpoint answered with a {name} that holds no text")


def _whole_call(call: Any) -> _Call:
    function = _function(_object(call, "tool call"))
    return _Call(_id(call), _name(function), getattr(function, "arguments", ""))


def _function(call: Any) -> Any:
    function = getattr(call, "function", None)
    return None if function is None else _object(function, "function of a tool call")


def _id(call: Any) -> str:
    """Return the id of a call; without a text as its id, the call gets a new one."""
    found = getattr(call, "id", None)
    return found if isinstance(found, str) else ""


def _name(function: Any) -> str:
    name = getattr(function, "name", None)
    if name is not None and not isinstance(name, str):
        raise _odd("name of a tool", name)
    return name or ""


def _object(value: Any, part: str) -> Any:
    """Return a JSON object as the client parsed it; the client leaves other values unparsed."""
    if value is None or isinstance(value, str | bytes | int | float | list | tuple | dict):
        raise _odd(part, value)
    return value


def _listed(holder: Any, name: str) -> list[Any]:
    """Return an object's list of that name; an empty one if it has none."""
    found = getattr(holder, name, None)
    if found is not None and not isinstance(found, list):
        raise _odd(name, found)
    return found or []


def _has(said: Any, name: str) -> bool:
    """Whether the endpoint sent a field; the client fills in missing ones."""
    sent = getattr(said, "model_fields_set", None)
    return hasattr(said, name) if sent is None else name in sent


def _text(content: Any, part: str) -> str:
    """Return content as text; for a list of parts, their texts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _odd(part, content)
    return "".join(_text_of_part(each, part) for each in content)


def _text_of_part(said: Any, part: str) -> str:
    if not isinstance(said, dict):
        raise _odd(f"part of the {part}", said)
    text = said.get("text")
    if text is not None and not isinstance(text, str):
        raise _odd(f"text of the {part}", text)
    return text or ""


def _odd(part: str, value: Any) -> ModelAnswerError:
    return ModelAnswerError(f"the endpoint answered with a {part} of {type(value).__name__}")


def _facts(completion: Any, choice: Any) -> dict[str, Any]:
    """Return the endpoint's facts about its answer, without malformed ones."""
    usage = getattr(completion, "usage", None)
    counts = {name: getattr(usage, name, None) for name in _USAGE}
    details = getattr(usage, "prompt_tokens_details", None)
    counts["cached_tokens"] = getattr(details, "cached_tokens", None)
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
    """Yield the calls, each with a unique id."""
    seen: set[str] = set()
    for call in calls:
        if not call.id or call.id in seen:
            call.id = ToolCall(name="").id
        seen.add(call.id)
        yield call


def _arguments(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call, sent as JSON, as JSON in JSON, or as an object.

    Raises:
        ValueError: They are not a JSON object.
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
