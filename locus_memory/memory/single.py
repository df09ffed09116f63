"""Single memories of a manager's scope: their history, undo and erasure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope
from locus_memory.store.item import check_key

__all__ = ["SingleMemories"]


class SingleMemories:
    """The part of a memory manager that works on memories one by one."""

    _ledger: Ledger
    _scope: Scope

    async def history(self, key: str, type: MemoryType | str | None = None) -> list[Memory]:  # noqa: A002 - the field's word
        """Return all versions of a memory: the current one, then past ones, newest first.

        A past version says in its metadata when it ended, `superseded_at`, and by what,
        `superseded_by`: a change (`update`, `delete`, `evict` or `undo`) and the version that
        took its place, if there was one.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: whatever types have the key, one after another.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        kinds = _kinds(type)
        found = await asyncio.gather(
            *(self._ledger.history(self._scope, kind, key) for kind in kinds)
        )
        return [memory for versions in found for memory in versions]

    async def undo(self, key: str, type: MemoryType | str | None = None) -> Memory | None:  # noqa: A002 - the field's word
        """Take back the last change of a memory; a second call takes back the one before.

        A replaced memory is current again, a deleted or evicted one is restored, an added one
        is removed. What was taken back stays in the history. Nothing happens where there is no
        change left, or the version to go back to is no longer kept. Where a restored memory is
        one too many of its type, another one goes to the history, with an event.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: of the types that have the key, the one whose
                change to take back is the latest.

        Returns:
            What is current now, or `None`.

        Raises:
            BackendError: The store failed.
        """
        check_key(key)
        kinds = _kinds(type)
        if len(kinds) > 1:
            kinds = await self._last_changed(key)
        for kind in kinds:
            return await self._ledger.undo(self._scope, kind, key)
        return None

    async def forget(self, key: str, type: MemoryType | str | None = None) -> int:  # noqa: A002 - the field's word
        """Erase a memory for good: what is current, its vector and its history.

        Messages that still wait for extraction are left alone, and may bring it back.

        Args:
            key: The memory's key.
            type: The memory's type; `None`: all types.

        Returns:
            How many versions were erased.

        Raises:
            BackendError: The store failed; call it again.
        """
        check_key(key)
        return sum([await self._ledger.forget(self._scope, kind, key) for kind in _kinds(type)])

    async def memories(self, type: MemoryType | str | None = None) -> AsyncIterator[Memory]:  # noqa: A002 - the field's word
        """Yield all current memories, by type and key, however many."""
        for kind in _kinds(type):
            async for memory in self._ledger.memories(self._scope, kind):
                yield memory

    async def _last_changed(self, key: str) -> list[MemoryType]:
        found = await asyncio.gather(
            *(self._ledger.last_change(self._scope, kind, key) for kind in MemoryType)
        )
        changed = {
            k: moment for k, moment in zip(MemoryType, found, strict=True) if moment is not None
        }
        return sorted(changed, key=lambda kind: changed[kind], reverse=True)[:1]


def _kinds(type: MemoryType | str | None) -> list[MemoryType]:  # noqa: A002 - the field's word
    try:
        return list(MemoryType) if type is None else [MemoryType(type)]
    except ValueError:
        known = ", ".join(MemoryType)
        raise InvalidArgumentError(
            f"a memory's type is one of {known}, not {quote(type)}"
        ) from None
