"""What commands print: tables and text for people, one JSON document for programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typing_extensions import override

__all__ = [
    "compact",
    "console",
    "moment",
    "note",
    "number",
    "print_json",
    "snippet",
    "table",
    "visible",
    "visible_name",
]

_GAP = 2
_NARROWEST = 16
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


def note(text: str) -> None:
    """Tell, on one line of stderr, what is neither an answer nor an error."""
    sys.stderr.write(f"({visible(' '.join(text.split()))})\n")
    sys.stderr.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """Return a table without lines.

    Args:
        columns: The titles; `>` in front aligns to the right, `=` keeps every cell on one line,
            and the one with `~` is cut off to what the others leave of the line.
        rows: The cells; no markup in them.
    """
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    cells = [[Text(visible_name(c)) if isinstance(c, str) else c for c in row] for row in rows]
    for place, title in enumerate(columns):
        cut = title.startswith("~")
        made.add_column(
            title.lstrip(">~="),
            justify="right" if title.startswith(">") else "left",
            no_wrap=title[:1] in (">", "~", "="),
            overflow="ellipsis" if cut else "fold",
            min_width=_least(columns, cells, place),
            max_width=_room(columns, cells, place) if cut else None,
        )
    for row in cells:
        made.add_row(*row)
    least = sum(_GAP + (column.min_width or 0) for column in made.columns) - _GAP
    if least > console().width:
        # It is left to the terminal to go on in the next line.
        made.width = least
    return made


def _least(columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int) -> int | None:
    """Return how wide a column must be, next to one that keeps its cells on one line."""
    if not any(title.startswith("=") for title in columns):
        return None
    widest = _widest(columns, cells, place)
    return widest if columns[place].startswith("=") else min(widest, _NARROWEST)


def _widest(columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int) -> int:
    lines = (line for row in cells for line in row[place].split())
    return max((len(columns[place].lstrip(">~=")), *(line.cell_len for line in lines)))


def _room(columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int) -> int:
    """Return how wide a column may be without squeezing the others."""
    others = [other for other in range(len(columns)) if other != place]
    taken = sum(_GAP + _widest(columns, cells, other) for other in others)
    return max(_NARROWEST, console().width - taken - _GAP)


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
