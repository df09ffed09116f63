"""The forms of messages and of states: those of other libraries, read and written back; pure.

A form is told by attributes or keys, and no library of it is imported: the messages of LangChain,
OpenAI, Anthropic and Pydantic AI, as objects or as dicts, a pair of a role and a text, and a text,
which the user said. A message of any other class that has the attributes of `Message` stays the
object that it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from pydantic import Field, SkipValidation

from locus_memory._internal.quoting import quote
from locus_memory.conversation.factory import changed
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.extraction.thread import text_in
from locus_memory.memory.scope import metadata_of
from locus_memory.messages import Message

__all__ = [
    "ROLES",
    "ReadMessage",
    "ReadState",
    "read_messages",
    "run_state",
    "write_messages",
    "written",
]

ROLES: Final = {
    "ai": "assistant",
    "assistant": "assistant",
    "developer": "system",
    "function": "tool",
    "human": "user",
    "model": "assistant",
    "system": "system",
    "tool": "tool",
    "user": "user",
}
"""The roles of all forms, each with its role here."""

_PARTS: Final = {"system-prompt": "system", "tool-return": "tool", "user-prompt": "user"}
"""The parts of a request of Pydantic AI that are messages, each with its role."""

_PAIR: Final = 2


class _Origin(NamedTuple):
    """The source of a message that was read.

    Attributes:
        number: The place of the source among the messages.
        source: The source.
        part: The place of the message in a source of several; `None`: it is all of it.
        text: The text that was read.
        before: Messages before the source that say nothing.
    """

    number: int
    source: Any
    part: int | None
    text: str
    before: tuple[Any, ...]


class ReadMessage(Message):
    """A message of another form, as one of this library.

    Attributes:
        origin: Its source; `None`: it has none, since it is new.
    """

    origin: SkipValidation[_Origin | None] = Field(default=None, exclude=True, repr=False)


@dataclass(frozen=True, slots=True)
class ReadState:
    """A state of another form, as managers read it.

    Attributes:
        messages: Its messages, read.
        metadata: What it says about the run, such as its `user_id`.
        run_id: Names the run, or else its conversation: the id of the first message that has one.
    """

    messages: tuple[Any, ...]
    metadata: Mapping[str, Any]
    run_id: str | None = None


def read_messages(messages: Any, *, name: str | None = None) -> list[Any]:
    """Return messages of any form as messages of this library.

    Args:
        messages: A list of messages, one message, or a state that has `messages`.
        name: The name of each of them in an error; `None`: `messages` with its place.

    Raises:
        InvalidArgumentError: They are not messages.
    """
    found: list[Any] = []
    silent: list[Any] = []
    for number, value in enumerate(_listed(messages)):
        if _is_own(value):
            found.append(value)
            continue
        try:
            read = [
                ReadMessage(
                    origin=_Origin(number, value, part, fields.get("content") or "", (*silent,)),
                    **fields,
                )
                for part, fields in _read(value)
            ]
        except (ValueError, TypeError, LookupError) as error:
            raise InvalidArgumentError(
                f"{name or f'messages[{number}]'} is not a message: it has a role and a content"
            ) from error
        found += read
        silent = [] if read else [*silent, value]
    return found


def write_messages(messages: Iterable[Any]) -> list[Any]:
    """Return read messages in the form in which they were, with the texts that they have now.

    A message without a source becomes a dict with `role` and `content`; beside messages of Pydantic
    AI, its text joins the `instructions` of the last request.
    """
    sources: dict[int, int] = {}
    found: list[Any] = []
    for message in messages:
        is_read = isinstance(message, ReadMessage)
        origin = message.origin if is_read else None
        if origin is None:
            found.append(_plain(message) if is_read else message)
            continue
        if origin.number not in sources:
            found += [*origin.before, origin.source]
        place = sources.setdefault(origin.number, len(found) - 1)
        if (message.content or "") != origin.text:
            found[place] = _rewritten(found[place], origin.part, message)
    requests = [place for place, each in enumerate(found) if _kind(each) == "request"]
    if not requests:
        return found
    told = [each for each in found if isinstance(each, Mapping) and each.get("role") == "system"]
    if told:
        last = found[requests[-1]]
        texts = [_get(last, "instructions"), *(each["content"] for each in told)]
        found[requests[-1]] = _with(last, instructions="\n\n".join(filter(None, texts)))
    return [each for each in found if each not in told]


def run_state(state: Any) -> Any:
    """Return a state as managers read it; the same object if it is of their own form.

    Args:
        state: An object with `messages`, a dict with them, or a list of messages. What a dict says
            about the run is in its `metadata`, or beside its `messages`, as `user_id`.

    Raises:
        InvalidArgumentError: It is no state, or its messages are not messages.
    """
    is_list = isinstance(state, list | tuple)
    held = state if is_list else _get(state, "messages")
    if isinstance(held, str | Mapping) or not isinstance(held, Iterable):
        raise InvalidArgumentError(
            "a state has messages: it is an AgentState, a dict with messages or a list of them, not"
            f" {type(state).__name__}"
        )
    if not is_list and not isinstance(state, Mapping) and all(map(_is_own, held)):
        return state
    read = read_messages(list(held))
    ids = (each.id for each in read if getattr(each, "id", None))
    run_id = _get(state, "run_id") or next(ids, None)
    return ReadState(tuple(read), metadata_of(state), run_id)


def written(state: Any, read: Any, messages: Sequence[Any]) -> Any:
    """Return a state with other messages, in its own form.

    Args:
        state: The state.
        read: Its `run_state`.
        messages: The messages of that, some of them changed.
    """
    found = list(messages) if read is state else write_messages(messages)
    if isinstance(state, list | tuple):
        return found
    if isinstance(state, Mapping):
        return {**state, "messages": found}
    return changed(state, messages=found if isinstance(state.messages, list) else tuple(found))


def _listed(messages: Any) -> list[Any]:
    """Return the messages of a list, of a state, or of one message."""
    if isinstance(messages, str) or _get(messages, "role") or _get(messages, "type"):
        return [messages]
    held = [messages] if _kind(messages) else _get(messages, "messages", messages)
    if isinstance(held, str | Mapping) or not isinstance(held, Iterable):
        raise InvalidArgumentError(f"messages are a list, not {quote(messages)}")
    return list(held)


def _is_own(value: Any) -> bool:
    """Return whether a message has the attributes of this library's."""
    if isinstance(value, Message):
        return True
    if isinstance(value, Mapping) or not hasattr(value, "role") or hasattr(value, "type"):
        return False
    return all(hasattr(call, "name") for call in getattr(value, "tool_calls", None) or ())


def _get(value: Any, name: str, default: Any = None) -> Any:
    """Return a key of a mapping, or an attribute of an object."""
    return value.get(name, default) if isinstance(value, Mapping) else getattr(value, name, default)


def _with(value: Any, **changes: Any) -> Any:
    return {**value, **changes} if isinstance(value, Mapping) else changed(value, **changes)


def _type(value: Any) -> str:
    """Return the type of a message of LangChain, of which a chunk has that of a whole one."""
    return str(_get(value, "type") or "").removesuffix("MessageChunk").lower()


def _kind(value: Any) -> str | None:
    """Return `request` or `response` for a message of Pydantic AI."""
    kind = _get(value, "kind")
    is_one = kind in ("request", "response") and isinstance(_get(value, "parts"), list | tuple)
    return kind if is_one else None


def _read(value: Any) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the fields of the messages in a message of another form, each with its place in it."""
    if isinstance(value, str):
        yield None, {"role": "user", "content": value}
    elif isinstance(value, list | tuple):
        role, content = value if len(value) == _PAIR else ("", "")
        yield None, {"role": ROLES[role], "content": text_in(content)}
    elif _kind(value):
        yield from _parts(value)
    elif _get(value, "role") or _type(value) in ROLES or not _type(value):
        yield from _whole(value)
    else:
        yield from _item(value)


def _whole(value: Any) -> Iterator[tuple[None, dict[str, Any]]]:
    """Yield the results of tools in a message of Anthropic, and then what the message says."""
    value = value["data"] if isinstance(value, Mapping) and "data" in value else value
    role = _get(value, "role") or _type(value)
    content = _first(value, "content", "parts")
    if not isinstance(content, str | list | tuple | None):
        raise TypeError(type(content).__name__)
    blocks = content if isinstance(content, list | tuple) else ()
    results = [each for each in blocks if _get(each, "type") == "tool_result"]
    for each in results:
        yield None, _of_tool(_get(each, "content"), _get(each, "tool_use_id"))
    text = text_in(content)
    if results and not text:
        return
    uses = [each for each in blocks if _get(each, "type") == "tool_use"]
    yield (
        None,
        {
            "role": ROLES[getattr(role, "value", role)],
            "content": text,
            "tool_calls": tuple(map(_call, _get(value, "tool_calls") or uses)),
            "metadata": dict(_get(value, "additional_kwargs") or {})
            | dict(_get(value, "metadata") or {}),
            **{name: _get(value, name) for name in ("id", "name", "tool_call_id")},
        },
    )


def _item(value: Any) -> Iterator[tuple[None, dict[str, Any]]]:
    """Yield the message of an item of OpenAI's responses.

    A `reasoning`, the call of a tool of OpenAI's own and a message that only removes another one
    say nothing.
    """
    kind = _type(value)
    if kind == "function_call":
        yield None, {"role": "assistant", "tool_calls": (_call(value),)}
    elif kind == "function_call_output":
        yield None, _of_tool(_get(value, "output"), _get(value, "call_id"))
    elif kind not in ("reasoning", "remove") and not kind.endswith("_call"):
        raise LookupError(kind)


def _parts(value: Any) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Yield the parts of a request of Pydantic AI, or a response as one message."""
    parts = [(_get(each, "part_kind"), each) for each in _get(value, "parts")]
    if _kind(value) == "response":
        texts = [_get(each, "content") for kind, each in parts if kind == "text"]
        calls = tuple(_call(each) for kind, each in parts if kind == "tool-call")
        yield None, {"role": "assistant", "content": "\n".join(texts), "tool_calls": calls}
        return
    for place, (kind, each) in enumerate(parts):
        content = _get(each, "content")
        if kind == "tool-return":
            told = _of_tool(content, _get(each, "tool_call_id"))
            yield place, {**told, "name": _get(each, "tool_name")}
        elif kind in _PARTS:
            yield place, {"role": _PARTS[kind], "content": text_in(content)}


def _of_tool(content: Any, call_id: str | None) -> dict[str, Any]:
    text = text_in(content)
    if not text and content:
        text = orjson.dumps(content, default=str).decode()
    return {"role": "tool", "content": text, "tool_call_id": call_id}


def _call(call: Any) -> dict[str, Any]:
    """Return the fields of a call of a tool."""
    function = _get(call, "function") or call
    given = _first(function, "arguments", "args", "input")
    try:
        arguments = orjson.loads(given) if isinstance(given, str) else given
    except orjson.JSONDecodeError:
        arguments = None
    return {
        "id": _first(call, "id", "call_id", "tool_call_id") or "",
        "name": _first(function, "name", "tool_name"),
        "arguments": dict(arguments) if isinstance(arguments, Mapping) else {},
    }


def _first(value: Any, *names: str) -> Any:
    """Return the first of some keys or attributes that has a value."""
    return next((found for name in names if (found := _get(value, name))), None)


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role.value, "content": message.content}


def _rewritten(source: Any, part: int | None, message: Message) -> Any:
    """Return the source of a message with the text that the message has now."""
    if part is not None:
        parts = list(_get(source, "parts"))
        content = _retold(_get(parts[part], "content"), message.content or "")
        parts[part] = _with(parts[part], content=content)
        return _with(source, parts=parts)
    if isinstance(source, str | list | tuple):
        return _plain(message)
    if isinstance(source, Mapping) and "data" in source:
        source = source["data"]
    return _with(source, content=_retold(_get(source, "content"), message.content or ""))


def _retold(content: Any, text: str) -> Any:
    """Return a content with another text, at the place of its first one; other parts stay."""
    if not isinstance(content, list | tuple):
        return text
    kept = [each for each in content if not text_in((each,))]
    first = next((n for n, each in enumerate(content) if text_in((each,))), None)
    if first is None:
        is_typed = any(isinstance(each, Mapping) for each in content)
        return [{"type": "text", "text": text} if is_typed else text, *kept]
    told = content[first]
    told = text if isinstance(told, str) else _with(told, text=text)
    return [*kept[:first], told, *kept[first:]]
