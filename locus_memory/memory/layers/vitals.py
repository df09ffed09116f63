"""The vital signs of a memory, in a record beside it: use, trust, and the messages that state it.

They are not part of the memory: a use raises no version, writes no history, and makes no memory the
newest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field

from locus_memory.errors import VersionConflictError
from locus_memory.memory.batch import insisting
from locus_memory.memory.blend import DEFAULT_TRUST
from locus_memory.memory.layers.fading import faded
from locus_memory.memory.layers.records import LENIENT, readable, record_of, value_of
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import Memory, has_authority
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.validity import said_at
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["Vitals", "VitalsBook", "VitalsChange", "version_of"]

_MOST_MESSAGES: Final = 50
_TRUST_OF_TOOL, _TRAINING = 0.3, 0.02
_HELPFUL, _UNHELPFUL = 0.1, -0.2
VitalsChange = Callable[[Memory, "Vitals"], "Vitals"]
"""Returns the new vital signs of a memory; the same ones if there is nothing to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The vital signs of one memory. Moments are ISO 8601 in UTC.

    Attributes:
        messages: The newest 50 messages that state the memory, each as its thread and its id;
            `#N` is the Nth of the thread.
        told_at: The moment of the last session that stated the memory; empty: unknown.
        use_count: How often a run has recalled the memory.
        last_used: The moment of the last use; `None`: never.
        version: The version of the memory that the trust and the hits are about, see `version_of`;
            `None`: unknown. Another version starts with the trust of a new memory.
        trust: From 0 to 1: it rises by 0.02 with a recall, at most once a thread and day. What is
            above 0.5 falls with time, as the salience does.
        trusted_at: The moment up to which the fall is in `trust`; `None`: it never rose.
        hits: How many recalls have raised the trust.
        trained: The threads of the day `trained_on` whose recall raised the trust.
        trained_on: A day, such as `2026-03-01`.
        salience: From 0 to 1: the importance, which falls with time; see `at`. It is not stored.
    """

    __pydantic_config__: ClassVar = LENIENT

    messages: tuple[tuple[str, str], ...] = ()
    told_at: str = ""
    use_count: int = 0
    last_used: str | None = None
    version: str | None = None
    trust: float = DEFAULT_TRUST
    trusted_at: str | None = None
    hits: int = 0
    trained: tuple[str, ...] = ()
    trained_on: str | None = None
    salience: Annotated[float, Field(exclude=True)] = 0.5

    def about(self, memory: Memory) -> Self:
        """Return the vital signs of a version of the memory.

        Another version than the one that earned the trust starts with the trust of a new memory:
        what corrects a fact is not known to be right because the fact was recalled often.
        """
        version = version_of(memory)
        if version in (None, self.version):
            return self
        if self.version is None:
            return replace(self, version=version)
        return replace(
            self,
            version=version,
            trust=_first_trust(memory),
            trusted_at=None,
            hits=0,
            trained=(),
            trained_on=None,
        )

    def at(self, memory: Memory, now: str) -> Self:
        """Return the vital signs at a moment, with what time has done to salience and trust."""
        since = max(said_at(memory), self.told_at)
        salience = faded(importance_of(memory), since, now)
        return replace(self, salience=salience, trust=self.trust_at(now), trusted_at=now)

    def trust_at(self, now: str) -> float:
        """Return the trust at a later moment: what is above 0.5 falls as the salience does."""
        earned = max(0.0, self.trust - DEFAULT_TRUST)
        if not earned:
            return self.trust
        return DEFAULT_TRUST + faded(earned, self.trusted_at, now)

    def rated(self, now: str, *, helpful: bool) -> Self:
        """Return the vital signs after a person's feedback: trust + 0.1 or - 0.2, from 0 to 1."""
        trust = self.trust_at(now) + (_HELPFUL if helpful else _UNHELPFUL)
        return replace(self, trust=min(1.0, max(0.0, trust)), trusted_at=now)

    def used(self, now: str, thread: str = "", *, trains: bool = True) -> Self:
        """Return the vital signs after a run recalled the memory.

        Args:
            now: The moment.
            thread: The thread of the run.
            trains: Whether a use raises the trust; not for a fact from a tool.
        """
        used = replace(self, use_count=self.use_count + 1, last_used=now)
        day = now[:10]
        known = self.trained if self.trained_on == day else ()
        if not trains or thread in known:
            return used
        return replace(
            used,
            trust=min(1.0, self.trust_at(now) + _TRAINING),
            trusted_at=now,
            hits=self.hits + 1,
            trained=(*known, thread),
            trained_on=day,
        )

    def mentioned(self, at: str, messages: Iterable[tuple[str, str]]) -> Self:
        """Return the vital signs after a session stated the memory.

        Args:
            at: The moment of the session.
            messages: The messages that state it, each as its thread and its id.
        """
        stated = tuple(dict.fromkeys((*self.messages, *messages)))[-_MOST_MESSAGES:]
        return replace(self, told_at=max(self.told_at, at), messages=stated)


@dataclass(frozen=True, slots=True)
class VitalsBook:
    """The vital signs of the memories of scopes in a store.

    Attributes:
        store: The store, which the book never closes.
    """

    store: BaseStore

    async def of(
        self,
        scope: Scope,
        memories: Iterable[Memory],
    ) -> dict[str, Vitals]:
        """Return the vital signs of memories by their `current_key`; first ones without a record.

        Args:
            scope: The scope of the memories.
            memories: The memories.

        Raises:
            BackendError: The store failed.
        """
        known = {current_key(each.type, each.key): each for each in memories}
        values = await self.store.get_batch([(scope.vitals, name) for name in known])
        return {
            name: _read(values.get((scope.vitals, name)), memory) for name, memory in known.items()
        }

    async def told(self, scope: Scope, names: Iterable[str]) -> dict[str, str]:
        """Return the `Vitals.told_at` of memories by their `current_key`, of those that have one.

        Args:
            scope: The scope of the memories.
            names: Their names; others are ignored.

        Raises:
            BackendError: The store failed.
        """
        values = await self.store.get_batch([(scope.vitals, name) for name in names if name])
        moments = {name: value.get("told_at") for (_, name), value in values.items()}
        return {name: each for name, each in moments.items() if isinstance(each, str)}

    async def change(self, scope: Scope, changes: Mapping[str, VitalsChange]) -> set[str]:
        """Write changed vital signs of current memories; return the names of those that exist.

        A memory that is not current is left out, so a late change never brings back the record of
        an erased one. If another writer is faster, the change is made again on what it wrote.

        Args:
            scope: The scope.
            changes: A pure function for each memory, by its `current_key`.

        Raises:
            VersionConflictError: Other writers were faster each time.
            BackendError: The store failed.
        """
        if self.store.capabilities.batch_operations:
            with suppress(VersionConflictError):
                return await self._changed(scope, changes)
        done = set[str]()
        for name, change in changes.items():
            done |= await insisting(self._changed)(scope, {name: change})
        return done

    async def planned(self, scope: Scope, changes: Mapping[str, VitalsChange]) -> list[Put]:
        """Return the puts of changed vital signs, for the caller to write with other items.

        Args:
            scope: The scope.
            changes: As for `change`.

        Raises:
            BackendError: The store failed.
        """
        made = await self._made(scope, changes)
        return [put for put in made.values() if put is not None]

    async def _changed(self, scope: Scope, changes: Mapping[str, VitalsChange]) -> set[str]:
        """Write changed vital signs, and delete those of a memory that was erased meanwhile."""
        made = await self._made(scope, changes)
        puts = [put for put in made.values() if put is not None]
        await self.store.put_batch(puts)
        first = [(scope.current, put.key) for put in puts if put.if_version == 0]
        if first:
            there = await self.store.get_batch(first)
            gone = [(scope.vitals, name[1]) for name in first if name not in there]
            await self.store.delete_batch(gone)
        return set(made)

    async def _made(
        self, scope: Scope, changes: Mapping[str, VitalsChange]
    ) -> dict[str, Put | None]:
        """Return the put for each memory that is current; `None`: its vital signs stay."""
        made: dict[str, Put | None] = {}
        for name, change in changes.items():
            current, item = await asyncio.gather(
                self.store.get_item(scope.current, name), self.store.get_item(scope.vitals, name)
            )
            memory = None if current is None else read_memory(current)
            if memory is not None:
                old = _read(item and item.value, memory)
                new, version = change(memory, old), 0 if item is None else item.version
                value, space = value_of(new), scope.vitals
                put = Put(namespace=space, key=name, value=value, if_version=version, text="")
                made[name] = None if new == old else put
        return made


def _read(value: object, memory: Memory) -> Vitals:
    """Return the vital signs of a stored value; first ones, with an event if it holds none."""
    known = None if value is None else readable(partial(record_of, Vitals), value, "vitals")
    if known is not None:
        return known.about(memory)
    return Vitals(version=version_of(memory), trust=_first_trust(memory))


def version_of(memory: Memory) -> str | None:
    """Return what only this version of a memory has; `None` if another program wrote it.

    Without a history, a number may come again; its moment does not.
    """
    number, moment = memory.metadata.get("sequence"), said_at(memory)
    return None if number is None else f"{number} {moment}"


def _first_trust(memory: Memory) -> float:
    return DEFAULT_TRUST if has_authority(memory) else _TRUST_OF_TOOL
