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

__all__ = [
    "compact",
    "console",
    "moment",
    "number",
    "print_json",
    "snippet",
    "table",
    "visible",
]

_GAP = 2
_NARROWEST = 16
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_KEPT = {code: escape for code, escape in _CONTROLS.items() if code not in (9, 10)}


class _Console(Console):
    """Rich's console, which leaves it to the command to say that nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Raise what was caught."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console for stdout or stderr; no colours where it is no terminal."""
    return _Console(file=sys.stderr if stderr else sys.stdout, highlight=False, emoji=False)


def print_json(document: Any) -> None:
    """Print one JSON document, indented, a line feed after it."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """Return a table without lines.

    Args:
        columns: The titles; `>` in front aligns to the right, and the one with `~` is cut off
            to what the others leave of the line.
        rows: The cells; no markup in them.
    """
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    cells = [[Text(visible(c)) if isinstance(c, str) else c for c in row] for row in rows]
    for place, title in enumerate(columns):
        name = title.lstrip(">~")
        cut = title.startswith("~")
        made.add_column(
            name,
            justify="right" if title.startswith(">") else "left",
            no_wrap=cut or title.startswith(">"),
            overflow="ellipsis" if cut else "fold",
            max_width=_room(columns, cells, place) if cut else None,
        )
    for row in cells:
        made.add_row(*row)
    return made


def _room(columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int) -> int:
    """Return how wide a column may be without squeezing the others."""
    taken = 0
    for other, title in enumerate(columns):
        if other != place:
            widths = (row[other].cell_len for row in cells)
            taken += _GAP + max((len(title.lstrip(">~")), *widths))
    return max(_NARROWEST, console().width - taken - _GAP)


def visible(text: str) -> str:
    """Return `text` with control characters written out, so that data drives no terminal."""
    return text.translate(_KEPT)


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
