"""The memories that an id, or a filter, names: those of nobody and of all users."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from locus_memory._internal.recent import RecentlyUsed
from locus_memory._internal.running.paging import paged
from locus_memory.integrations.mem0.filters import condition, required
from locus_memory.integrations.mem0.shapes import Slot, row
from locus_memory.memory.forgetting.choice import named
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, split_key, user_namespace
from locus_memory.memory.validity import said_at
from locus_memory.store.base import BaseStore, all_namespaces, scan_all
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Slots"]

_PAGE: Final = 500
_KNOWN: Final = 100_000
"""How many slots of memories are remembered by their ids."""


class Slots:
    """The slots of the memories below a prefix.

    Args:
        store: The store of the memories.
        ledger: Reads them.
        prefix: The namespace of the memories without a user.
    """

    def __init__(self, store: BaseStore, ledger: Ledger, prefix: Namespace) -> None:
        self._store, self._ledger, self._prefix = store, ledger, prefix
        self._known = RecentlyUsed[Slot](_KNOWN)

    def scope(self, user: str | None) -> Scope:
        """Return the scope of a user; `None`: of nobody."""
        return Scope(self._prefix if user is None else user_namespace(self._prefix, user))

    def seen(self, slot: Slot) -> Slot:
        """Remember a slot by its id."""
        self._known.put(slot.id, slot)
        return slot

    async def owners(self) -> AsyncIterator[str | None]:
        """Yield nobody and all users."""
        yield None
        root, depth = user_namespace(self._prefix, "")[:-1], len(self._prefix) + 2
        async for space in paged(
            lambda after: self._store.list_namespaces(root, _PAGE, max_depth=depth, after=after)
        ):
            yield space[-1]

    async def selected(
        self, filters: Mapping[str, Any]
    ) -> AsyncIterator[tuple[str | None, Selection]]:
        """Yield the users of which memories may match, each with those that count."""
        user = required(filters).get("user_id")
        owners = [each async for each in self.owners()] if user is None else [user]
        for each in owners:
            yield each, Selection(filter=condition(filters, each))

    async def of(self, memory_id: str) -> Slot | None:
        """Return the slot of a memory that is there, or was; `None`: there is none.

        An id that this process does not know is searched among those of all memories.
        """
        try:
            name = str(UUID(memory_id))
        except (ValueError, TypeError, AttributeError):
            return None
        if (slot := self._known.get(name)) is None:
            owners = [each async for each in self.owners()]
            found = [self.seen(at) for each in owners async for at in self._below(each)]
            slot = next((each for each in found if each.id == name), None)
        return slot

    async def current(self, memory_id: str) -> tuple[Slot, Memory] | None:
        """Return a memory that is there, with its slot."""
        slot = await self.of(memory_id)
        known = None if slot is None else await self._ledger.current(*slot[1:])
        return None if slot is None or known is None else (slot, known)

    async def row(self, user: str | None, memory: Memory) -> dict[str, Any]:
        """Return a memory as mem0 returns it."""
        slot = self.seen(Slot(user, self.scope(user), memory.type, memory.key))
        first = memory
        if "supersedes" in memory.metadata:
            *_, first = await self._ledger.history(*slot[1:])
        return row(slot, memory, said_at(first) or None)

    async def ended(self, user: str | None, selection: Selection) -> list[Slot]:
        """Return the slots of the deleted memories of which a version counts."""
        scope, found = self.scope(user), list[StoreItem]()
        search = partial(self._store.search, _past(scope), None, _PAGE, recursive=True)
        while page := await search(filter=selection.condition, offset=len(found)):
            found += page
        names = {named(each.namespace, each.key) for each in found}
        return [
            Slot(user, scope, *name)
            for name in sorted(names)
            if await self._ledger.current(scope, *name) is None
        ]

    async def _below(self, user: str | None) -> AsyncIterator[Slot]:
        """Yield the slots of the present and the past memories of a user."""
        scope = self.scope(user)
        async for item in scan_all(self._store, scope.current):
            if (named := split_key(item.key)) is not None:
                yield Slot(user, scope, *named)
        async for space in all_namespaces(self._store, _past(scope)):
            yield Slot(user, scope, MemoryType(space[-2]), space[-1])


def _past(scope: Scope) -> Namespace:
    return scope.history(MemoryType.USER, "")[:-2]
