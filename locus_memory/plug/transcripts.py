"""What was said in a session, read from the file that its host appends to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from locus_memory.conversation.roles import BLOCK_CLOSE, STABLE_OPENING
from locus_memory.memory.moments import read_moment
from locus_memory.messages import Message, Role

__all__ = [
    "MOST_AT_ONCE",
    "Said",
    "Turn",
    "claude_turn",
    "codex_turn",
    "gemini_turn",
    "new_turns",
    "opencode_turn",
    "read_json",
    "turns_of",
]

Turn = Callable[[Mapping[str, Any]], tuple[str, str] | None]
"""Reads one record of a transcript: the role and the text of what was said; `None`: nothing."""

_LONGEST_LINE: Final = 2**24
_AT_ONCE: Final = 2**21
"""The bytes of a transcript after which what was read is kept, before more is read."""

MOST_AT_ONCE: Final = 250
"""The messages after which it is kept: a hook that runs out of time has kept some of them."""

_LONGEST_ID: Final = 100
_ENDS: Final = 6
_LONGEST_OUTPUT: Final = 1_200
_CODEX: Final = {
    "user_message": "user",
    "agent_message": "assistant",
    "UserMessage": "user",
    "AgentMessage": "assistant",
}
_SHOWN: Final = ((STABLE_OPENING, BLOCK_CLOSE), ("<hook_context>", "</hook_context>"))
"""Where what a hook showed begins and ends: as we write it, and as Gemini CLI escapes it."""

_MARKUP: Final = ("<command-", "<local-command-", "<bash-", "<system-reminder>")


class Said(NamedTuple):
    """A part of a transcript.

    Attributes:
        messages: What was said in it; the id of each is that of its record, or else its place.
        end: The place in the file, in bytes, up to which it was read.
    """

    messages: list[Message]
    end: int


def new_turns(path: Path, start: int, turn: Turn) -> Iterator[Said]:
    """Yield what was said in a transcript from a place on, in parts; a line without end waits.

    A file that became shorter is read from its beginning. A line that is larger than 16 MB, no
    JSON or no record is passed. Of a record that is written again, the last of a part counts.

    Args:
        path: The file; a record of JSON a line.
        start: The place, in bytes, up to which it was read before.
        turn: Reads a record.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        place = file.seek(start if start <= size else 0)
        begun, messages = place, dict[str, Message]()
        while line := file.readline(_LONGEST_LINE):
            while len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
                line = file.readline(_LONGEST_LINE)
            if not line.endswith(b"\n"):
                break
            with suppress(ValueError):
                for message in turns_of([read_json(line)], turn, place):
                    messages.pop(message.id or "", None)
                    messages[message.id or ""] = message
            place = file.tell()
            if place - begun > _AT_ONCE or len(messages) >= MOST_AT_ONCE:
                yield Said([*messages.values()], place)
                begun, messages = place, {}
        yield Said([*messages.values()], place)


def turns_of(records: Iterable[Any], turn: Turn, place: int = 0) -> list[Message]:
    """Return what was said in the records of a conversation, oldest first.

    Args:
        records: The records; what is none says nothing.
        turn: Reads a record.
        place: The number of the first one, which is the id of a record without one.
    """
    read = (_message_of(each, turn, f"{number}") for number, each in enumerate(records, place))
    return [message for message in read if message is not None]


def read_json(text: bytes) -> Any:
    """Read JSON; a half character, which a program in JavaScript may write, is replaced.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            return json.loads(_whole(json.dumps(json.loads(text), ensure_ascii=False)))
        except RecursionError:
            raise ValueError from None


def _message_of(record: Any, turn: Turn, place: str) -> Message | None:
    """Return what was said in a record; `None`: nothing, or it is none of this kind."""
    try:
        said = turn(record)
        mark = record.get("uuid") or record.get("id") or record.get("info", {}).get("id") or place
    except (AttributeError, TypeError, KeyError):
        return None
    text = _own_words(said[1]) if said is not None else ""
    if said is None or not text:
        return None
    call = place if said[0] == "tool" else None
    moment = read_moment(record.get("timestamp"))
    return Message(
        role=Role(said[0]),
        content=text,
        id=str(mark)[:_LONGEST_ID],
        tool_call_id=call,
        metadata={} if moment is None else {"said_at": moment.isoformat()},
    )


def _own_words(text: str) -> str:
    """Return a text without what was shown in it as memory, and without half characters."""
    whole = _whole(text)
    for opening, closing in _SHOWN:
        before, *shown = whole.split(opening)
        whole = "".join((before, *(each.partition(closing)[2] for each in shown)))
    return whole.strip()


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _ends(text: str) -> str:
    """Return the first and the last lines of the output of a tool."""
    lines = text.splitlines()
    if len(lines) > 2 * _ENDS:
        lines = [*lines[:_ENDS], "[...]", *lines[-_ENDS:]]
    short = "\n".join(lines)
    half = _LONGEST_OUTPUT // 2
    return short if len(short) <= _LONGEST_OUTPUT else f"{short[:half]} [...] {short[-half:]}"


def _text_of(content: Any, *kinds: str) -> str:
    """Return the text of a content: a text, or a list of parts, of which some kinds have one."""
    if isinstance(content, str):
        return content
    parts = [each for each in content or () if isinstance(each, dict)]
    told = [part.get("text") for part in parts if not kinds or part.get("type") in kinds]
    return "\n".join(text for text in told if isinstance(text, str))


def claude_turn(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read a record of Claude Code: no subagent, no error of its API, nothing that it added.

    The format is documented as internal; these fields are those of versions 2.1:
    https://code.claude.com/docs/en/sessions
    """
    added = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
    role = record.get("type")
    if role not in {"user", "assistant"} or any(record.get(name) for name in added):
        return None
    content = record["message"]["content"]
    parts = [] if isinstance(content, str) else content
    results = [each for each in parts if isinstance(each, dict)]
    results = [each for each in results if each.get("type") == "tool_result"]
    if results:
        return "tool", _ends("\n".join(_text_of(each.get("content")) for each in results))
    text = _text_of(content, "text")
    return None if text.lstrip().startswith(_MARKUP) else (role, text)


def codex_turn(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read a record of a rollout of Codex: what its terminal shows, and the outputs of tools.

    Versions up to about 0.150 write a message as an event, later ones as an item of one. The
    format: https://github.com/openai/codex, `codex-rs/protocol/src/protocol.rs`.
    """
    told = record["payload"]
    item = told.get("item") or told
    kind = item.get("type")
    if record.get("type") == "event_msg":
        role = _CODEX.get(kind)
        return None if role is None else (role, _text_of(item.get("content") or item["message"]))
    if kind != "function_call_output":
        return None
    output = told.get("output")
    return "tool", _ends(_text_of(output["content"] if isinstance(output, dict) else output))


def gemini_turn(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read a record of a recorded chat of Gemini CLI, versions from 0.40 on."""
    role = {"user": "user", "gemini": "assistant"}.get(record.get("type", ""))
    typed = record.get("displayContent") or record.get("content")
    return None if role is None else (role, _text_of(typed))


def opencode_turn(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """Read a message of OpenCode, as its client returns it, with its parts.

    The format: https://opencode.ai/docs/sdk
    """
    parts = [each for each in record["parts"] if not each.get("synthetic")]
    role = record["info"]["role"]
    return None if role not in {"user", "assistant"} else (role, _text_of(parts, "text"))
