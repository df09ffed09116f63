"""Moments as text: exact to the microsecond, and the same for the same moment."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["read_moment", "write_moment"]


def write_moment(moment: datetime) -> str:
    """Return a moment in UTC, in ISO 8601 with six digits of a second."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def read_moment(text: str) -> datetime:
    """Return the moment of a text that `write_moment` wrote.

    Raises:
        ValueError: It is not a moment with a time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a moment has a time zone")
    return moment
