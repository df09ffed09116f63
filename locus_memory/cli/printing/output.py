"""What commands print: text for people, one JSON document for programs."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from typing_extensions import override

__all__ = [
    "compact",
    "console",
    "moment",
    "note",
    "number",
    "print_json",
    "remark",
    "sees_progress",
    "snippet",
    "visible",
    "visible_name",
]

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_KEPT = {code: escape for code, escape in _CONTROLS.items() if code not in (9, 10)}


class _Console(Console):
    """Rich's console, which leaves it to the command to say that nobody reads any more."""

    @override
    def on_broken_pipe(self) -> None:
        """Raise what was caught."""
        raise BrokenPipeError

    @override
    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print; what has no room on a line is not cropped."""
        super().print(*objects, crop=crop, **options)


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr; no colours where it is no terminal."""
    return _Console(file=sys.stderr if stderr else sys.stdout, highlight=False, emoji=False)


def print_json(document: Any) -> None:
    """Print one JSON document, indented, a line feed after it."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def note(text: str, *, verbatim: bool = False) -> None:
    """Tell, on one line of stderr, what is neither an answer nor an error.

    Args:
        text: What.
        verbatim: Whether its spaces matter, as those of a command do.
    """
    line = visible_name(text) if verbatim else visible(" ".join(text.split()))
    # What was answered before is read before, where both go to one place.
    sys.stdout.flush()
    sys.stderr.write(f"({line})\n")
    sys.stderr.flush()


def sees_progress(output: Console) -> bool:
    """Whether whoever reads sees a bar that moves."""
    return output.is_terminal and not output.is_dumb_terminal


def remark(output: Console, text: str) -> None:
    """Print what is no record, such as that there is none; a pipe is not to read it."""
    if output.is_terminal:
        output.out(visible(text), highlight=False)
    else:
        note(text)


def visible(text: str) -> str:
    """Return `text` with control characters written out, so that data drives no terminal."""
    return text.translate(_KEPT)


def visible_name(text: str) -> str:
    """Return a name on one line, with line feeds and tabs written out as well."""
    return text.translate(_CONTROLS)


def snippet(text: str, width: int = 200) -> str:
    """Return `text` on one line, cut to `width` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def compact(value: Any) -> str:
    """Return a JSON value on one line; a string as it is."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def moment(when: datetime) -> str:
    """Return a UTC time to the second."""
    return when.strftime("%Y-%m-%d %H:%M:%S")


def number(value: int) -> str:
    """Return an integer with thousands separated."""
    return f"{value:,}"
