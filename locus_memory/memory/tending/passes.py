"""A pass over a scope, and the right to make it: one at a time, of all processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final

from pydantic import Field

from locus_memory.chat.base import ChatModel
from locus_memory.errors import VersionConflictError
from locus_memory.memory.layers.records import readable, record_of, value_of
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.moments import days_between
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Put

__all__ = ["Pass", "PassRecord", "is_over", "read_record", "write_record"]

_KEY: Final = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A pass over one scope.

    Attributes:
        store: The store, which this never closes.
        ledger: The ledger of the memories.
        options: The retention, and the budget of a block.
        scope: The scope.
        now: The moment of the pass, in the format of `Ledger.now`.
        model: Condenses notes and tidies facts; `None`: neither is done.
        dry_run: Only report; nothing is written.
    """

    store: BaseStore
    ledger: Ledger
    options: MemoryOptions
    scope: Scope
    now: str
    model: ChatModel | None
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """The record of the last pass over a scope. Moments are ISO 8601 in UTC.

    Attributes:
        ran_at: The moment of the last whole pass, or of the first look at the scope.
        facts_at: The last moment at which a model was asked about the facts.
        lease: The lease of the pass that is at work; `None`: there is none.
        version: The store's version of the record; 0: there is none.
    """

    ran_at: str | None = None
    facts_at: str | None = None
    lease: Mapping[str, Any] | None = None
    version: Annotated[int, Field(exclude=True)] = 0


def is_over(since: str | None, now: str) -> bool:
    """Return whether a day went by since a moment; `None`: long ago."""
    return since is None or days_between(since, now) >= 1.0


async def read_record(store: BaseStore, scope: Scope) -> PassRecord:
    """Return the record of a scope; an empty one if there is none.

    Raises:
        BackendError: The store failed.
    """
    item = await store.get_item(scope.tending, _KEY)
    if item is None:
        return PassRecord()
    known = readable(partial(record_of, PassRecord), item.value, "tending")
    return replace(known or PassRecord(), version=item.version)


async def write_record(
    store: BaseStore, scope: Scope, record: PassRecord, *more: Put
) -> PassRecord | None:
    """Write a record in place of its version, together with more.

    Returns:
        The record as it is stored; `None`: another process was faster, or the scope was erased.

    Raises:
        BackendError: The store failed.
    """
    value = value_of(record)
    put = Put(namespace=scope.tending, key=_KEY, value=value, if_version=record.version, text="")
    try:
        await write_together(store, [put, *more])
    except VersionConflictError:
        return None
    return replace(record, version=record.version + 1)
