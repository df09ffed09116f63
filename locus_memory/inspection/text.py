"""Text for people out of data: controls escaped, cut to one line, numbers and moments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

__all__ = ["compact", "counted", "moment", "number", "snippet", "visible", "visible_name"]

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_KEPT = {code: escape for code, escape in _CONTROLS.items() if code not in (9, 10)}


def visible(text: str) -> str:
    """Return `text` with control characters escaped, so that data cannot drive a terminal."""
    return text.translate(_KEPT)


def visible_name(text: str) -> str:
    """Return a name on one line, with line feeds and tabs escaped as well."""
    return text.translate(_CONTROLS)


def snippet(text: str, width: int = 200) -> str:
    """Return `text` on one line, cut to `width` characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def compact(value: Any) -> str:
    """Return a JSON value on one line; a string stays unchanged."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def moment(when: datetime) -> str:
    """Return a UTC time to the second."""
    return when.strftime("%Y-%m-%d %H:%M:%S")


def number(value: int) -> str:
    """Return an integer with thousands separators."""
    return f"{value:,}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, such as "1 item" and "2 memories".

    Args:
        count: The number.
        noun: The noun in the singular.
        plural: Its plural, if that is not the noun with an s.
    """
    return f"{number(count)} {noun if count == 1 else plural or noun + 's'}"
