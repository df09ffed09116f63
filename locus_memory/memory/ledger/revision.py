"""The writes of a change of one memory: pure, from the stored items to the operations.

A key's versions are numbered from 1. The current one is an item of its type's namespace. Each
past one is an item of the key's history, under its number, and its `superseded_by` tells which
change ended it. The number of a version never changes, and is never reused as long as the key
has any version.

Each change of a `Shelf` returns a `Step`, or `None` if there is nothing to do. Its operations name
the versions they expect. If only the first of them are written, the history stays readable: a past
version with the number of the current one never ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final, Literal

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.ledger.wording import ending_of, search_text
from locus_memory.memory.models import (
    EXPIRES_AT,
    FIXED,
    ORIGIN,
    Memory,
    MemoryType,
    Origin,
    has_authority,
    is_expired,
    is_fixed,
    origin_of,
    refusal,
)
from locus_memory.memory.moments import days_between, read_moment
from locus_memory.memory.scope import Scope, current_key, split_key
from locus_memory.memory.validity import SAID_AT, VALID_FROM, VALIDITY, said_at, stated
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = [
    "MANAGED",
    "Ending",
    "Shelf",
    "Step",
    "current_again",
    "current_put",
    "fixed_in",
    "known",
    "memory_in",
    "not_before",
    "read_memory",
]

Ending = Literal["update", "delete", "evict", "undo"]

_KNOWN: Final = "known_at"
UPDATED_AT: Final = "updated_at"
"""In the metadata of a memory: when it was written last, as current."""

MANAGED: Final = frozenset(
    (
        *("created_at", UPDATED_AT, SAID_AT, _KNOWN, "sequence"),
        *("supersedes", "superseded_at", "superseded_by"),
    )
)
"""The names in a memory's metadata that only a change of the memory writes; see `VALID_FROM`."""

_TICK: Final = timedelta(microseconds=1)

_ENDED: Final = ("superseded_at", "superseded_by")
_GONE: Final = ("delete", "evict")
_OWN: Final = (Origin.USER, Origin.PERSON)
_PROVENANCE: Final = frozenset(
    ("thread_id", "message_ids", "extracted_at", "extractor", ORIGIN, FIXED)
)


class Shelf:
    """All stored versions of one key, and the changes that can be made of them.

    Args:
        scope: The scope of the memory.
        kind: The memory's type.
        key: The memory's key.
        item: The current version as it is stored, or `None`.
        records: The items of its history.
        now: The present moment, ISO 8601 in UTC.
        limit: The most past versions of a key.
        said_at: The moment of the statement that changes it, likewise; `None`: now.

    Attributes:
        memory: The current version; `None` also if the item there is not a memory.
        records: The items of its history by number.
        past: The past versions by number, the newest first; `None` is one that cannot be read.
        sequence: The number of the current version; if another program wrote it, the next free one.
        next: The number of the next version.
    """

    def __init__(
        self,
        scope: Scope,
        kind: MemoryType,
        key: str,
        item: StoreItem | None,
        records: Iterable[StoreItem],
        *,
        now: str,
        limit: int,
        said_at: str | None = None,
    ) -> None:
        self.kind, self.key, self.item = kind, key, item
        self.now = now
        self._scope, self._limit, self._said_at = scope, limit, said_at
        self.memory = None if item is None else read_memory(item)
        numbered = {int(each.key): each for each in records if each.key.isdecimal()}
        self.records = dict(sorted(numbered.items(), reverse=True))
        stated = None if self.memory is None else self.memory.metadata.get("sequence")
        current = stated if isinstance(stated, int) and stated > 0 else 0
        past = {number: memory_in(each.value) for number, each in self.records.items()}
        self.past = {number: past[number] for number in past if number not in (0, current)}
        last = max(self.past, default=0)
        self.sequence = current or last + 1
        self.next = max(last, 0 if item is None else self.sequence) + 1

    @property
    def versions(self) -> list[Memory]:
        """All versions of the key: the current one, then the past ones, the newest first."""
        return [memory for memory in (self.memory, *self.past.values()) if memory is not None]

    @property
    def _moment(self) -> str:
        """The moment of the change, however late it is written."""
        return self.now if self._said_at is None else self._said_at

    def write(self, memory: Memory) -> Step | None:
        """Make `memory` the current version; the old current version goes to the history.

        If its content is the same, it only refreshes the current version: the caller's own metadata
        is merged, and the importance never falls. Only if now the user or a person says what
        somebody else told before, or a person fixes it, there is a new version. A memory with an
        earlier moment than the current version goes to the history at once. A memory without
        authority changes none that has it, and no such one waits for it, and so it is with one that
        is not fixed: see `refusal`.
        """
        current, memory = self.memory, self._own_validity(memory)
        refused = refusal(current, memory.type, origin_of(memory))
        is_same = current is not None and same_content(current.content, memory.content)
        if refused is not None:
            return None if is_same else Step((), None, refused=refused)
        if current is not None and is_fixed(current) and FIXED not in memory.metadata:
            # What a person corrects stays fixed.
            memory = replace(memory, metadata={**memory.metadata, FIXED: True})
        is_own = (
            origin_of(memory) in _OWN and current is not None and origin_of(current) not in _OWN
        )
        fixes = is_fixed(memory) and not (current is not None and is_fixed(current))
        if current is not None and is_same and not (is_own or fixes):
            holds = stated(current) | {
                n: memory.metadata[n] for n in VALIDITY if n in memory.metadata
            }
            if holds == stated(current):
                return self._refresh(current, memory)
            memory = replace(memory, metadata=memory.metadata | holds)
        # Of two that differ, the current one has no authority.
        is_alike = has_authority(current or memory) is has_authority(memory)
        if (current is None or (is_alike and not fixes)) and self._is_outdated():
            return self._overtaken(memory)
        managed: dict[str, Any] = {"sequence": self.next}
        if current is not None:
            managed["supersedes"] = self._link(self.sequence)
        ended = self._ended("update", self.next)
        return self._step(self._managed(memory, managed, self.now), ended)

    def retire(self, ending: Ending, origin: Origin = Origin.PERSON) -> Step | None:
        """Move the current version to the history, without a new current version.

        A current version later than this change stays, and so does one that `origin` may not
        change.
        """
        memory = self.memory
        if self.item is None or memory is None:
            return None
        if (refused := refusal(memory, memory.type, origin)) is not None:
            return Step((), None, refused=refused)
        if self._is_outdated():
            return Step((), None, outdated=True)
        return self._step(None, self._ended(ending))

    def undo(self, origin: Origin = Origin.PERSON) -> Step | None:
        """Take back the last change that was not taken back before.

        Returns `None` also if the version to restore is no longer kept. What a person fixed, or no
        longer fixes, only a person changes.
        """
        if self.item is None:
            number: object = self._retired()
        elif self.memory is None:
            return None
        else:
            supersedes = self.memory.metadata.get("supersedes")
            if not isinstance(supersedes, Mapping):
                return self.retire("undo", origin)
            number = supersedes.get("sequence")
        target = self.past.get(number) if isinstance(number, int) else None
        if not isinstance(number, int) or target is None:
            return None
        restored = current_again(Memory(self.kind, self.key, target.content, target.metadata))
        # As many as tell of the versions that are kept.
        restored = _known(restored, *[*known(target), self.now][-1 - 2 * self._limit :])
        for each in (self.memory, restored):
            if each and (refused := refusal(each, each.type, origin)) is not None:
                return Step((), None, refused=refused)
        return self._step(restored, self._ended("undo", number), restores=number)

    def last_change(self) -> datetime | None:
        """Return the moment of the change that `undo` would take back; `None` if there is none."""
        if self.undo() is None:
            return None
        changed = self.memory if self.item is not None else self.past[self._retired()]
        # It was written first, or ended last, by the change; an undo since is none of them.
        moments = [] if changed is None else known(changed)
        return read_moment(moments[0 if self.item is not None else -1]) if moments else None

    def _step(
        self,
        memory: Memory | None,
        ended: Memory | None,
        *,
        restores: int = 0,
        outdated: bool = False,
    ) -> Step:
        """Return the writes: the version that ends, the current one, and what is kept no longer.

        Args:
            memory: The current version; `None`: there is none, or, if `outdated`, the present one.
            ended: The version that goes to the history; `None`: none.
            restores: The number of the past version that is current again.
            outdated: As for `Step`.
        """
        past = {number: each for number, each in self.past.items() if number != restores}
        if ended is not None:
            past = {ended.metadata["sequence"]: ended, **past}
        kept = dict(islice(past.items(), self._limit))
        operations: list[Put | Delete] = []
        if ended is not None and ended.metadata["sequence"] in kept:
            operations.append(self._record(ended))
        if memory is not None:
            memory = replace(memory, metadata=memory.metadata | {UPDATED_AT: self.now})
            put = current_put(self._scope, memory, search_text(memory, kept))
            version = 0 if self.item is None else self.item.version
            operations.append(replace(put, if_version=version))
        elif self.item is not None and not outdated:
            operations.append(_remove(self.item))
        gone = [self.records[number] for number in self.past if number not in kept]
        return Step((*operations, *map(_remove, gone)), memory, outdated=outdated)

    def _is_outdated(self) -> bool:
        """Return whether the current version is later than the write, or a later deletion exists.

        A moment that is a day or more in the future says nothing: a clock was wrong.
        """
        if self._said_at is None:
            return False
        if self.item is not None:
            moments: list[Any] = ["" if self.memory is None else said_at(self.memory)]
        else:
            past = [each for each in self.past.values() if each is not None]
            gone = [each for each in past if ending_of(each) in ("delete", "undo")]
            moments = [each.metadata.get("superseded_at") for each in gone]
        later = [each for each in moments if isinstance(each, str) and each > self._said_at]
        return any(days_between(self.now, each) < 1 for each in later)

    def _overtaken(self, memory: Memory) -> Step:
        """Add a memory older than the current version to the history; none to a deleted key."""
        current = self.memory
        # An earlier attempt may have added it already.
        is_kept = any(
            each.content == memory.content and said_at(each) == self._moment
            for each in filter(None, self.past.values())
        )
        if current is None or is_kept:
            return Step((), None, outdated=True)
        managed = {
            "sequence": self.next,
            "superseded_at": said_at(current),
            "superseded_by": self._link(self.sequence) | {"change": "update"},
        }
        # It was never current.
        return self._step(None, self._managed(memory, managed), outdated=True)

    def _own_validity(self, memory: Memory) -> Memory:
        """Return a memory to write with no start but one that somebody states.

        A caller may write what was read before, with the moment that the ledger wrote there.
        """
        others = [said_at(each) for each in self.versions if not stated(each)]
        is_told = memory.metadata.get(VALID_FROM) not in (None, *others)
        given = {n: each for n, each in memory.metadata.items() if is_told or n != VALID_FROM}
        return replace(memory, metadata=given)

    def _managed(self, memory: Memory, managed: Mapping[str, Any], *moments: str) -> Memory:
        """Return a new version with what the ledger writes; `moments` are as for `known`."""
        # Nobody but a person fixes a memory.
        names = MANAGED if is_fixed(memory) else {*MANAGED, FIXED}
        given = {key: value for key, value in memory.metadata.items() if key not in names}
        said = VALID_FROM if given.keys().isdisjoint(VALIDITY) else SAID_AT
        metadata = {**given, said: self._moment, **managed}
        return _known(Memory(memory.type, memory.key, memory.content, metadata), *moments)

    def _refresh(self, current: Memory, given: Memory) -> Step | None:
        own = {
            key: value
            for key, value in given.metadata.items()
            if key not in MANAGED and key not in _PROVENANCE
        }
        merged = current.metadata | own
        if EXPIRES_AT not in own and is_expired(current, self.now):
            # Said again, it holds again.
            merged.pop(EXPIRES_AT)
        if "importance" in own:
            merged["importance"] = max(importance_of(current), importance_of(given))
        if merged == current.metadata:
            return None
        return self._step(replace(current, metadata=merged), None)

    def _ended(self, ending: Ending, successor: int | None = None) -> Memory | None:
        """Return the current version as a past one; `None` if there is none."""
        if self.memory is None:
            return None
        by = self._link(successor) | {"change": ending}
        ends = {"sequence": self.sequence, "superseded_at": self._moment, "superseded_by": by}
        ended = replace(self.memory, metadata=self.memory.metadata | ends)
        return _known(ended, *known(self.memory), self.now)

    def _record(self, memory: Memory) -> Put:
        number = memory.metadata["sequence"]
        stored = self.records.get(number)
        return Put(
            namespace=self._scope.history(self.kind, self.key),
            key=f"{number:012}",
            value=memory.to_store_value(),
            if_version=0 if stored is None else stored.version,
            text="",
        )

    def _link(self, sequence: int | None) -> dict[str, Any]:
        link: dict[str, Any] = {"type": self.kind.value, "key": self.key}
        return link if sequence is None else link | {"sequence": sequence}

    def _retired(self) -> int:
        """Return the number of the version that was retired last; 0 if none was."""
        past = (number for number, each in self.past.items() if each and ending_of(each) in _GONE)
        return next(past, 0)


@dataclass(frozen=True, slots=True)
class Step:
    """The writes of a change, and the memory that is current after them.

    Attributes:
        operations: The writes, in order.
        memory: The memory that the change made current; `None`: none.
        outdated: Whether a later fact is known already, which stays current.
        refused: Why nothing is written, see `refusal`; `None`: it is.
    """

    operations: tuple[Put | Delete, ...]
    memory: Memory | None
    outdated: bool = False
    refused: str | None = None


def read_memory(item: StoreItem) -> Memory | None:
    """Return the memory of a stored item, or `None` if it is not a memory.

    The name of the item outranks the type and key in its value, since values of another library
    may have none.
    """
    named = split_key(item.key)
    if named is None or not isinstance(item.value, Mapping):
        return None
    return memory_in({**item.value, "type": named[0], "key": named[1]})


def memory_in(value: Any) -> Memory | None:
    """Return the memory of a stored value, such as that of a past version; `None` if it is none."""
    try:
        return Memory.from_store_value(value)
    except InvalidArgumentError:
        return None


def fixed_in(value: Any) -> bool:
    """Return whether a stored value is a memory that a person fixed."""
    memory = memory_in(value)
    return memory is not None and is_fixed(memory)


def known(memory: Memory) -> list[Any]:
    """Return the moments at which a version became current and ceased to be, in turn.

    They are written only where they are not the moments of the statements: where it was written
    late, or was restored. An earlier version did not write them.
    """
    told = memory.metadata
    if isinstance(told.get(_KNOWN), list):
        return [*told[_KNOWN]]
    since = max(said_at(memory), str(told.get("extracted_at", "")))
    return [since, *(told[name] for name in _ENDED[:1] if name in told)]


def _known(memory: Memory, *moments: str) -> Memory:
    if known(memory) == list(moments):
        return memory
    return replace(memory, metadata=memory.metadata | {_KNOWN: list(moments)})


def current_again(memory: Memory) -> Memory:
    """Return a past version as it was before it ended."""
    metadata = {name: part for name, part in memory.metadata.items() if name not in _ENDED}
    return replace(memory, metadata=metadata)


def not_before(now: str, shelf: Shelf, others: Iterable[Shelf]) -> str:
    """Return the moment of a change: now, unless an earlier change of the key has a later one.

    Clocks differ, and go back. A moment that is a day or more in the future says nothing.

    Args:
        now: The present moment, ISO 8601 in UTC.
        shelf: The versions of the key.
        others: Those of the key in the other types.
    """
    least = [*_known_in(shelf), *(each + _TICK for other in others for each in _known_in(other))]
    latest = max((each for each in least if days_between(now, each) < 1), default=None)
    told = read_moment(now)
    if latest is None or told is None or latest <= told:
        return now
    return latest.isoformat(timespec="microseconds")


def _known_in(shelf: Shelf) -> list[datetime]:
    moments = (read_moment(each) for one in shelf.versions for each in known(one))
    return [each for each in moments if each is not None]


def importance_of(memory: Memory) -> float:
    """Return the importance of a memory, from 0 to 1; 0.5 if it has none."""
    stated = memory.metadata.get("importance")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return 0.5
    return min(1.0, max(0.0, float(stated)))


def current_put(scope: Scope, memory: Memory, text: str) -> Put:
    """Return the put of a current memory, with its search text; see `search_text`."""
    name = current_key(memory.type, memory.key)
    return Put(namespace=scope.current, key=name, value=memory.to_store_value(), text=text)


def _remove(item: StoreItem) -> Delete:
    return Delete(namespace=item.namespace, key=item.key, if_version=item.version)
