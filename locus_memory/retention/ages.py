"""Ages as text, such as `30d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError

__all__ = ["read_age"]

_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_age(text: str) -> timedelta:
    """Return the duration that `90s`, `45m`, `12h`, `30d` or `2w` stands for.

    Raises:
        InvalidArgumentError: The text is not an age, or the age is too large.
    """
    found = _AGE.fullmatch(text)
    if not found:
        raise InvalidArgumentError(
            f"invalid age {quote(text)}: give a number and s, m, h, d or w, such as 30d"
        )
    try:
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        raise InvalidArgumentError(f"age {quote(text)} is too large: give a shorter one") from None
