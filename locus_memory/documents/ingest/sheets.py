"""Sheets of a spreadsheet as tables of Markdown."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from typing import Any, Final

from locus_memory.errors import InvalidArgumentError

__all__ = ["sheets_of"]

_MOST_ROWS: Final = 1_048_576
"""No sheet has more, but the number of a row may say so, and all before it are read as empty."""


def sheets_of(openpyxl: Any, content: bytes) -> str:
    """Return each sheet of a workbook as a heading and a table; of a formula, its last value.

    An empty cell is empty, and "NA" and "None" are words: a reader for calculations would make all
    of them one.

    Args:
        openpyxl: The library.
        content: The bytes of an `.xlsx` file.
    """
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        return "\n\n".join(
            f"## {_cell(sheet.title)}\n\n{table}".rstrip()
            for sheet in book.worksheets
            for table in [_table(sheet)]
        )
    finally:
        book.close()


def _table(sheet: Any) -> str:
    # A file may say that a sheet is smaller, or far larger, than it is.
    sheet.reset_dimensions()
    rows = [cells for cells in _rows(sheet) if cells]
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join(cells + [''] * (width - len(cells)))} |" for cells in rows]
    return "\n".join([*lines[:1], "| --- " * width + "|", *lines[1:]]) if lines else ""


def _rows(sheet: Any) -> Iterator[list[str]]:
    """Yield the rows without the empty cells at their ends."""
    for number, row in enumerate(sheet.iter_rows(values_only=True)):
        if number == _MOST_ROWS:
            raise InvalidArgumentError(f"a sheet has more than {_MOST_ROWS:,} rows")
        cells: Sequence[str] = list(map(_cell, row))
        last = max((place for place, each in enumerate(cells, 1) if each), default=0)
        yield list(cells[:last])


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime):
        # A day has no time of day.
        value = value.date() if value.time() == time() else value
    return "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
