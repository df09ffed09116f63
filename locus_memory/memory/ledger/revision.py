"""The writes of a change of one memory: pure, from the stored items to the operations.

A key's versions are numbered from 1. The current one is an item of its type's namespace. Each
past one is an item of the key's history, under its number, and its `superseded_by` tells which
change ended it. The number of a version never changes, and is never reused as long as the key
has any version.

Each function returns a `Step`, or `None` if there is nothing to do. Its operations name the
versions they expect. If only the first of them are written, the history stays readable: a past
version with the number of the current one never ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.likeness import same_content
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.models import (
    EXPIRES_AT,
    ORIGIN,
    Memory,
    MemoryType,
    Origin,
    has_authority,
    is_expired,
    origin_of,
    refusal,
)
from locus_memory.memory.moments import days_between
from locus_memory.memory.scope import Scope, current_key, split_key
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = [
    "MANAGED",
    "Ending",
    "Shelf",
    "Step",
    "Writing",
    "current_put",
    "ending_of",
    "last_change",
    "read_memory",
    "retire",
    "text_without",
    "undo",
    "write",
]

Ending = Literal["update", "delete", "evict", "undo"]

MANAGED: Final = frozenset(
    ("created_at", "valid_from", "sequence", "supersedes", "superseded_at", "superseded_by")
)
"""The names in a memory's metadata that only a change of the memory writes."""

_OWN: Final = (Origin.USER, Origin.PERSON)
_PROVENANCE: Final = frozenset(("thread_id", "message_ids", "extracted_at", "extractor", ORIGIN))


@dataclass(frozen=True, slots=True)
class Writing:
    """The conditions of a write.

    Attributes:
        scope: The scope of the memory.
        now: The present moment, ISO 8601 in UTC.
        history_limit: The most past versions of a key.
        said_at: The moment of the statement, likewise; `None`: now.
    """

    scope: Scope
    now: str
    history_limit: int
    said_at: str | None = None

    @property
    def moment(self) -> str:
        """The moment of the change, however late it is written."""
        return self.now if self.said_at is None else self.said_at


@dataclass(frozen=True, slots=True)
class Shelf:
    """All stored versions of one key.

    Attributes:
        kind: The memory's type.
        key: The memory's key.
        item: The current version as it is stored, or `None`.
        records: The items of its history.
    """

    kind: MemoryType
    key: str
    item: StoreItem | None
    records: tuple[StoreItem, ...]

    @property
    def memory(self) -> Memory | None:
        """The current version; `None` also if the item there is not a memory."""
        return None if self.item is None else read_memory(self.item)

    @property
    def past(self) -> list[StoreItem]:
        """The items of the past versions, the newest first."""
        current = self._stated_sequence()
        past = [each for each in self.records if _number(each) not in (0, current)]
        return sorted(past, key=_number, reverse=True)

    @property
    def past_memories(self) -> dict[int, Memory | None]:
        """The past versions by number, the newest first."""
        return {_number(each): past_memory(each) for each in self.past}

    @property
    def last(self) -> int:
        """The highest number of a past version, 0 if there are none."""
        return max(map(_number, self.past), default=0)

    @property
    def sequence(self) -> int:
        """The number of the current version; if another program wrote it, the next free one."""
        return self._stated_sequence() or self.last + 1

    @property
    def next(self) -> int:
        """The number of the next version."""
        return max(self.last, 0 if self.item is None else self.sequence) + 1

    def record(self, sequence: int) -> StoreItem | None:
        """Return the item of a past version."""
        return next((each for each in self.past if _number(each) == sequence), None)

    def stored_version(self, sequence: int) -> int:
        """Return the store's version of the record of this number; 0 if there is none."""
        return next((each.version for each in self.records if _number(each) == sequence), 0)

    def _stated_sequence(self) -> int:
        memory = self.memory
        stated = None if memory is None else memory.metadata.get("sequence")
        return stated if isinstance(stated, int) and stated > 0 else 0


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
    value = item.value
    if not isinstance(value, Mapping):
        return None
    named = split_key(item.key)
    if named is None:
        return None
    kind, key = named
    try:
        return Memory.from_store_value({**value, "type": kind, "key": key})
    except InvalidArgumentError:
        return None


def text_without(shelf: Shelf, gone: Collection[int]) -> str | None:
    """Return the search text of the current version without some past ones.

    Args:
        shelf: The memory, with all its past versions.
        gone: The numbers of the versions that are about to be erased.

    Returns:
        The text; `None` if it does not change.
    """
    memory = shelf.memory
    if memory is None:
        return None
    past = shelf.past_memories
    text = search_text(memory, {number: past[number] for number in past if number not in gone})
    return None if text == search_text(memory, past) else text


def ending_of(memory: Memory) -> str | None:
    """Return the `Ending` of a past version; `None` for a current one."""
    by = memory.metadata.get("superseded_by")
    return by.get("change") if isinstance(by, Mapping) else None


def write(shelf: Shelf, writing: Writing, memory: Memory) -> Step | None:
    """Make `memory` the current version; the old current version goes to the history.

    If its content is the same, it only refreshes the current version: the caller's own metadata is
    merged, and the importance never falls. Only if now the user or a person says what somebody
    else told before, there is a new version. A memory with an earlier moment than the current
    version goes to the history at once. A memory without authority changes none that has it, and
    no such one waits for it: see `refusal`.
    """
    current = shelf.memory
    refused = refusal(current, memory.type, origin_of(memory))
    is_same = current is not None and same_content(current.content, memory.content)
    if refused is not None:
        return None if is_same else Step((), None, refused=refused)
    vouched = origin_of(memory) in _OWN and current is not None and origin_of(current) not in _OWN
    if current is not None and is_same and not vouched:
        return _refresh(shelf, current, memory, writing)
    # Of two that differ, the current one has no authority.
    is_alike = current is None or has_authority(current) is has_authority(memory)
    if is_alike and _is_outdated(shelf, writing):
        return _overtaken(shelf, memory, writing)
    sequence = shelf.next
    managed: dict[str, Any] = {
        "created_at": writing.moment,
        "valid_from": writing.moment,
        "sequence": sequence,
    }
    before: list[Put | Delete] = []
    if shelf.item is not None:
        managed["created_at"] = _created_at(shelf.item, current)
    if current is not None:
        managed["supersedes"] = _link(shelf, shelf.sequence)
        before = _ended(shelf, current, writing, "update", sequence)
    new = _managed(memory, managed)
    return Step((*before, _put(shelf, new, writing), *_trim(shelf, before, writing)), new)


def retire(
    shelf: Shelf, writing: Writing, ending: Ending, origin: Origin = Origin.PERSON
) -> Step | None:
    """Move the current version to the history, without a new current version.

    A current version later than this change stays, and so does one that `origin` may not change.
    """
    memory = shelf.memory
    if shelf.item is None or memory is None:
        return None
    if (refused := refusal(memory, memory.type, origin)) is not None:
        return Step((), None, refused=refused)
    if _is_outdated(shelf, writing):
        return Step((), None, outdated=True)
    before = _ended(shelf, memory, writing, ending)
    gone = _remove(shelf.item)
    return Step((*before, gone, *_trim(shelf, before, writing)), None)


def undo(shelf: Shelf, writing: Writing) -> Step | None:
    """Take back the last change that was not taken back before.

    Returns `None` also if the version to restore is no longer kept.
    """
    memory = shelf.memory
    if shelf.item is None:
        return _bring_back(shelf, writing)
    if memory is None:
        return None
    supersedes = memory.metadata.get("supersedes")
    if not isinstance(supersedes, Mapping):
        return retire(shelf, writing, "undo")
    target = shelf.record(supersedes.get("sequence", 0))
    if target is None:
        return None
    restored = _restored(target, shelf)
    before = _ended(shelf, memory, writing, "undo", _number(target))
    gone = _remove(target)
    return Step((*before, _put(shelf, restored, writing), gone), restored)


def _is_outdated(shelf: Shelf, writing: Writing) -> bool:
    """Return whether the current version is later than the write, or a later deletion exists.

    A moment that is a day or more in the future says nothing: a clock was wrong.
    """
    if writing.said_at is None:
        return False
    if shelf.item is not None:
        moments = [None if shelf.memory is None else shelf.memory.metadata.get("valid_from")]
    else:
        past = [each for each in map(past_memory, shelf.past) if each is not None]
        gone = [each for each in past if ending_of(each) in ("delete", "undo")]
        moments = [each.metadata.get("superseded_at") for each in gone]
    later = [each for each in moments if isinstance(each, str) and each > writing.said_at]
    return any(days_between(writing.now, each) < 1 for each in later)


def _overtaken(shelf: Shelf, memory: Memory, writing: Writing) -> Step:
    """Add a memory older than the current version to the history; not if the key was deleted."""
    nothing = Step((), None, outdated=True)
    current = shelf.memory
    if current is None or writing.history_limit == 0 or _is_kept(shelf, memory, writing):
        return nothing
    sequence = shelf.next
    managed = {
        "created_at": writing.moment,
        "valid_from": writing.moment,
        "sequence": sequence,
        "superseded_at": current.metadata["valid_from"],
        "superseded_by": _link(shelf, shelf.sequence) | {"change": "update"},
    }
    record = _record(shelf, _managed(memory, managed), writing, sequence)
    return Step((record, *_trim(shelf, [record], writing)), None, outdated=True)


def _is_kept(shelf: Shelf, memory: Memory, writing: Writing) -> bool:
    """Return whether an earlier attempt already added the memory to the history."""
    return any(
        each.content == memory.content and each.metadata.get("valid_from") == writing.moment
        for each in filter(None, map(past_memory, shelf.past))
    )


def _managed(memory: Memory, managed: Mapping[str, Any]) -> Memory:
    given = {key: value for key, value in memory.metadata.items() if key not in MANAGED}
    return Memory(memory.type, memory.key, memory.content, {**given, **managed})


def last_change(shelf: Shelf, writing: Writing) -> str | None:
    """Return the moment of the change that `undo` would take back; `None` if there is none."""
    if undo(shelf, writing) is None:
        return None
    target = _retired(shelf) if shelf.item is None else None
    changed = shelf.memory if target is None else past_memory(target)
    name = "valid_from" if target is None else "superseded_at"
    moment = None if changed is None else changed.metadata.get(name)
    return moment if isinstance(moment, str) else ""


def _retired(shelf: Shelf) -> StoreItem | None:
    return next((each for each in shelf.past if _ending(each) in ("delete", "evict")), None)


def _bring_back(shelf: Shelf, writing: Writing) -> Step | None:
    target = _retired(shelf)
    if target is None:
        return None
    restored = _restored(target, shelf)
    return Step((_put(shelf, restored, writing), _remove(target)), restored)


def _refresh(shelf: Shelf, current: Memory, given: Memory, writing: Writing) -> Step | None:
    own = {
        key: value
        for key, value in given.metadata.items()
        if key not in MANAGED and key not in _PROVENANCE
    }
    merged = current.metadata | own
    if EXPIRES_AT not in own and is_expired(current, writing.now):
        # Said again, it holds again.
        merged.pop(EXPIRES_AT)
    if "importance" in own:
        merged["importance"] = max(importance_of(current), importance_of(given))
    if merged == current.metadata:
        return None
    new = Memory(current.type, current.key, current.content, merged)
    return Step((_put(shelf, new, writing),), new)


def importance_of(memory: Memory) -> float:
    """Return the importance of a memory, from 0 to 1; 0.5 if it has none."""
    stated = memory.metadata.get("importance")
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        return 0.5
    return min(1.0, max(0.0, float(stated)))


def _put(shelf: Shelf, memory: Memory, writing: Writing) -> Put:
    text = search_text(memory, _kept(shelf, memory, writing))
    version = 0 if shelf.item is None else shelf.item.version
    return replace(current_put(writing.scope, memory, text), if_version=version)


def current_put(scope: Scope, memory: Memory, text: str) -> Put:
    """Return the put of a current memory, with its search text; see `search_text`."""
    name = current_key(memory.type, memory.key)
    return Put(namespace=scope.current, key=name, value=memory.to_store_value(), text=text)


def _kept(shelf: Shelf, memory: Memory, writing: Writing) -> dict[int, Memory | None]:
    """Return the past versions, by number, that are kept once `memory` is current."""
    past = shelf.past_memories
    if shelf.item is not None:
        past[shelf.sequence] = shelf.memory
    past.pop(memory.metadata.get("sequence", 0), None)
    return {number: past[number] for number in sorted(past, reverse=True)[: writing.history_limit]}


def _ended(
    shelf: Shelf, memory: Memory, writing: Writing, ending: Ending, sequence: int | None = None
) -> list[Put | Delete]:
    """Return the put of the current version's record; none if no history is kept."""
    if writing.history_limit == 0:
        return []
    by = _link(shelf, sequence) | {"change": ending}
    ends = {"sequence": shelf.sequence, "superseded_at": writing.moment, "superseded_by": by}
    ended = Memory(memory.type, memory.key, memory.content, memory.metadata | ends)
    return [_record(shelf, ended, writing, shelf.sequence)]


def _record(shelf: Shelf, memory: Memory, writing: Writing, sequence: int) -> Put:
    return Put(
        namespace=writing.scope.history(shelf.kind, shelf.key),
        key=f"{sequence:012}",
        value=memory.to_store_value(),
        if_version=shelf.stored_version(sequence),
        text="",
    )


def _trim(shelf: Shelf, added: Sequence[Put | Delete], writing: Writing) -> list[Delete]:
    surplus = shelf.past[max(0, writing.history_limit - len(added)) :]
    return [_remove(each) for each in surplus]


def _restored(record: StoreItem, shelf: Shelf) -> Memory:
    value = record.value
    metadata = {
        name: part
        for name, part in value["metadata"].items()
        if name not in ("superseded_at", "superseded_by")
    }
    return Memory(shelf.kind, shelf.key, value["content"], metadata)


def _remove(item: StoreItem) -> Delete:
    return Delete(namespace=item.namespace, key=item.key, if_version=item.version)


def _link(shelf: Shelf, sequence: int | None) -> dict[str, Any]:
    link: dict[str, Any] = {"type": shelf.kind.value, "key": shelf.key}
    return link if sequence is None else link | {"sequence": sequence}


def _created_at(item: StoreItem, current: Memory | None) -> str:
    stated = None if current is None else current.metadata.get("created_at")
    return stated if isinstance(stated, str) else item.created_at.isoformat()


def _number(record: StoreItem) -> int:
    return int(record.key) if record.key.isdecimal() else 0


def _ending(record: StoreItem) -> str | None:
    memory = past_memory(record)
    return None if memory is None else ending_of(memory)


def past_memory(record: StoreItem) -> Memory | None:
    """Return the past version of an item of a history."""
    try:
        return Memory.from_store_value(record.value)
    except InvalidArgumentError:
        return None


def versions(shelf: Shelf) -> list[Memory]:
    """Return all versions of a key: the current one, then the past ones, the newest first."""
    found: Iterable[Memory | None] = (shelf.memory, *map(past_memory, shelf.past))
    return [memory for memory in found if memory is not None]
