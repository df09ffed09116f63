"""Tables for people, and one record a line for programs that read a pipe.

A column's title says how its cells are laid out on a terminal:

| title | cells |
|---|---|
| `name` | never broken |
| `>name` | never broken, aligned to the right |
| `*name` | wrapped |
| `~name` | cut off to what the others leave of the line |

Where the terminal is too narrow for that, each row becomes a few lines of its own. On a pipe, a
row is one line whatever its length: its cells with tabs between them, and no titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from locus_memory.cli.printing.output import moment, number, snippet, visible_name

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Cell", "Cut", "print_records", "print_table"]

_GAP = 2
_NARROWEST = 16
"""How wide a column that wraps must be to be read."""

_MARKS = ">~*"


@dataclass(frozen=True, slots=True)
class Cut:
    """A text that a terminal shows the beginning of, on one line, and a pipe all of.

    Attributes:
        text: The text.
        width: How many characters a terminal shows.
    """

    text: str
    width: int = 200


Cell = str | int | datetime | Cut | Text
"""What stands in a row: a name, a number, a time in UTC, a content, or a text with styles."""


def print_table(
    output: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    records: Sequence[Sequence[Cell]] | None = None,
) -> None:
    """Print a table on a terminal, and one record a line on a pipe.

    Args:
        output: Where to.
        columns: The titles; see the table of this module.
        rows: The cells of each row.
        records: The rows for a pipe, where a row of the table does not fit on one line.
    """
    if not output.is_terminal:
        print_records(output, rows if records is None else records)
        return
    cells = [[_shown(cell) for cell in row] for row in rows]
    if len(columns) > 1 and _least(columns, cells) > output.width:
        _print_stacked(output, columns, cells)
    else:
        output.print(_table(output, columns, cells))


def print_records(output: Console, records: Sequence[Sequence[Cell]]) -> None:
    """Print rows as lines, with a tab between two cells."""
    if not output.quiet:
        # Rich would make spaces of the tabs.
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
    """Whether the cells of a column may be narrower than what is in them."""
    return title.startswith(("~", "*"))


def _least(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> int:
    """Return how wide a terminal must be for the table to be read."""
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
    """Return how wide a column may be without squeezing the others."""
    others = [other for other in range(len(columns)) if other != place]
    taken = sum(_GAP + _widest(columns, cells, other) for other in others)
    return max(_NARROWEST, output.width - taken - _GAP)


def _print_stacked(
    output: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]]
) -> None:
    """Print each row as lines: its first cell, then the other short ones, then the long ones."""
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
    """Return the parts on lines as full as may be; one that is too long is left in one piece."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + _GAP <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
