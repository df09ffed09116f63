"""Moments of records: ISO 8601 texts in UTC, and the days between them; pure."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo
from typing import Final

__all__ = ["days_between", "local_day", "read_moment"]

_DAY: Final = 86_400.0


def read_moment(text: object) -> datetime | None:
    """Return the moment of an ISO 8601 text or a `datetime`, in UTC; `None` if it is neither.

    One without an offset is in UTC.
    """
    if not isinstance(text, str | datetime):
        return None
    try:
        parsed = text if isinstance(text, datetime) else datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def local_day(text: object, zone: tzinfo | None) -> date | None:
    """Return the day of an ISO 8601 text in a time zone; `None` if it has none.

    Args:
        text: The moment.
        zone: The time zone; `None`: that of the machine.
    """
    read = read_moment(text)
    try:
        return None if read is None else read.astimezone(zone).date()
    except (ValueError, OverflowError, OSError):
        # At the ends of the calendar, there is no such day.
        return None


def days_between(earlier: object, later: object) -> float:
    """Return the days from one moment to another, at least 0; 0 if one is not a moment."""
    first, last = read_moment(earlier), read_moment(later)
    if first is None or last is None:
        return 0.0
    return max(0.0, (last - first).total_seconds() / _DAY)
