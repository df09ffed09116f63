"""What the ranking sees of an item: its words, who said it, when, and what stood beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final

from locus_memory.store.item import StoreItem
from locus_memory.store.text import index_text, tokens

__all__ = ["Fields", "Passage", "Place", "words_of"]

Place = tuple[tuple[str, ...], str, int]
"""A namespace, a session in it and a position in the session."""

_LONGEST: Final = 4_000
"""How many characters of an item are looked at for its own words."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What the ranking sees of an item.

    Attributes:
        text: What it says.
        speakers: Who said it, and in which role; what is not known is left out.
        day: When, or `None`.
        place: Where in a conversation, or `None`.
    """

    text: str
    speakers: tuple[str, ...] = ()
    day: date | None = None
    place: Place | None = None

    @property
    def spoken(self) -> str:
        """The text with its speaker in front, if there is one."""
        return f"{self.speakers[0]}: {self.text}" if self.speakers else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Where an item tells what the ranking wants to know.

    Each attribute lists field names; the first that the item's metadata has, or else its value
    if that is an object, is taken.

    Attributes:
        text: What it says; by default the strings of the whole value.
        speaker: Who said it.
        role: As what, such as `user` or `assistant`.
        date: When: ISO 8601, or seconds since the epoch.
        session: Which conversation it is part of.
        position: Its place there, an integer; neighbours are one apart.
    """

    text: tuple[str, ...] = ("text", "content")
    speaker: tuple[str, ...] = ("speaker", "name")
    role: tuple[str, ...] = ("role",)
    date: tuple[str, ...] = ("date", "said_at", "timestamp")
    session: tuple[str, ...] = ("session", "thread_id")
    position: tuple[str, ...] = ("position",)

    def read(self, item: StoreItem) -> Passage:
        """Return what the ranking sees of an item; what it cannot read, it leaves out."""
        said = _first_string(item, self.text)
        who = (_first_string(item, self.speaker), _first_string(item, self.role))
        return Passage(
            text=index_text(item.value) if said is None else said,
            speakers=tuple(dict.fromkeys(name for name in who if name)),
            day=next((day for day in map(_day, _values(item, self.date)) if day), None),
            place=self._place(item),
        )

    def _place(self, item: StoreItem) -> Place | None:
        position = next(_values(item, self.position), None)
        if isinstance(position, bool) or not isinstance(position, int):
            return None
        return item.namespace, _first_string(item, self.session) or "", position


def _values(item: StoreItem, names: tuple[str, ...]) -> Iterator[Any]:
    documents = (item.metadata, item.value if isinstance(item.value, Mapping) else {})
    return (
        document[name] for document in documents for name in names if document.get(name) is not None
    )


def _first_string(item: StoreItem, names: tuple[str, ...]) -> str | None:
    return next((value for value in _values(item, names) if isinstance(value, str)), None)


def _day(value: object) -> date | None:
    if isinstance(value, str):
        return _day_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).date()
    except (OverflowError, ValueError, OSError):
        return None


@lru_cache(maxsize=4096)
def _day_of_text(text: str) -> date | None:
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        return None


@lru_cache(maxsize=8192)
def _words_of(text: str) -> tuple[str, ...]:
    return tuple(tokens(text))


def words_of(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words, repeats included; of a long text, of its start."""
    return _words_of(text[:_LONGEST])
