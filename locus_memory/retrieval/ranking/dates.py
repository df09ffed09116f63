"""The dates that a text names: "8 May 2023", "in May", "last week"."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, NamedTuple

__all__ = ["Named", "Period", "day_in_words", "find_dates", "find_named", "without"]

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
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTED: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS: Final = {**{word: number for number, word in enumerate(_COUNTED, 1)}, "a": 1, "an": 1}

_LEAP_YEAR: Final = 2000
"""The placeholder for any year: it has every day that a year can have."""

_MONTH: Final = (
    r"(?P<month>January|February|March|April|May|June|July|August|September|October|November"
    r"|December|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_OTHER_MONTH: Final = f"(?P<month>{'|'.join(' '.join(_OTHER_MONTHS).split())})"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR: Final = r"(?:,?\s+(?:of\s+)?(?P<year>\d{4})\b)"
_DIGIT: Final = re.compile(r"\d")
_WITH_DIGITS: Final = tuple(
    re.compile(pattern, flags)
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
    re.compile(rf"\b(?:im|en|au mois de)\s+{_OTHER_MONTH}\b", re.IGNORECASE),
    # Alone, "may" and "march" are ordinary words.
    re.compile(
        rf"\b(?:[Ii]n|[Oo]f|[Ss]ince|[Dd]uring|[Uu]ntil|[Bb]y|[Ee]arly|[Ll]ate)\s+{_MONTH}\b"
    ),
)
_AGO: Final = re.compile(
    rf"\b(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})\s+(?P<unit>day|week|month)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST: Final = re.compile(rf"\blast\s+(?P<what>week|month|year|{'|'.join(_DAYS)})\b", re.IGNORECASE)
_NEAR: Final = re.compile(r"\b(?P<what>today|yesterday)\b", re.IGNORECASE)


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

    def covers(self, day: date, *, slack: int = 0) -> bool:
        """Whether a day is in the period; a period of one day is extended by `slack` days."""
        near = timedelta(days=slack if self.first == self.last else 0)
        if not self.every_year:
            # Differences, not sums: a sum may exceed the calendar.
            return self.first - day <= near and day - self.last <= near
        years = (_LEAP_YEAR - 1, _LEAP_YEAR, _LEAP_YEAR + 1)
        moved = (_in_year(day, year) for year in years)
        return any(self.first - each <= near and each - self.last <= near for each in moved)


def day_in_words(day: date) -> str:
    """Return a day in the words that text search finds in an item of it, such as `8 May 2023`."""
    # Not with strftime: its month names depend on the locale, and its "%-d" on the platform.
    return f"{day.day} {_MONTHS[day.month - 1].capitalize()} {day.year}"


class Named(NamedTuple):
    """A day or a month that a text names, and where.

    Attributes:
        period: The period.
        start: Where its name starts.
        end: Where its name ends.
        told: Its name, without the year if it is a day: a text rarely repeats the year.
    """

    period: Period
    start: int
    end: int
    told: str


def _in_year(day: date, year: int) -> date:
    return day.replace(year=year, day=min(day.day, monthrange(year, day.month)[1]))


def find_dates(text: str, *, today: date | None = None) -> tuple[Period, ...]:
    """Return the periods that a text names, in no particular order, each once.

    It finds days and months with or without a year in English, German, French, Spanish, Chinese and
    Japanese, and ISO dates. If `today` is given, it also finds the English "yesterday", "three
    weeks ago", "last month", "last Friday" and similar phrases.

    Args:
        text: Any text.
        today: The day from which relative dates are counted; `None`: they are ignored.
    """
    found = [each.period for each in find_named(text)]
    if today is not None:
        found += _relative_periods(text, today)
    return tuple(dict.fromkeys(found))


def find_named(text: str) -> list[Named]:
    """Return the days and months that a text names, without relative ones, each time it does."""
    return list(_named_periods(text))


def without(text: str, named: Sequence[Named]) -> str:
    """Return a text without the dates that it names."""
    for each in sorted(named, reverse=True, key=_start):
        text = f"{text[: each.start]} {text[each.end :]}"
    return text


def _start(named: Named) -> int:
    return named.start


def _named_periods(text: str) -> Iterator[Named]:
    taken: list[tuple[int, int]] = []
    with_digits = _WITH_DIGITS if _DIGIT.search(text) else ()
    # The most complete patterns come first: text that one has matched is not matched again.
    for pattern in (*with_digits, *_WITHOUT_DIGITS):
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < other_end and other < end for other, other_end in taken):
                continue
            period = _named_period(match.groupdict())
            if period is not None:
                taken.append((start, end))
                yield Named(period, start, end, _told(match, period))


def _told(match: re.Match[str], period: Period) -> str:
    told = match[0]
    if period.first != period.last or period.every_year:
        return told
    start, end = (place - match.start() for place in match.span("year"))
    return f"{told[:start]} {told[end:]}"


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


def _relative_periods(text: str, today: date) -> Iterator[Period]:
    readings: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Period]], ...] = (
        (_NEAR, _near),
        (_LAST, _last),
        (_AGO, _ago),
    )
    for pattern, read in readings:
        for match in pattern.finditer(text):
            try:
                yield read(match, today)
            except (OverflowError, ValueError):
                continue


def _near(match: re.Match[str], today: date) -> Period:
    day = today - timedelta(days=match["what"].casefold() == "yesterday")
    return Period(day, day)


def _last(match: re.Match[str], today: date) -> Period:
    what = match["what"].casefold()
    if what == "week":
        monday = today - timedelta(days=today.weekday() + 7)
        return Period(monday, monday + timedelta(days=6))
    if what == "month":
        return _month_before(today, 1)
    if what == "year":
        return Period(date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))
    back = (today.weekday() - _DAYS.index(what) - 1) % 7 + 1
    day = today - timedelta(days=back)
    return Period(day, day)


def _ago(match: re.Match[str], today: date) -> Period:
    count = int(_NUMBERS.get(match["count"].casefold(), 0) or match["count"])
    unit = match["unit"].casefold()
    if unit == "month":
        return _month_before(today, count)
    day = today - timedelta(days=count * (7 if unit == "week" else 1))
    return Period(day, day)


def _month_before(today: date, count: int) -> Period:
    year, month = divmod(today.year * 12 + today.month - 1 - count, 12)
    first = date(year, month + 1, 1)
    return Period(first, first.replace(day=monthrange(year, month + 1)[1]))
