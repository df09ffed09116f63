"""The HTML of an object in a notebook: a small table with escaped texts."""

from __future__ import annotations

from collections.abc import Iterable

from locus_memory._internal.quoting import quote, shorten

__all__ = ["table"]

_MOST_ROWS = 50


def table(rows: Iterable[tuple[str, object]]) -> str:
    """Return an HTML table of names and values; texts are shown unchanged, long ones shortened."""
    from html import escape  # noqa: PLC0415 - it loads 2,000 names of characters

    known = list(rows)
    shown = "".join(
        f"<tr><th style='text-align:left'>{escape(shorten(name))}</th>"
        f"<td style='text-align:left'><pre>{escape(_text(value))}</pre></td></tr>"
        for name, value in known[:_MOST_ROWS]
    )
    left = len(known) - _MOST_ROWS
    more = f"<tr><td colspan='2'>and {left} more</td></tr>" if left > 0 else ""
    return f"<table>{shown}{more}</table>"


def _text(value: object) -> str:
    return shorten(value) if isinstance(value, str) else quote(value)
