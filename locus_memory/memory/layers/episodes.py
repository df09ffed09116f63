"""The notes of sessions: what happened or was said, a sentence each, one record a session."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar, Final, Literal, Self, get_args

from typing_extensions import override

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.running.paging import paged
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.records import LENIENT, readable, record_of, value_of
from locus_memory.memory.models import Origin, as_origins, origin_of
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import VALIDITY, Then
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Put, StoreItem, check_limit

__all__ = [
    "EPISODE_FIELDS",
    "MOST_NOTES",
    "NOTE_KINDS",
    "Episode",
    "EpisodeBook",
    "Note",
    "NoteKind",
    "episode_key",
    "episode_put",
    "read_episode",
]

NoteKind = Literal["event", "state", "plan", "preference", "decision", "task", "done"]
"""What a note tells: a `task` is still to be done, and `done` is one that was."""

NOTE_KINDS: Final[tuple[NoteKind, ...]] = get_args(NoteKind)

MOST_NOTES: Final = 1_000
"""The most notes of a record."""

_LONGEST: Final = 600
_MOST_IDS: Final = 50
_PAGE: Final = 100
_DAY: Final = r"\d{4}-\d{2}(?:-\d{2})?"
_ABOUT: Final = re.compile(rf"{_DAY}(?:/{_DAY})?")


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence about what happened or was said, which stands by itself.

    Attributes:
        text: One line, at most 600 characters.
        kind: What it tells.
        about: The date or the span that it is about, `2026-05-12` or `2026-05-12/2026-05-14`;
            empty: none.
        at: The moment at which it was said, ISO 8601 in UTC; empty: the end of its session.
        thread: The thread in which it was said; empty: that of its session.
        message_ids: The ids of the messages that say it.
        origin: Who said it, see `Memory`; empty: the user.
        valid_from: Since when it is true, a day or a moment, ISO 8601; empty: it does not say.
        valid_to: Until when, likewise; a day to its end.

    Raises:
        InvalidArgumentError: There is no text.
    """

    __pydantic_config__: ClassVar = LENIENT

    text: str
    kind: NoteKind = "event"
    about: str = ""
    at: str = ""
    thread: str = ""
    message_ids: tuple[str, ...] = ()
    origin: str = ""
    valid_from: str = ""
    valid_to: str = ""

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "text", neutralise(self.text)[:_LONGEST].rstrip())
        if not self.text:
            raise InvalidArgumentError("a note has a text")
        set_(self, "kind", self.kind if self.kind in NOTE_KINDS else "event")
        set_(self, "about", self.about if _ABOUT.fullmatch(self.about) else "")
        set_(self, "message_ids", tuple(self.message_ids)[:_MOST_IDS])

    @property
    def validity(self) -> dict[str, str]:
        """When it is true, by name, as it is stated."""
        return {n: each for n in VALIDITY if (each := getattr(self, n))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """The notes of a session, or of the part of it that was distilled at once.

    Moments are ISO 8601 in UTC.

    Attributes:
        session_id: The thread.
        agent_id: The agent, if it is known.
        started_at: The moment of the first turn.
        ended_at: The moment of the last turn.
        notes: The notes, at most 1,000, as they were said.
        salience: From 0 to 1, given by the model: what is less important fades first.
        turns: The numbers of the first and the last message in the thread, from 1.
        joined_turns: The sessions that were read together with this one, or that an earlier version
            merged into it, each with its `turns`.
        condenses: The keys of the sessions whose notes these stand for in a block; mostly empty.

    Raises:
        InvalidArgumentError: There is no note.
    """

    __pydantic_config__: ClassVar = LENIENT

    session_id: str
    agent_id: str | None = None
    started_at: str
    ended_at: str
    notes: tuple[Note, ...]
    salience: float = 0.5
    turns: tuple[int, int] = (1, 1)
    joined_turns: tuple[tuple[str, int, int], ...] = ()
    condenses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "notes", tuple(dict.fromkeys(self.notes))[:MOST_NOTES])
        if not self.notes:
            raise InvalidArgumentError("an episode has a note")
        set_(self, "joined_turns", tuple(dict.fromkeys(self.joined_turns)))
        set_(self, "salience", min(1.0, max(0.0, float(self.salience))))

    @property
    def key(self) -> str:
        """The store key: in the order of the first turns, the same for a repeated distillation.

        A repeat after a crash may cover more turns than the first attempt, but it begins with the
        same one: it replaces the episode, and never adds a second one. That of condensed notes is
        the same for the same sessions.
        """
        if self.condenses:
            return episode_key("\n".join(self.condenses), self.started_at, len(self.condenses))
        return episode_key(self.session_id, self.started_at, self.turns[0])

    @property
    def all_turns(self) -> tuple[tuple[str, int, int], ...]:
        """All sessions that it tells of, each with the numbers of its first and last message."""
        return ((self.session_id, *self.turns), *self.joined_turns)

    @property
    def text(self) -> str:
        """The text for search."""
        return "\n".join(note.text for note in self.notes)

    def told_by(self, origins: Collection[Origin] | None, then: Then | None = None) -> Self | None:
        """Return the episode with the notes that count alone; `None`: it has no such note.

        Args:
            origins: Their origins; `None`: any.
            then: The moment at which they were known and true; `None`: any.
        """
        if origins is None and then is None:
            return self
        notes = tuple(
            note
            for note in self.notes
            if (origins is None or origin_of(note.origin) in origins)
            and (then is None or then.has(note.at or self.ended_at, note.validity))
        )
        return replace(self, notes=notes) if notes else None

    def to_value(self) -> dict[str, Any]:
        """Return the episode as plain JSON, without what is empty of its notes."""
        value = value_of(self)
        value["notes"] = [{k: v for k, v in note.items() if v} for note in value["notes"]]
        return {k: v for k, v in value.items() if v or k not in ("joined_turns", "condenses")}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Self:
        """Return the episode of a value that `to_value` returned, also in an earlier version.

        Raises:
            InvalidArgumentError: The value is not an episode.
        """
        try:
            told = tuple(Note(**each) for each in value.get("notes") or _notes_of(value))
        except (AttributeError, KeyError, TypeError, InvalidArgumentError) as error:
            raise InvalidArgumentError("a stored value that is no Episode") from error
        return record_of(cls, {**value, "notes": told})


def _notes_of(digest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the notes of a digest, which earlier versions wrote."""
    words = [*digest.get("topics", ()), *digest.get("entities", ())]
    return [
        {"text": digest["summary"]},
        *({"text": each, "kind": "decision"} for each in digest.get("decisions", ())),
        *({"text": each, "kind": "task"} for each in digest.get("action_items", ())),
        *([{"text": f"It was about {', '.join(words)}."}] if words else ()),
    ]


class _EpisodeFields(Fields):
    """The fields of an episode: its text is that of its notes, without their kinds and ids."""

    @override
    def told(self, item: StoreItem) -> Mapping[str, Any]:
        told = super().told(item)
        notes = told.get("notes")
        texts = [str(each.get("text", "")) for each in notes] if isinstance(notes, list) else []
        return {**told, "text": "\n".join(texts)} if texts else told


EPISODE_FIELDS: Final = _EpisodeFields(
    speaker=(), role=(), date=("ended_at",), session=(), position=()
)
"""What a search reads of an episode."""


def episode_key(session_id: str, started_at: str, first: int) -> str:
    """Return the store key of an episode, from the moment and the number of its first message."""
    mark = blake2b(session_id.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{started_at}/{mark}/{first:08}"


@dataclass(frozen=True, slots=True)
class EpisodeBook:
    """The episodes of scopes in a store.

    Attributes:
        store: The store, which the book never closes.
    """

    store: BaseStore

    async def newest(
        self,
        scope: Scope,
        limit: int = 20,
        *,
        origins: Iterable[Origin | str] | None = None,
        then: Then | None = None,
    ) -> list[Episode]:
        """Return the newest episodes, by their first turn.

        Args:
            scope: The scope.
            limit: At most this many.
            origins: Only those with notes of these origins, and only these notes; `None`: any.
            then: Likewise only notes that were known and true at this moment.

        Raises:
            InvalidArgumentError: `limit` is not an integer of at least 0, or an origin is unknown.
            BackendError: The store failed.
        """
        check_limit(limit)
        chosen, found = as_origins(origins), list[Episode]()
        async for episode in self.scan(scope):
            if len(found) >= limit:
                break
            if (told := episode.told_by(chosen, then)) is not None:
                found.append(told)
        return found

    async def shown(self, scope: Scope, limit: int) -> list[Episode]:
        """Return the newest episodes for a block: some as what a model condensed them into.

        Raises:
            BackendError: The store failed.
        """
        made = [each async for each in self.scan(scope, scope.condensed)]
        hidden = {key for each in made for key in each.condenses}
        return [
            *made,
            *(each for each in await self.newest(scope, limit) if each.key not in hidden),
        ]

    async def condense(self, scope: Scope, made: Episode) -> None:
        """Keep condensed notes, in place of earlier ones of the same sessions.

        Raises:
            BackendError: The store failed.
        """
        put = replace(episode_put(scope, made), namespace=scope.condensed, text="")
        await self.store.put_batch([put])
        await self.drop_condensed(scope)

    async def drop_condensed(self, scope: Scope) -> None:
        """Delete the condensed notes of a session that is no more, or that others stand for.

        Raises:
            BackendError: The store failed.
        """
        made = [each async for each in self.scan(scope, scope.condensed)]
        for each in made:
            names = {(scope.episodes, key) for key in each.condenses}
            is_replaced = any(set(each.condenses) < set(other.condenses) for other in made)
            if is_replaced or names > (await self.store.get_batch(names)).keys():
                await self.store.delete(scope.condensed, each.key)

    async def scan(
        self, scope: Scope, namespace: Namespace | None = None
    ) -> AsyncIterator[Episode]:
        """Yield all episodes, the newest first, a page at a time.

        An item that is not an episode is reported as `memory.record_unreadable`.

        Args:
            scope: The scope.
            namespace: The namespace of it; `None`: that of the episodes.

        Raises:
            BackendError: The store failed.
        """
        page = partial(self.store.scan, namespace or scope.episodes, _PAGE, descending=True)
        async for item in paged(lambda after: page(after=after), lambda item: item.key):
            if (episode := read_episode(item)) is not None:
                yield episode


def read_episode(item: StoreItem) -> Episode | None:
    """Return the episode of an item; `None`, with an event, if it is not one."""
    return readable(Episode.from_value, item.value, "episodes")


def episode_put(scope: Scope, episode: Episode, version: int | None = None) -> Put:
    """Return the put of an episode; `version` is the one to replace, `None` any."""
    value = episode.to_value()
    return Put(
        namespace=scope.episodes,
        key=episode.key,
        value=value,
        if_version=version,
        text=episode.text,
    )
