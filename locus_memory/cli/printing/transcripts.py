"""The output of a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from locus_memory.cli.printing.output import marked
from locus_memory.inspection.text import compact, visible, visible_name
from locus_memory.inspection.threads import metadata_of, session_of

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "message_line",
    "message_record",
    "print_message",
    "print_text",
    "print_transcript",
]

_EDGE = 6
"""Width of a message's number, with the space around it."""

_NARROWEST = 16

_COLOURS = {"user": "cyan", "assistant": "green", "system": "magenta", "tool": "yellow"}


def print_transcript(console: Console, messages: Iterable[tuple[int, Any]]) -> None:
    """Print numbered messages, with a heading at the start of each session."""
    heading = ""
    for place, message in messages:
        current = session_of(message)
        if current and current != heading:
            print_text(console, Text(f"\n{current}" if heading else current, style="bold"))
            heading = current
        print_message(console, message_line(place, message))


def print_text(console: Console, text: Text) -> None:
    """Print text, wrapped on a terminal; on a pipe, its lines stay unchanged."""
    console.print(text, soft_wrap=not console.is_terminal)


def print_message(console: Console, line: Text, sign: Text | None = None) -> None:
    """Print a numbered message: on a terminal with a hanging indent, on a pipe on one line.

    Args:
        console: The console.
        line: The message, as `message_line` returns it.
        sign: A prefix of the line, such as `+`.
    """
    text = line if sign is None else sign.append_text(line)
    if not console.is_terminal:
        console.print(Text(visible_name(text.plain)), soft_wrap=True)
        return
    edge = _EDGE + (0 if sign is None else len(sign))
    before = text[:edge]
    for wrapped in marked(text[edge:]).wrap(console, max(_NARROWEST, console.width - edge)):
        console.print(before.append_text(wrapped), soft_wrap=True)
        before = Text(" " * edge)


def message_line(place: int, message: Any, style: str = "") -> Text:
    """Return a message as one numbered line; `style` applies to the whole line."""
    if not isinstance(message, dict):
        return Text(f"{place:>4}  {visible(compact(message))}", style=style)
    role = str(message.get("role", "?"))
    line = Text(f"{place:>4}  ", style=style or "dim")
    line.append(visible(str(message.get("name") or role)), style=style or _COLOURS.get(role, ""))
    line.append(f": {visible(_content(message))}", style=style)
    return line


def message_record(place: int, message: Any) -> list[str]:
    """Return a message as a record of a pipe: its place, its speaker and its content."""
    if not isinstance(message, dict):
        return [str(place), "", compact(message)]
    role = str(message.get("role", "?"))
    return [str(place), str(message.get("name") or role), _content(message)]


def _content(message: dict[str, Any]) -> str:
    parts = [] if message.get("content") is None else [compact(message["content"])]
    caption = metadata_of(message).get("image_caption")
    if caption:
        parts.append(f"[image: {compact(caption)}]")
    calls = message.get("tool_calls")
    parts += map(_call, calls if isinstance(calls, list) else [])
    return " ".join(parts).strip()


def _call(call: Any) -> str:
    if not isinstance(call, dict):
        return f"[calls {compact(call)}]"
    return f"[calls {call.get('name')}({compact(call.get('arguments', {}))})]"
