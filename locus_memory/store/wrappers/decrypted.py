"""The words of decrypted items: an index in memory, which follows what the database holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, Restored, StoreItem

__all__ = ["DecryptedItems"]

_TOGETHER: Final = 200
"""How many items are decrypted before others have their turn."""


class _Index(NamedTuple):
    """The decrypted items of a namespace, and the encrypted ones that they were."""

    store: BaseStore
    known: dict[tuple[Namespace, str], StoreItem]
    size: int = 0

    @classmethod
    def empty(cls) -> _Index:
        # The registry imports the backends, which import this contract.
        from locus_memory.registry import get_store  # noqa: PLC0415

        # Its clock stands still: the inner store tells what has not expired.
        return cls(get_store("memory", clock=float), {})


class DecryptedItems:
    """Stores in memory with the decrypted items of the namespaces that were searched last.

    A search decrypts only what is new or changed since the last one of its namespace.

    Args:
        opened: Decrypts an item; also returns the text that it was put with.
        most: The most items of all namespaces.
    """

    def __init__(
        self, opened: Callable[[StoreItem], tuple[StoreItem, str | None]], most: int
    ) -> None:
        self._opened = opened
        self._indexes = RecentlyUsed[_Index](most, attrgetter("size"))

    @property
    def size(self) -> int:
        """The number of items of all namespaces, and one for each namespace."""
        return sum(each.size for each in self._indexes.all().values())

    async def of(self, name: str, items: Sequence[StoreItem]) -> BaseStore:
        """Return a store with some items, decrypted.

        Args:
            name: The name of their namespace.
            items: All of its items as they are stored, the newest write first.

        Raises:
            EncryptionError: One was moved or altered.
        """
        index, known, _ = self._indexes.get(name) or _Index.empty()
        there = {(item.namespace, item.key) for item in items}
        gone = [place for place in known if place not in there]
        await index.delete_batch(gone)
        for place in gone:
            known.pop(place, None)
        # The oldest write first; in between, others have their turn.
        changed = [each for each in items[::-1] if known.get((each.namespace, each.key)) != each]
        for start in range(0, len(changed), _TOGETHER):
            some = changed[start : start + _TOGETHER]
            await index.restore([_restored(*self._opened(each)) for each in some])
            known.update(((each.namespace, each.key), each) for each in some)
            await asyncio.sleep(0)
        self._indexes.put(name, _Index(index, known, len(known) + 1))
        return index


def _restored(item: StoreItem, text: str | None) -> Restored:
    return Restored(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        metadata=item.metadata,
        text=text,
        version=item.version,
        created_at=item.created_at,
        updated_at=item.updated_at,
        expires_at=item.expires_at,
    )
