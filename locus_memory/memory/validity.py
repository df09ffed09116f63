"""When something is true, and what was known of it when: moments and days of two times; pure.

What is true from when to when is stated by `valid_from` and `valid_to`, each a day or a moment.
What was known when is told by the ledger, see `known`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final, Self

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment
from locus_memory.store.item import timestamp

__all__ = [
    "SAID_AT",
    "VALIDITY",
    "VALID_FROM",
    "VALID_TO",
    "Moment",
    "Then",
    "bounds",
    "checked",
    "moment_in",
    "said_at",
    "stated",
    "validity_words",
]

Moment = date | datetime | str | float
"""A moment or a day as a caller gives it: a `datetime`, ISO 8601, or seconds since the epoch."""

VALID_FROM: Final = "valid_from"
"""The key in a memory's metadata for when what it says began to be true: a day or a moment, ISO
8601. The ledger writes the moment of the statement there, if nobody states a validity."""

VALID_TO: Final = "valid_to"
"""The key in a memory's metadata for when it ceased to be true: a day, to its end, or a moment."""

SAID_AT: Final = "stated_at"
"""The key in a memory's metadata for the moment of its statement, if a validity is stated."""

VALIDITY: Final = (VALID_FROM, VALID_TO)

_DAY: Final = 10
_LONGEST: Final = 40
_ALWAYS: Final = datetime.min.replace(tzinfo=UTC)
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def said_at(memory: Memory) -> str:
    """Return the moment of a memory's statement, ISO 8601; empty if it is unknown."""
    told = map(memory.metadata.get, (SAID_AT, VALID_FROM, "created_at"))
    return next((each for each in told if isinstance(each, str)), "")


def stated(memory: Memory) -> dict[str, Any]:
    """Return the validity of a written memory as it was stated; empty: nobody stated one."""
    told = memory.metadata
    return {name: told[name] for name in VALIDITY if name in told} if SAID_AT in told else {}


def moment_in(value: object, zone: tzinfo | None, name: str = "a moment") -> datetime:
    """Return the moment of an argument, in UTC; a day is its beginning.

    Args:
        value: A `datetime`, ISO 8601, or seconds since the epoch.
        zone: The time zone of one without an offset; `None`: that of the machine.
        name: Its name, for the error.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return timestamp(value)
        text = str(value).strip() if isinstance(value, date | str) else ""
        read = datetime.fromisoformat(text if len(text) <= _LONGEST else "")
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidArgumentError(
            f"{name} is a datetime, ISO 8601 such as 2026-05-12, or seconds since the epoch, "
            f"not {quote(value)}"
        ) from error


def checked(
    metadata: Mapping[str, Any], zone: tzinfo | None, *, leniently: bool = False
) -> dict[str, Any]:
    """Return metadata with the validity that they state as texts; `None` is none.

    A day stays a day. A moment gets the offset of the zone.

    Args:
        metadata: The metadata.
        zone: The time zone of the user; `None`: that of the machine.
        leniently: Whether to leave out what is not valid.

    Raises:
        InvalidArgumentError: A value is no day and no moment, or the end is not after the start.
    """
    found = {name: each for name, each in metadata.items() if name not in VALIDITY}
    for name in VALIDITY:
        try:
            found |= _stated(found, name, metadata.get(name), zone)
        except InvalidArgumentError:
            if not leniently:
                raise
    return found


def _stated(
    found: Mapping[str, Any], name: str, value: object, zone: tzinfo | None
) -> dict[str, str]:
    told = {} if value is None else {name: _written(value, zone)}
    start, end = bounds({**found, **told}, zone)
    # The moment of a statement, which the ledger wrote, is no start that anybody states.
    is_default = "sequence" in found and SAID_AT not in found
    if start is not None and end is not None and start >= end and not is_default:
        raise InvalidArgumentError(f"{VALID_TO} is after {VALID_FROM}: {quote(told[name])}")
    return told


def _written(value: object, zone: tzinfo | None) -> str:
    """Return a day, or a moment in the time zone, as text.

    Raises:
        InvalidArgumentError: It is neither.
    """
    moment = moment_in(value, zone)
    with suppress(ValueError):
        return date.fromisoformat(str(value).strip()).isoformat()
    return moment.astimezone(zone).isoformat()


def bounds(
    validity: Mapping[str, Any], zone: tzinfo | None
) -> tuple[datetime | None, datetime | None]:
    """Return the first moment of a validity, and the first one after it; `None`: it is open.

    Args:
        validity: The values by name.
        zone: The time zone of the days; `None`: that of the machine.
    """
    first, last = (_edge(validity.get(name), zone, name) for name in VALIDITY)
    return first, last


def _edge(value: object, zone: tzinfo | None, name: str) -> datetime | None:
    """Return the moment at which a day or a moment bounds a validity; `None`: it does not."""
    if not (isinstance(value, str) and len(value) == _DAY):
        return read_moment(value)
    try:
        day = date.fromisoformat(value) + timedelta(days=name == VALID_TO)
        return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        # It is no day, or one at the ends of the calendar, where it is open.
        return None


def validity_words(validity: Mapping[str, Any], said: str) -> str:
    """Return a few words for a validity, in brackets after a space; empty: there is nothing to add.

    Args:
        validity: The values by name, see `stated`.
        said: What is said, whose own dates are not repeated.
    """
    days = [str(validity.get(name) or "")[:_DAY] for name in VALIDITY]
    first, last = ("" if day in said else day for day in days)
    if first and last:
        return f" ({first} to {last})"
    return f" (from {first})" if first else f" (until {last})" if last else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Then:
    """A moment to answer for: what was known then, or what was true then.

    Attributes:
        as_of: What was known at this moment counts, in UTC; `None`: what is known now.
        at: What was true at this moment counts, likewise; `None`: whenever it is true.
        zone: The time zone of days; `None`: that of the machine.
    """

    as_of: datetime | None = None
    at: datetime | None = None
    zone: tzinfo | None = None

    @classmethod
    def read(cls, as_of: object, at: object, zone: tzinfo | None) -> Self | None:
        """Return the moment of arguments, see `moment_in`; `None`: now.

        Raises:
            InvalidArgumentError: One is no moment.
        """
        if as_of is None and at is None:
            return None
        known, true = (None if each is None else moment_in(each, zone) for each in (as_of, at))
        return cls(as_of=known, at=true, zone=zone)

    @property
    def now(self) -> datetime:
        """The present of the answer: ages and ends are those of this moment."""
        return self.as_of or self.at or datetime.now(UTC)

    def has(self, said: object, validity: Mapping[str, Any]) -> bool:
        """Return whether something that was said once was known and true then.

        Args:
            said: The moment of its statement, from which it is true if it states no validity.
            validity: Its stated validity.
        """
        moment = read_moment(said)
        is_known = self.as_of is None or (moment is not None and moment <= self.as_of)
        return is_known and (self.at is None or self.is_true(said, validity))

    def start(self, said: object, validity: Mapping[str, Any]) -> datetime:
        """Return since when something is stated to be true: by default, since it was said."""
        return bounds(validity, self.zone)[0] or read_moment(said) or _ALWAYS

    def end(self, validity: Mapping[str, Any]) -> datetime:
        """Return the first moment at which something is not true any more."""
        return bounds(validity, self.zone)[1] or _NEVER

    def has_begun(self, said: object, validity: Mapping[str, Any]) -> bool:
        """Return whether something has begun to be true until `at`."""
        start = (bounds(validity, self.zone)[0] or _ALWAYS) if validity else read_moment(said)
        return start is not None and start <= (self.at or self.now)

    def is_true(self, said: object, validity: Mapping[str, Any]) -> bool:
        """Return whether something with this validity is true at `at`."""
        return self.has_begun(said, validity) and (self.at or self.now) < self.end(validity)
