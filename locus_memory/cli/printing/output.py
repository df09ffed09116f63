"""Basic output of the commands: text for people, one JSON document for programs."""

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
    """Rich's console, which leaves the handling of a broken pipe to the command."""

    @override
    def on_broken_pipe(self) -> None:
        """Raise the error again."""
        raise BrokenPipeError

    @override
    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print without cropping long lines."""
        super().print(*objects, crop=crop, **options)


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr; it uses colours only on a terminal."""
    return _Console(file=sys.stderr if stderr else sys.stdout, highlight=False, emoji=False)


def print_json(document: Any) -> None:
    """Print one indented JSON document and a line feed."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def note(text: str, *, verbatim: bool = False) -> None:
    """Print a note on one line of stderr: neither a result nor an error.

    Args:
        text: The note.
        verbatim: Whether to keep its spaces, as in a command.
    """
    line = visible_name(text) if verbatim else visible(" ".join(text.split()))
    # Keep the order of both streams where they share one terminal.
    sys.stdout.flush()
    sys.stderr.write(f"({line})\n")
    sys.stderr.flush()


def sees_progress(output: Console) -> bool:
    """Return whether the output can show a progress bar."""
    return output.is_terminal and not output.is_dumb_terminal


def remark(output: Console, text: str) -> None:
    """Print a remark, which is no record: on a pipe, it goes to stderr as a note."""
    if output.is_terminal:
        output.out(visible(text), highlight=False)
    else:
        note(text)


def visible(text: str) -> str:
    """Return `text` with control characters escaped, so that data cannot drive a terminal."""
    return text.translate(_KEPT)


def visible_name(text: str) -> str:
    """Return a name on one line, with line feeds and tabs escaped as well."""
    return text.translate(_CONTROLS)


def snippet(text: str, width: int = 200) -> str:
    """Return `text` on one line, cut to `width` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def compact(value: Any) -> str:
    """Return a JSON value on one line; a string stays unchanged."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def moment(when: datetime) -> str:
    """Return a UTC time to the second."""
    return when.strftime("%Y-%m-%d %H:%M:%S")


def number(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"
