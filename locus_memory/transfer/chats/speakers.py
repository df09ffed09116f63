"""Readers of chats between people, exported as text: WhatsApp and Slack.

A header line has the moment, the speaker and, in WhatsApp, the beginning of the text; the lines
up to the next header go on with it. One speaker is the user, and the others keep their names. A
chat may last for years, so each day of it is a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from locus_memory.transfer.chats.conversation import (
    Asked,
    Conversation,
    Entry,
    Reader,
    Unread,
    UnreadError,
)
from locus_memory.transfer.chats.entries import LARGEST

__all__ = ["Header", "read_slack", "read_whatsapp", "slack_header", "whatsapp_header"]


class Header(NamedTuple):
    """The header of a message.

    Attributes:
        date: The three numbers of its date, as they stand there; empty if it has none.
        clock: Its time, `HH:MM:SS`, with an offset if the export has one.
        speaker: The speaker; empty in a line of the app itself.
        text: The beginning of the text.
        is_american: Whether its form is that of the United States, where the month stands first.
    """

    date: tuple[int, ...]
    clock: str
    speaker: str
    text: str
    is_american: bool = False


# Each repetition is bounded, so a line takes time in proportion to its length.
_WHATSAPP: Final = re.compile(
    r"[\u200e\u200f]{0,2}\[?(\d{1,4})[/.\-](\d{1,2})[/.\-](\d{1,4}),?[ \u00a0]{1,2}(?:klo )?"
    r"(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?[ \u00a0\u202f]{0,2}(?:([AaPp])\.?[ \u00a0]?[Mm]\.?)?"
    r"(?:\][ ]?|[ ][-\u2013][ ])"
)
_AMERICAN: Final = re.compile(
    r"[\u200e\u200f]{0,2}\[?[1-9]\d?/[1-9]\d?/\d\d, \d{1,2}:\d\d(?::\d\d)?[ \u00a0\u202f]{0,2}[AP]M"
)
"""The form of the United States alone: no zeros in front, a year of two digits, capitals."""
_SLACK: Final = re.compile(
    r"(?:\| {0,4})?> (.{1,100}?) \[[A-Z0-9]{0,20}\] @ (\d{2})/(\d{2})/(\d{4}) "
    r"(\d{2}:\d{2}:\d{2}) (Z|[+-]\d{4}):$"
)
_COPIED: Final = re.compile(
    r"(\S.{0,79}?)(?: {2,4}| ?\[)(\d{1,2}):(\d{2})(?:[ \u202f]?([AaPp])[Mm])?\]? {0,4}$"
)
_LONGEST: Final = 100
"""The length of the longest name of a speaker."""
_LAST_DAY: Final = 31
_CENTURY: Final = 100
_SHOWN: Final = 20
"""The most speakers that an error lists."""


def whatsapp_header(line: str) -> Header | None:
    """Return the header that a line of WhatsApp begins with, if it does."""
    found = _WHATSAPP.match(line)
    if found is None:
        return None
    first, second, third, hour, minute, seconds, half = found.groups()
    clock = _clock(hour, minute, seconds or "00", half)
    rest = line[found.end() :]
    speaker, colon, text = rest.partition(":")
    if not colon or len(speaker) > _LONGEST or text[:1] not in ("", " "):
        speaker = text = ""
    # The app's own words, such as "image omitted", are marked.
    is_own = text.lstrip(" ").startswith("\u200e")
    return Header(
        (int(first), int(second), int(third)),
        clock,
        "" if is_own else speaker.strip("\u200e\u200f\u202a\u202c "),
        "" if is_own else text.removeprefix(" "),
        _AMERICAN.match(line) is not None,
    )


def slack_header(line: str) -> Header | None:
    """Return the header that a line of Slack is: of an export as text, or copied from a window."""
    if found := _SLACK.match(line):
        speaker, day, month, year, clock, zone = found.groups()
        zone = "+00:00" if zone == "Z" else f"{zone[:3]}:{zone[3:]}"
        return Header((int(year), int(month), int(day)), clock + zone, speaker, "")
    if found := _COPIED.match(line):
        speaker, hour, minute, half = found.groups()
        return Header((), _clock(hour, minute, "00", half), speaker, "")
    return None


def _clock(hour: str, minute: str, seconds: str, half: str | None) -> str:
    number = int(hour) if half is None else int(hour) % 12 + 12 * (half in "Pp")
    return f"{number:02}:{minute}:{seconds}"


def _moment(header: Header, *, is_month_first: bool) -> str | None:
    """Return the moment of a header, ISO 8601; `None` if it has none."""
    if not header.date:
        return None
    first, second, third = header.date
    if first > _LAST_DAY:
        year, month, day = first, second, third
    else:
        day, month = (second, first) if is_month_first else (first, second)
        year = third if third >= _CENTURY else 20 * _CENTURY + third
    try:
        return datetime.fromisoformat(f"{year:04}-{month:02}-{day:02}T{header.clock}").isoformat()
    except ValueError:
        return None


class _Survey:
    """What the headers of a whole file tell: the speakers, and whether months stand first."""

    def __init__(self, headers: Iterable[Header]) -> None:
        self.speakers: dict[str, None] = {}
        invalid, backwards, last = [0, 0], [0, 0], ["", ""]
        is_american = True
        for header in headers:
            if header.speaker:
                self.speakers[header.speaker] = None
            is_american = is_american and header.is_american
            for order in (0, 1):
                moment = _moment(header, is_month_first=bool(order)) or ""
                invalid[order] += not moment
                backwards[order] += "" < moment < last[order]
                last[order] = moment or last[order]
        # In the right order of day and month, all dates are valid and a chat goes forward in time.
        day, month = zip(invalid, backwards, (is_american, not is_american), strict=True)
        self.is_month_first = month < day

    def user(self, asked: Asked) -> str:
        """Return the speaker who is the user.

        Raises:
            UnreadError: It is not known; the message lists the speakers.
        """
        names = list(self.speakers)
        wanted = (asked.me or "").casefold()
        found = [name for name in names if name.casefold() == wanted]
        if found:
            return found[0]
        listed = ", ".join(map(repr, names[:_SHOWN])) + ", ..." * (len(names) > _SHOWN)
        what = f"no speaker is {asked.me!r}" if asked.me else "which speaker is the user is unknown"
        raise UnreadError(f": {what}: name one with --me; the speakers are {listed}")


def _reader(header_of: Callable[[str], Header | None]) -> Reader:
    def read(entries: Iterable[Entry], asked: Asked) -> Iterator[Conversation | Unread]:
        survey = _Survey(filter(None, (header_of(entry.value) for entry in entries)))
        me = survey.user(asked)
        told = _messages(entries, header_of, me, is_month_first=survey.is_month_first)
        for day, group in groupby(told, key=itemgetter(0)):
            said = [message for _, message in group]
            name = f"{asked.name}-{day}" if day else asked.name
            others = [each for each in survey.speakers if each != me]
            yield Conversation(name, said, {"speakers": [me, *others]}, asked.source)

    return read


def _messages(
    entries: Iterable[Entry],
    header_of: Callable[[str], Header | None],
    me: str,
    *,
    is_month_first: bool,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each message with its day; no day is before that of an earlier message."""
    day, size = "", 0
    lines: list[str] = []
    message: dict[str, Any] | None = None
    for entry in entries:
        header = header_of(entry.value)
        size = len(entry.value) + (0 if header else size + 1)
        if size > LARGEST:
            raise UnreadError(f"{entry.place('line')}: a message is larger than {LARGEST >> 20} MB")
        if header is None:
            lines.append(entry.value)
            continue
        if message is not None:
            yield from _whole(day, message, lines)
        moment = _moment(header, is_month_first=is_month_first)
        day, lines = max(day, (moment or "")[:10]), [header.text]
        message = None
        if header.speaker:
            role = "user" if header.speaker == me else "assistant"
            mark = {"metadata": {"said_at": moment}} if moment else {}
            message = {"role": role, "name": header.speaker} | mark
    if message is not None:
        yield from _whole(day, message, lines)


def _whole(
    day: str, message: dict[str, Any], lines: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    text = "\n".join(lines).strip()
    if text:
        yield day, {**message, "content": text}


read_whatsapp: Final = _reader(whatsapp_header)
"""Reads a chat of WhatsApp."""

read_slack: Final = _reader(slack_header)
"""Reads a channel of Slack."""
