"""Filters of the templates: numbers, sizes, moments and JSON as text that is escaped later."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import BaseModel

from locus_memory.inspection.names import format_namespace
from locus_memory.inspection.text import counted, moment, number, snippet, visible, visible_name
from locus_memory.web.pages.frame.tree import grow

__all__ = ["FILTERS", "as_json", "as_moment", "as_size"]

_STEP: Final = 1_000


def as_size(count: float | None) -> str:
    """Return a number of bytes in the largest unit that keeps it at 1 or more."""
    if count is None:
        return "—"
    if count < _STEP:
        return f"{count:,.0f} B"
    size, unit = float(count), "B"
    for unit in ("kB", "MB", "GB", "TB"):  # noqa: B007 - the last unit is used
        size /= _STEP
        if size < _STEP - 0.05:
            break
    return f"{size:.1f} {unit}"


def as_moment(when: datetime | str | float | None) -> str:
    """Return a moment in UTC to the second; a text that is none stays as it is."""
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return visible_name(str(when))
    if isinstance(when, int | float):
        when = datetime.fromtimestamp(when, UTC)
    if when is None:
        return "—"
    return moment(when if when.tzinfo is None else when.astimezone(UTC))


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """Return a value as JSON, with integers of any size."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    return json.dumps(plain, indent=indent, ensure_ascii=False, default=str)


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "size": as_size,
    "moment": as_moment,
    "number": number,
    "counted": counted,
    "json": as_json,
    "snippet": snippet,
    "visible": visible,
    "name": visible_name,
    "namespace": format_namespace,
    "grow": grow,
}
"""The filters by their names in templates; what they return is escaped as any other text."""
