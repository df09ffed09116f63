"""The layers beside the memories, for an erasure by key or by words: what names the erased."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.memory.batch import rewritten
from locus_memory.memory.forgetting.items import Findings, Words, namespaces_below
from locus_memory.memory.forgetting.places import Places
from locus_memory.memory.layers.episodes import Episode, EpisodeBook
from locus_memory.memory.layers.identity import Identity, IdentityBook, IdentityFact
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import StoreItem

__all__ = ["LayerErasure", "entries", "words_of"]

_NEIGHBOURS: Final = 4
"""How far away from it the search text of a turn may name another one."""


def words_of(texts: Iterable[str]) -> list[Words]:
    """Return the words of each text that has any."""
    found: list[Words] = []
    for text in sorted(texts):
        with suppress(InvalidArgumentError):
            found.append(Words(text))
    return found


@dataclass(slots=True)
class LayerErasure:
    """The records of the layers that name what is erased.

    These are the episodes, the turns and the sentences about the
    owner with all words of one of the `words`; the turns and the derived facts from the source
    messages of the memories; and the episodes and the turns of erased threads. A narrative goes
    with any derived fact, since it was made from it. An episode goes as a whole if it tells of a
    source message, or if it is one of those that mention a memory: whatever words it has, it may
    say what is erased.

    A message with a globally unique id is recognised in a fork of its thread as well. The
    transcript tells the number of a message with an id. Without it, the episodes of the thread
    go that tell of the moment of the statement; without a moment, all of them.

    Attributes:
        store: The store.
        scope: The scope of the memories.
        words: The words, each of which is enough.
        places: The source messages of the memories.
        threads: The threads that are erased as a whole.
        changed: The turns that stay, whose search texts name erased ones, with their new texts.
        identity: How many sentences about the owner go.
    """

    store: BaseStore
    scope: Scope
    words: Sequence[Words]
    places: Places
    threads: Collection[str]
    changed: list[tuple[StoreItem, str]] = field(default_factory=list[tuple[StoreItem, str]])
    identity: int = 0

    async def find(self, found: Findings) -> None:
        """Add the records to the findings; writes nothing."""
        for space in await namespaces_below(self.store, self.scope.transcripts):
            if len(space) == len(self.scope.transcripts) + 1:
                turns = [item async for item in scan_all(self.store, space)]
                self._look_at(space[-1], turns, found)
                self.places.look_at(space[-1], turns)
        async for item, episode in EpisodeBook(self.store).scan(self.scope):
            is_known = item.key in found.mentions or self._is_of_thread(episode)
            if is_known or self._is_named(episode.text) or self.places.are_in(episode):
                found.add_to_layer("episodes", item)
        identity = await IdentityBook(self.store).read(self.scope)
        self.identity = entries(identity) - entries(self._without(identity))

    async def carry_out(self) -> None:
        """Change the records that stay: the identity, and the search texts of turns.

        Raises:
            VersionConflictError: Another writer changes a record without pause.
            BackendError: The store failed.
        """
        await IdentityBook(self.store).change(self.scope, self._without)
        for item, text in self.changed:
            # A turn that was recorded again meanwhile names its present neighbours only.
            with suppress(VersionConflictError):
                await self.store.put_batch([await rewritten(self.store, item, text)])

    def _look_at(self, thread: str, turns: Sequence[StoreItem], found: Findings) -> None:
        """Find the turns of a thread that go, and those that name one of them."""
        gone = {place for place, item in enumerate(turns) if self._is_wanted(thread, item)}
        for place in sorted(gone):
            found.add_to_layer("turns", turns[place])
        left = [place for place in range(len(turns)) if place not in gone]
        near = {place for place in left if any(other in gone for other in _around(place))}
        if near:
            space = self.scope.transcript(thread)
            puts = turn_puts(space, [_turn(turns[place]) for place in left])
            self.changed += [
                (turns[place], put.text or "")
                for place, put in zip(left, puts, strict=True)
                if place in near
            ]

    def _is_wanted(self, thread: str, item: StoreItem) -> bool:
        if thread in self.threads or self._is_named(_text(item)):
            return True
        return self.places.has_turn(thread, item)

    def _is_of_thread(self, episode: Episode) -> bool:
        return any(thread in self.threads for thread, _, _ in episode.all_turns)

    def _is_named(self, text: str) -> bool:
        return any(words.are_in(text) for words in self.words)

    def _is_derived(self, fact: IdentityFact) -> bool:
        return any(self.places.has(fact.thread_id, name) for name in fact.message_ids)

    def _without(self, identity: Identity) -> Identity:
        overrides = tuple(e for e in identity.overrides if not self._is_named(e.text))
        facts = tuple(
            each
            for each in identity.facts
            if not self._is_named(each.text) and not self._is_derived(each)
        )
        changed = replace(identity, overrides=overrides, facts=facts)
        if len(facts) < len(identity.facts) or self._is_named(identity.content):
            return replace(changed, content="", content_at=None)
        return changed


def entries(identity: Identity) -> int:
    """Return the number of overrides, derived facts and narratives of an identity."""
    return len(identity.overrides) + len(identity.facts) + bool(identity.content)


def _around(place: int) -> range:
    return range(max(0, place - _NEIGHBOURS), place + _NEIGHBOURS + 1)


def _text(item: StoreItem) -> str:
    value: Any = item.value
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def _turn(item: StoreItem) -> Turn:
    speaker = item.metadata.get("speaker")
    return Turn(
        text=_text(item),
        speaker=speaker if isinstance(speaker, str) else "",
        said_at=read_moment(item.metadata.get("date")),
    )
