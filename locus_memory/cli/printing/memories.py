"""The output of the memory commands: a memory as JSON and as a row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from locus_memory.cli.conversations.memory_sources import Sources
from locus_memory.cli.printing.output import snippet, visible, visible_name
from locus_memory.cli.printing.tables import Cell, Cut, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Memory

__all__ = ["Row", "describe", "earlier", "origin", "print_memories", "print_versions"]

Row = dict[str, Any]

_CONTENT = 160
_KEY = 80
_NAME = 16
_DAY = 10
_DIGITS = 4
_ENDINGS = {"update": "replaced", "delete": "deleted", "evict": "evicted", "undo": "undone"}


async def describe(
    manager: LLMMemoryManager, sources: Sources, memory: Memory, user: str | None
) -> Row:
    """Return a current memory as JSON, with the version that it replaced."""
    before = await earlier(manager, memory)
    (vitals,) = await manager.vitals([memory])
    return {
        "user": user,
        "id": memory.id,
        **await version(sources, memory),
        "salience": round(vitals.salience, _DIGITS),
        "trust": round(vitals.trust, _DIGITS),
        "hits": vitals.hits,
        "uses": vitals.use_count,
        "last_used": vitals.last_used,
        "replaced": await version(sources, before[0]) if before else None,
    }


async def version(sources: Sources, memory: Memory) -> Row:
    """Return one version of a memory as JSON."""
    from locus_memory.memory.validity import said_at  # noqa: PLC0415 - help must be quick

    return {
        "type": memory.type.value,
        "key": memory.key,
        "content": memory.content,
        "since": said_at(memory) or None,
        "until": _text(memory.metadata.get("superseded_at")),
        "origin": _text(memory.metadata.get("origin")),
        "sources": await sources.of(memory),
        "metadata": memory.metadata,
    }


async def earlier(manager: LLMMemoryManager, memory: Memory) -> list[Memory]:
    """Return the earlier versions of a current memory, the newest first."""
    number = _replaced(memory)
    if number is None:
        return []
    past = {
        str(each.metadata.get("sequence")): each
        for each in await manager.history(memory.key, memory.type)
        if "superseded_at" in each.metadata
    }
    chain: list[Memory] = []
    while number in past:
        chain.append(past.pop(number))
        number = _replaced(chain[-1])
    return chain


def _replaced(memory: Memory) -> str | None:
    """Return the number of the version that a memory replaced."""
    link = memory.metadata.get("supersedes")
    return str(link.get("sequence")) if isinstance(link, Mapping) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def print_memories(
    console: Console, rows: Sequence[Row], *, with_user: bool, with_sources: bool
) -> None:
    """Print the current memories."""
    columns = ["type", "key", "*content", "since", "from"]
    cells = [_cells(row, _content(row, with_sources=with_sources)) for row in rows]
    records = [
        [*_cells(row, row["content"]), _before(row), *(_said(row) if with_sources else ())]
        for row in rows
    ]
    if with_user:
        columns.insert(0, "user")
        for lines in (cells, records):
            for cell, row in zip(lines, rows, strict=True):
                cell.insert(0, Cut(visible_name(row["user"] or ""), _KEY))
    print_table(console, columns, cells, records=records)


def _cells(row: Row, content: Cell) -> list[Cell]:
    return [
        row["type"],
        Cut(visible_name(row["key"]), _KEY),
        content,
        _day(row["since"]),
        origin(row),
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
    records = [[*cell[:3], row["content"], cell[4]] for cell, row in zip(cells, rows, strict=True)]
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
    if row["until"] is None:
        return "now"
    by = row["metadata"].get("superseded_by")
    change = by.get("change") if isinstance(by, Mapping) else None
    return f"{_day(row['until'])} {_ENDINGS.get(str(change), 'replaced')}"


def _day(moment: str | None) -> str:
    return "" if moment is None else visible(moment[:_DAY])


def origin(row: Row) -> str:
    """Return the thread and the places of the source messages, or the extractor's name.

    A memory without authority is marked.
    """
    told = {"tool": ["(a tool)"], "document": ["(a document)"], "import": ["(imported)"]}.get(
        str(row["origin"]), []
    )
    if not row["sources"]:
        return " ".join([snippet(str(row["metadata"].get("extractor") or ""), _NAME), *told])
    places = [f"#{each['place']}" for each in row["sources"] if each["place"] is not None]
    return " ".join([snippet(row["sources"][0]["thread_id"], _NAME), *places, *told])
