"""The output of the memory commands: a memory as JSON and as a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from locus_memory.cli.printing.tables import Cell, Cut, print_table
from locus_memory.inspection.text import snippet, visible, visible_name

if TYPE_CHECKING:
    from rich.console import Console


__all__ = ["Row", "origin", "print_memories", "print_versions"]

from locus_memory.inspection.memories import Row, ending_of

_CONTENT = 160
_KEY = 80
_NAME = 16
_DAY = 10


def print_memories(
    console: Console, rows: Sequence[Row], *, with_user: bool, with_sources: bool
) -> None:
    """Print the current memories."""
    columns = ["type", "key", "*content", "since", "from"]
    cells = [_cells(row, _content(row, with_sources=with_sources)) for row in rows]
    records = [
        [*_cells(row, row["content"], None), _before(row), *(_said(row) if with_sources else ())]
        for row in rows
    ]
    if with_user:
        columns.insert(0, "user")
        for lines in (cells, records):
            for cell, row in zip(lines, rows, strict=True):
                cell.insert(0, Cut(visible_name(row["user"] or ""), _KEY))
    print_table(console, columns, cells, records=records)


def _cells(row: Row, content: Cell, width: int | None = _NAME) -> list[Cell]:
    return [
        row["type"],
        Cut(visible_name(row["key"]), _KEY),
        content,
        _day(row["since"]),
        origin(row, width),
    ]


def _before(row: Row) -> str:
    return "" if row["replaced"] is None else str(row["replaced"]["content"])


def _said(row: Row) -> list[str]:
    """Return the texts of a memory's source messages."""
    return [source["text"] for source in row["sources"] if source["text"] is not None]


def print_versions(console: Console, rows: Sequence[Row]) -> None:
    """Print the versions of memories, each current one before its earlier ones."""
    cells: list[list[Cell]] = [
        [
            row["type"],
            _day(row["since"]),
            _end(row),
            Text(" ".join(visible(row["content"]).split()), style="dim" if row["until"] else ""),
            origin(row),
        ]
        for row in rows
    ]
    records = [
        [*cell[:3], row["content"], origin(row, None)]
        for cell, row in zip(cells, rows, strict=True)
    ]
    print_table(console, ["type", "since", "until", "*content", "from"], cells, records=records)


def _content(row: Row, *, with_sources: bool) -> Text:
    """Return the content, and below it the replaced content and the source texts."""
    lines = Text(snippet(row["content"], _CONTENT))
    if row["replaced"] is not None:
        lines.append(f"\n  before: {snippet(row['replaced']['content'], _CONTENT)}", style="dim")
    for text in _said(row) if with_sources else ():
        lines.append(f"\n  said: {snippet(text, _CONTENT)}", style="dim")
    return lines


def _end(row: Row) -> str:
    ending = ending_of(row)
    return "now" if ending is None else f"{_day(row['until'])} {ending}"


def _day(moment: str | None) -> str:
    return "" if moment is None else visible(moment[:_DAY])


def origin(row: Row, width: int | None = _NAME) -> str:
    """Return the thread and the places of the source messages, or the extractor's name.

    A memory without authority is marked, and one that a person wrote in place of a message.

    Args:
        row: The memory.
        width: How many characters of the name are shown; `None`: all.
    """
    sources = row["sources"]
    name = sources[0]["thread_id"] if sources else str(row["metadata"].get("extractor") or "")
    told = {
        "tool": ["(a tool)"],
        "document": ["(a document)"],
        "import": ["(imported)"],
        "person": ["(a person)"] if sources else [],
    }.get(str(row["origin"]), [])
    places = [f"#{each['place']}" for each in sources if each["place"] is not None]
    return " ".join([name if width is None else snippet(name, width), *places, *told])
