"""The dates that a text names: "8 May 2023", "in May"."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import Final, NamedTuple

from locus_memory._internal.lazy import compiled_later

__all__ = ["Named", "Period", "day_in_words", "find_dates", "find_named"]

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_OTHER_MONTHS: Final = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
_MONTH_NUMBERS: Final = {
    **{
        month.lower(): number
        for months in _OTHER_MONTHS
        for number, month in enumerate(months.split(), 1)
    },
    **{month: number for number, month in enumerate(_MONTHS, 1)},
    **{month[:3]: number for number, month in enumerate(_MONTHS, 1)},
    "sept": 9,
}
_LEAP_YEAR: Final = 2000
"""The placeholder for any year: it has every day that a year can have."""

_MONTH: Final = (
    r"(?P<month>January|February|March|April|May|June|July|August|September|October|November"
    r"|December|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_OTHER_MONTH: Final = f"(?P<month>{'|'.join(' '.join(_OTHER_MONTHS).split())})"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)"
_DIGIT: Final = compiled_later(re.compile, r"\d")
_WITH_DIGITS: Final = tuple(
    compiled_later(re.compile, pattern, flags)
    for pattern, flags in (
        (r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b", 0),
        (rf"\b{_DAY}(?:\s+of)?\s+{_MONTH}{_YEAR}?", re.IGNORECASE),
        (rf"\b{_MONTH}\s+{_DAY}(?!\d){_YEAR}?", re.IGNORECASE),
        # Chinese and Japanese, then German, French and Spanish.
        (r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号號]?)?", 0),
        (
            (
                rf"\b(?P<day>\d{{1,2}})(?:\.|er)?\s+(?:de\s+)?{_OTHER_MONTH}\b"
                r"(?:\s+(?:del?\s+)?(?P<year>\d{4})\b)?"
            ),
            re.IGNORECASE,
        ),
        (rf"\b{_OTHER_MONTH}\s+(?:de\s+)?(?P<year>\d{{4}})\b", re.IGNORECASE),
        (rf"\b{_MONTH}{_YEAR}", re.IGNORECASE),
    )
)
_WITHOUT_DIGITS: Final = (
    compiled_later(re.compile, rf"\b(?:im|en|au mois de)\s+{_OTHER_MONTH}\b", re.IGNORECASE),
    # Alone, "may" and "march" are ordinary words.
    compiled_later(
        re.compile,
        rf"\b(?:[Ii]n|[Oo]f|[Ss]ince|[Dd]uring|[Uu]ntil|[Bb]y|[Ee]arly|[Ll]ate)\s+{_MONTH}\b",
    ),
)


@dataclass(frozen=True, slots=True)
class Period:
    """A period that a text names.

    Attributes:
        first: The first day.
        last: The last day, inclusive.
        every_year: Whether no year is named; the year of the dates is then 2000.
    """

    first: date
    last: date
    every_year: bool = False

    @property
    def in_words(self) -> str:
        """The day as `day_in_words` writes it, or the month, with the year if one is named."""
        words = day_in_words(self.first).split()
        kept = words if self.first == self.last else words[1:]
        return " ".join(kept[:-1] if self.every_year else kept)

    def covers(self, day: date) -> bool:
        """Whether a day is in the period."""
        if not self.every_year:
            return self.first <= day <= self.last
        return self.first <= day.replace(year=_LEAP_YEAR) <= self.last


def day_in_words(day: date) -> str:
    """Return a day in the words that text search finds in an item of it, such as `8 May 2023`."""
    # Not with strftime: its month names depend on the locale, and its "%-d" on the platform.
    return f"{day.day} {_MONTHS[day.month - 1].capitalize()} {day.year}"


def find_dates(text: str) -> tuple[Period, ...]:
    """Return the periods that a text names, in no particular order, each once.

    It finds days and months with or without a year in English, German, French, Spanish, Chinese and
    Japanese, and ISO dates.
    """
    return tuple(dict.fromkeys(each.period for each in find_named(text)))


class Named(NamedTuple):
    """A day or a month that a text names, and where.

    Attributes:
        period: The period.
        start: Where its name starts.
        end: Where its name ends.
    """

    period: Period
    start: int
    end: int


def find_named(text: str) -> list[Named]:
    """Return the days and months that a text names, each time it does, in the order of the text."""
    found: list[Named] = []
    with_digits = _WITH_DIGITS if _DIGIT.search(text) else ()
    # The most complete patterns come first: text that one has matched is not matched again.
    for pattern in (*with_digits, *_WITHOUT_DIGITS):
        for match in pattern.finditer(text):
            start, end = match.span()
            period = _named_period(match.groupdict())
            if period and not any(start < each.end and each.start < end for each in found):
                found.append(Named(period, start, end))
    return sorted(found, key=attrgetter("start"))


def _named_period(parts: dict[str, str | None]) -> Period | None:
    name = (parts["month"] or "").casefold().rstrip(".")
    # Regardless of case, "i" also matches a dotless one, which no folding changes.
    month = int(name) if name.isdigit() else _MONTH_NUMBERS.get(name.replace("\u0131", "i"), 0)
    day = int(parts.get("day") or 0)
    year = int(parts.get("year") or _LEAP_YEAR)
    every_year = parts.get("year") is None
    try:
        first = date(year, month, day or 1)
    except ValueError:
        return None
    last = first if day else first.replace(day=monthrange(year, month)[1])
    return Period(first, last, every_year)
