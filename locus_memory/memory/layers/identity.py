"""The identity layer: the sentences that a person fixed, and the record of earlier versions.

What a person fixed are memories, see `FIXED`. Earlier versions kept it in a record of its own,
beside what they derived about the owner. The record is read until `adopt` makes memories of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from locus_memory._internal.neutral import neutralise
from locus_memory.errors import InvalidArgumentError, VersionConflictError
from locus_memory.events import emit
from locus_memory.memory.ledger.ledger import Ledger, Statement
from locus_memory.memory.ledger.likeness import made_up_key
from locus_memory.memory.models import FIXED, ORIGIN, Memory, MemoryType, Origin, is_fixed
from locus_memory.memory.phrases.naming import named_memory
from locus_memory.memory.scope import Scope
from locus_memory.memory.validity import SAID_AT, said_at
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Delete, Put, StoreItem

__all__ = ["BY_A_PERSON", "Identity", "Override", "Record", "adopt", "read_record"]

BY_A_PERSON: Final[Mapping[str, Any]] = {ORIGIN: Origin.PERSON.value, FIXED: True}
"""The metadata of what a person fixes."""

_KEY: Final = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A sentence that a person fixed: it is always in context, and no model changes it.

    Attributes:
        id: The `Memory.id` of its memory.
        text: The sentence.
        created_at: The moment it was written, ISO 8601 in UTC.
    """

    id: str
    text: str
    created_at: str

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """Return a fixed memory as a sentence."""
        return cls(id=memory.id, text=memory.content, created_at=said_at(memory))


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a person fixed in a scope.

    Attributes:
        overrides: The sentences, the oldest first.
    """

    overrides: tuple[Override, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """The record of an identity as an earlier version wrote it.

    Attributes:
        item: The record; `None`: there is none.
        memories: Its sentences: those that a person fixed, then those that were derived.
        unreadable: What of it is no sentence, by the names of its lists.
    """

    item: StoreItem | None
    memories: list[Memory]
    unreadable: dict[str, list[Any]]


async def read_record(store: BaseStore, scope: Scope) -> Record:
    """Return the record of a scope; each part that is no sentence is an event.

    Raises:
        BackendError: The store failed.
    """
    item = await store.get_item(scope.identity, _KEY)
    record = Record(item, [], {})
    value = {} if item is None else item.value
    lists = value if isinstance(value, Mapping) else {"overrides": value}
    for name, read in (("overrides", _fixed), ("facts", _derived)):
        listed = lists.get(name, [])
        for each in listed if isinstance(listed, list) else [listed]:
            try:
                record.memories.append(await read(each))
            except (AttributeError, KeyError, TypeError, InvalidArgumentError) as error:
                emit("memory.record_unreadable", error=error, layer="identity")
                record.unreadable.setdefault(name, []).append(each)
    return record


async def _fixed(told: Any) -> Memory:
    metadata = {SAID_AT: told.get("created_at"), **BY_A_PERSON}
    return await named_memory(neutralise(told["text"]), metadata=metadata)


async def _derived(told: Any) -> Memory:
    metadata = {SAID_AT: told["at"], "extractor": "identity", **told["source"]}
    return Memory(MemoryType.USER, made_up_key(told["text"]), neutralise(told["text"]), metadata)


async def adopt(store: BaseStore, ledger: Ledger, scope: Scope) -> None:
    """Make memories of the record of a scope, which goes but for what is unreadable.

    Raises:
        BackendError: The store failed; call it again.
    """
    record = await read_record(store, scope)
    if record.item is None or record.item.value == record.unreadable:
        return
    for each in record.memories:
        written = await ledger.apply(scope, [Statement(each, said_at(each) or None)])
        if not written and is_fixed(each):
            # What was deleted later under its key was not this sentence.
            await ledger.apply(scope, [Statement(each)])
    place: Any = {"namespace": scope.identity, "key": _KEY, "if_version": record.item.version}
    left = Put(**place, value=record.unreadable, text="") if record.unreadable else Delete(**place)
    try:
        await write_together(store, [left])
    except VersionConflictError:
        await adopt(store, ledger, scope)
