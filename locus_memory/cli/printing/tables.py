"""Tables on a terminal, and one record per line on a pipe.

The title of a column gives the layout of its cells on a terminal:

| title | cells |
|---|---|
| `name` | never wrapped |
| `>name` | never wrapped, aligned to the right |
| `*name` | wrapped |
| `~name` | cut to the width that the other columns leave |

On a terminal that is too narrow, each row becomes a few lines. On a pipe, a row is one line of
any length: its cells with tabs between them, without titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from locus_memory.cli.printing.output import marked, remark
from locus_memory.inspection.text import moment, number, snippet, visible_name

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Cell", "Cut", "print_records", "print_report", "print_table"]

_GAP = 2
_NARROWEST = 16
"""Smallest readable width of a column that wraps."""

_MARKS = ">~*"


@dataclass(frozen=True, slots=True)
class Cut:
    """A text that a terminal shows cut to one line, and a pipe shows whole.

    Attributes:
        text: The text.
        width: Number of characters on a terminal.
    """

    text: str
    width: int = 200


Cell = str | int | datetime | Cut | Text
"""A cell of a row: a name, a number, a time in UTC, a content, or a text with styles."""


def print_table(
    output: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    records: Sequence[Sequence[Cell]] | None = None,
    empty: str | None = None,
) -> None:
    """Print a table on a terminal, and one record per line on a pipe.

    Args:
        output: The console.
        columns: The titles; see the table of this module.
        rows: The cells of each row.
        records: The rows for a pipe, if they differ from those of the table.
        empty: The remark in place of a table without rows; `None`: its titles.
    """
    if empty is not None and not rows:
        remark(output, empty)
        return
    if not output.is_terminal:
        print_records(output, rows if records is None else records)
        return
    cells = [[marked(_shown(cell)) for cell in row] for row in rows]
    if len(columns) > 1 and _least(columns, cells) > output.width:
        _print_stacked(output, columns, cells)
    else:
        output.print(_table(output, columns, cells))


def print_report(output: Console, columns: Sequence[str], row: Sequence[Cell]) -> None:
    """Print the figures of one report; on a pipe, each is a line with its title before it."""
    records = [[_name(title), cell] for title, cell in zip(columns, row, strict=True)]
    print_table(output, columns, [row], records=records)


def print_records(output: Console, records: Sequence[Sequence[Cell]]) -> None:
    """Print rows as lines, with a tab between two cells."""
    if not output.quiet:
        # Rich would turn the tabs into spaces.
        output.file.writelines("\t".join(map(_plain, record)) + "\n" for record in records)


def _table(output: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for place, title in enumerate(columns):
        cut = title.startswith("~")
        made.add_column(
            _name(title),
            justify="right" if title.startswith(">") else "left",
            no_wrap=not title.startswith("*"),
            overflow="ellipsis" if cut else "fold",
            min_width=None if _bends(title) else _widest(columns, cells, place),
            max_width=_room(output, columns, cells, place) if cut else None,
        )
    for row in cells:
        made.add_row(*row)
    return made


def _shown(cell: Cell) -> Text:
    if isinstance(cell, Text):
        return cell
    if isinstance(cell, Cut):
        return Text(snippet(cell.text, cell.width))
    if isinstance(cell, int):
        return Text(number(cell))
    return Text(moment(cell) if isinstance(cell, datetime) else visible_name(cell))


def _plain(cell: Cell) -> str:
    if isinstance(cell, Text):
        return visible_name(cell.plain)
    if isinstance(cell, Cut):
        return visible_name(cell.text)
    if isinstance(cell, datetime):
        return moment(cell)
    return visible_name(str(cell))


def _name(title: str) -> str:
    return title.lstrip(_MARKS)


def _bends(title: str) -> bool:
    """Whether the cells of a column may be narrower than their content."""
    return title.startswith(("~", "*"))


def _least(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> int:
    """Return the smallest width of a terminal for a readable table."""
    widths = [_widest(columns, cells, place) for place in range(len(columns))]
    needed = (
        min(width, _NARROWEST) if _bends(title) else width
        for title, width in zip(columns, widths, strict=True)
    )
    return sum(needed) + _GAP * (len(columns) - 1)


def _widest(columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int) -> int:
    lines = (line for row in cells for line in row[place].split())
    return max((len(_name(columns[place])), *(line.cell_len for line in lines)))


def _room(
    output: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]], place: int
) -> int:
    """Return the largest width of a column that leaves room for the others."""
    others = [other for other in range(len(columns)) if other != place]
    taken = sum(_GAP + _widest(columns, cells, other) for other in others)
    return max(_NARROWEST, output.width - taken - _GAP)


def _print_stacked(
    output: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]]
) -> None:
    """Print each row as lines: its first cell, the other short cells, then the long ones."""
    short = [place for place, title in enumerate(columns) if not _bends(title)]
    long = [place for place, title in enumerate(columns) if _bends(title)]
    for row in cells:
        output.print(Text(row[short[0]].plain, "bold"), soft_wrap=True)
        named = [f"{_name(columns[place])} {row[place].plain}" for place in short[1:] if row[place]]
        lines = list(map(Text, _filled(named, output.width - _GAP)))
        for place in long:
            lines += row[place].wrap(output, output.width - _GAP)
        for line in filter(None, lines):
            line.rstrip()
            output.print(Text(" " * _GAP).append_text(line), soft_wrap=True)


def _filled(parts: Sequence[str], width: int) -> list[str]:
    """Return the parts packed into lines; a part that is too long stays in one piece."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + _GAP <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
