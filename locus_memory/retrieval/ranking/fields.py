"""The fields of an item that the ranking uses: words, speaker, date and neighbours."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from locus_memory.store.item import Namespace, StoreItem
from locus_memory.store.text import index_text, tokens

__all__ = ["Fields", "Passage", "Place", "ReadOnce", "Words", "stems_of_names", "words_of"]

Place = tuple[str, int]
"""The name of a conversation, and a position in it."""

_LONGEST: Final = 4_000
"""How many characters of an item are used for its own words."""


class Passage(NamedTuple):
    """The fields of an item that the ranking uses.

    Attributes:
        text: The text.
        speakers: The speaker and the role; unknown ones are left out.
        day: The day, or `None`.
        place: The place in a conversation, or `None`.
        linked: Whether it has links to items that it supersedes or that supersede it.
        words: The stems of its words; of a long text, of its start.
        title: The title, or an empty string.
    """

    text: str
    speakers: tuple[str, ...]
    day: date | None
    place: Place | None
    linked: bool
    words: Words
    title: str = ""

    @property
    def spoken(self) -> str:
        """The text with its speaker in front, if there is one."""
        return f"{self.speakers[0]}: {self.text}" if self.speakers else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The names of the fields of items that the ranking reads.

    Each attribute lists field names; the first one that the item has is used. Fields are those of
    the metadata, those of the value if it is an object, and those of the `metadata` in the value.

    Attributes:
        text: The text; by default the strings of the whole value.
        title: The title of the text; its words count for `Hit.relevance`.
        speaker: The speaker.
        role: The role, such as `user` or `assistant`.
        date: The date: ISO 8601, or seconds since the epoch.
        session: The conversation.
        position: The place in the conversation, an integer; neighbours are one apart.
        supersedes: Links to superseded items; see
            `locus_memory.retrieval.ranking.supersession`.
        superseded_by: Links to items that supersede this one.
    """

    text: tuple[str, ...] = ("text", "content")
    title: tuple[str, ...] = ("title", "heading")
    speaker: tuple[str, ...] = ("speaker", "name")
    role: tuple[str, ...] = ("role",)
    date: tuple[str, ...] = ("date", "said_at", "timestamp")
    session: tuple[str, ...] = ("session", "thread_id")
    position: tuple[str, ...] = ("position",)
    supersedes: tuple[str, ...] = ("supersedes",)
    superseded_by: tuple[str, ...] = ("superseded_by",)

    def told(self, item: StoreItem) -> Mapping[str, Any]:
        """Return all fields of an item; its metadata takes precedence."""
        value = item.value
        if not isinstance(value, dict):
            return item.metadata
        inner = value.get("metadata")
        if isinstance(inner, dict):
            return {**inner, **value, **item.metadata}
        return {**value, **item.metadata}

    def read(self, item: StoreItem) -> Passage:
        """Return the fields that the ranking uses; unreadable ones are left out."""
        told = self.told(item)
        said = _first(told, self.text)
        text = index_text(item.value) if said is None else said
        return Passage(
            text,
            tuple(filter(None, (_first(told, self.speaker), _first(told, self.role)))),
            _first_day(told, self.date),
            self._place(item.namespace, told),
            # Nearly no item has links, and all are checked.
            not told.keys().isdisjoint(self.superseded_by)
            or not told.keys().isdisjoint(self.supersedes),
            words_of(text),
            _first(told, self.title) or "",
        )

    def _place(self, namespace: Namespace, told: Mapping[str, Any]) -> Place | None:
        for name in self.position:
            position = told.get(name)
            if type(position) is int:
                return _conversation(namespace, _first(told, self.session) or ""), position
        return None


@lru_cache(maxsize=4096)
def _conversation(namespace: Namespace, session: str) -> str:
    """Return a unique name for each session of each namespace."""
    # A string caches its hash, which a tuple computes each time.
    return repr((namespace, session))


_Read = TypeVar("_Read")


class ReadOnce(Generic[_Read]):
    """A cache that reads each item once, for items that stay the same objects, as in a store.

    Args:
        read: Reads an item.
    """

    def __init__(self, read: Callable[[StoreItem], _Read]) -> None:
        self._read = read
        self._known: dict[int, tuple[weakref.ref[StoreItem], _Read]] = {}

    def read(self, item: StoreItem) -> _Read:
        """Return what was read in the item."""
        name = id(item)
        known = self._known.get(name)
        if known is not None and known[0]() is item:
            return known[1]

        def forget(_: object) -> None:
            self._known.pop(name, None)

        found = self._read(item)
        self._known[name] = weakref.ref(item, forget), found
        return found


def _first(told: Mapping[str, Any], names: Iterable[str]) -> str | None:
    for value in map(told.get, names):
        if isinstance(value, str):
            return value
    return None


def _first_day(told: Mapping[str, Any], names: Iterable[str]) -> date | None:
    for name in names:
        day = _day(told.get(name))
        if day is not None:
            return day
    return None


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


class Words(NamedTuple):
    """The words of a text.

    Attributes:
        counts: How often each stem occurs.
        length: The number of words.
    """

    counts: Mapping[str, int]
    length: int

    @classmethod
    def of(cls, stems: Sequence[str]) -> Words:
        """Return the words of a text from its stems, with repeats."""
        return cls(Counter(stems), len(stems))


@lru_cache(maxsize=4096)
def _words_of(text: str) -> Words:
    return Words.of(tokens(text))


@lru_cache(maxsize=4096)
def stems_of_names(names: tuple[str, ...]) -> frozenset[str]:
    """Return the stems of the words of speakers, a title, or a day."""
    return frozenset(tokens("\n".join(names)))


def words_of(text: str) -> Words:
    """Return the stems of a text's words; of a long text, of its start."""
    return _words_of(text[:_LONGEST])
