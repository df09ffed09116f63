"""Basic output of the commands: text for people, one JSON document for programs."""

from __future__ import annotations

import re
import sys
from typing import Any

import orjson
from rich.console import Console
from rich.text import Text
from typing_extensions import override

from locus_memory.inspection.text import number, visible, visible_name

__all__ = [
    "console",
    "marked",
    "note",
    "print_json",
    "print_sizes",
    "remark",
    "sees_progress",
    "shown",
    "write_out",
]


# What reorders, breaks or hides the text around it, and the controls of 8 bits. Joiners stay: words
# of many scripts are spelled with them. A JSON string may hold each of them only as it is.
_MARKS = re.compile(
    "[\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


class _Console(Console):
    """Rich's console, which leaves the handling of a broken pipe to the command."""

    @override
    def on_broken_pipe(self) -> None:
        """Raise the error again."""
        raise BrokenPipeError

    @override
    def print(self, *objects: Any, crop: bool = False, **options: Any) -> None:
        """Print without cropping long lines; a terminal gets marks escaped."""
        if self.is_terminal:
            objects = tuple(map(marked, objects))
        super().print(*objects, crop=crop, **options)

    @override
    def out(self, *objects: Any, **options: Any) -> None:
        """Print text as it is; a terminal gets marks escaped."""
        super().out(*(map(marked, objects) if self.is_terminal else objects), **options)


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr; it uses colours only on a terminal."""
    return _Console(file=sys.stderr if stderr else sys.stdout, highlight=False, emoji=False)


def print_json(document: Any) -> None:
    """Print one indented JSON document and a line feed."""
    write_out(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def write_out(text: str) -> None:
    """Write text to stdout; a terminal gets marks escaped, as they are also written in JSON."""
    sys.stdout.write(shown(text, console()))


def shown(text: str, output: Console) -> str:
    """Return text for an output: a terminal gets marks escaped, all others get it as it is."""
    return str(marked(text)) if _MARKS.search(text) and output.is_terminal else text


def marked(text: Any) -> Any:
    """Return a string or a `Text` with marks of direction, breaks and 8-bit controls escaped.

    They would let data reorder or hide what a terminal shows. A `Text` that has one loses its
    spans. Anything else is returned as it is.
    """
    if isinstance(text, Text):
        return text.blank_copy(marked(text.plain)) if _MARKS.search(text.plain) else text
    return _MARKS.sub(_escape, text) if isinstance(text, str) else text


def _escape(mark: re.Match[str]) -> str:
    return f"\\u{ord(mark.group()):04x}"


def note(text: str, *, verbatim: bool = False) -> None:
    """Print a note on one line of stderr: neither a result nor an error.

    Args:
        text: The note.
        verbatim: Whether to keep its spaces, as in a command.
    """
    line = visible_name(text) if verbatim else visible(" ".join(text.split()))
    # Keep the order of both streams where they share one terminal.
    sys.stdout.flush()
    sys.stderr.write(shown(f"({line})\n", console(stderr=True)))
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


def print_sizes(output: Console, sizes: dict[str, int | None]) -> bool:
    """Print the size of a database before and after; return whether it is known."""
    before, after = sizes["before"], sizes["after"]
    if before is None or after is None:
        return False
    output.out(f"on disk: {number(after)} bytes, {number(before)} before", highlight=False)
    return True
