"""The lists of one namespace: names from the service, and the items that have to be read.

A list of the service has the names and sizes of 1,000 objects. It is enough for a list of keys,
apart from items that may have expired and keys whose names are cut. A scan reads each item.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

from locus_memory.backends.oci.connection.driver import Listed
from locus_memory.backends.oci.items.items import Items, together
from locus_memory.backends.oci.items.stored import Stored, may_expire
from locus_memory.backends.oci.schema import MOST, NamesInOrder, decode_name, is_cut
from locus_memory.backends.selection import KeyRange, Selection
from locus_memory.store.item import Namespace
from locus_memory.store.listing import keys_in_range

__all__ = ["clear", "list_keys", "purge_expired", "read_all", "scan"]

T = TypeVar("T")

_PAGE: Final = 1000

Run = list[Listed]
"""Objects whose order only a reader knows: those of one cluster; or a single one."""


class _Space:
    """The names of one namespace, and the range of keys of a list."""

    def __init__(self, items: Items, namespace: Namespace, keys: KeyRange) -> None:
        self.items = items
        self.namespace = namespace
        self.keys = keys
        self.folder = items.names.space(namespace)
        self._bounds = NamesInOrder.of(
            self.folder, keys.prefix, keys.after, descending=keys.descending
        )

    def code(self, listed: Listed) -> str:
        """Return the part of a name for the key."""
        return str(listed.name)[len(self.folder) :]

    async def runs(self, limit: int) -> AsyncIterator[Run]:
        """Yield the objects in the order of the range."""
        bounds = self._bounds
        pages = self.items.connection.pages(
            bounds.prefix, start=bounds.start, end=bounds.stop, limit=min(limit + 1, _PAGE)
        )
        if not self.keys.descending:
            async for run in self._grouped(pages):
                yield run
            return
        # The service lists in one direction only.
        for run in reversed([run async for run in self._grouped(pages)]):
            yield run

    async def _grouped(self, pages: AsyncIterator[Any]) -> AsyncIterator[Run]:
        cluster: Run = []
        async for page in pages:
            for listed in page.objects:
                if cluster and not self._are_alike(cluster[0], listed):
                    yield cluster
                    cluster = []
                if is_cut(self.code(listed)):
                    cluster.append(listed)
                else:
                    yield [listed]
        if cluster:
            yield cluster

    def _are_alike(self, one: Listed, other: Listed) -> bool:
        code = self.code(other)
        return is_cut(code) and self.code(one)[:MOST] == code[:MOST]

    async def read(self, runs: Sequence[Run]) -> list[Stored]:
        """Return the live items of some runs, in the order of the range."""

        async def read(listed: Listed) -> Stored | None:
            code = self.code(listed)
            key = None if is_cut(code) else decode_name(code)
            return await self.items.read(listed.name, self.namespace, key)

        found = iter(await together(read, [listed for run in runs for listed in run]))
        items: list[Stored] = []
        for run in runs:
            live = {item.key: item for item in (next(found) for _ in run) if item is not None}
            prefix, after, descending = self.keys.prefix, self.keys.after, self.keys.descending
            wanted = keys_in_range(live, prefix, after, descending=descending)
            items += [live[key] for key in wanted]
        return items

    def known_key(self, run: Run) -> str | None:
        """Return the key of a run that the list alone tells, or `None`."""
        (listed, *others) = run
        code = self.code(listed)
        if others or is_cut(code) or may_expire(listed.size):
            return None
        return decode_name(code)


async def scan(items: Items, namespace: Namespace, keys: KeyRange, limit: int) -> list[Stored]:
    """Return the items of one namespace in the order of their keys."""
    space = _Space(items, namespace, keys)
    return await _first(space, limit, lambda _: None, lambda item: item)


async def list_keys(items: Items, namespace: Namespace, keys: KeyRange, limit: int) -> list[str]:
    """Return the keys of one namespace in order."""
    space = _Space(items, namespace, keys)
    return await _first(space, limit, space.known_key, attrgetter("key"))


async def _first(
    space: _Space, limit: int, known: Callable[[Run], T | None], of: Callable[[Stored], T]
) -> list[T]:
    """Return the first values of a range.

    Args:
        space: The range.
        limit: How many.
        known: Returns the value of a run that the list alone tells, or `None`.
        of: Returns the value of an item that was read.
    """
    found: list[T] = []
    waiting: list[Run] = []
    space.items.connection.check_open()
    if not limit:
        return []
    async for run in space.runs(limit):
        value = known(run)
        if value is None:
            waiting.append(run)
            if sum(map(len, waiting)) < min(_PAGE, limit - len(found)):
                continue
        if waiting:
            found += map(of, await space.read(waiting))
            waiting = []
        if value is not None:
            found.append(value)
        if len(found) >= limit:
            return found[:limit]
    return [*found, *map(of, await space.read(waiting))][:limit]


async def _every(items: Items, prefix: str) -> AsyncIterator[Sequence[Listed]]:
    async for page in items.connection.pages(prefix):
        yield [each for each in page.objects if items.names.parts(each.name)]


async def read_all(items: Items, selection: Selection) -> list[Stored]:
    """Return all live items of a namespace, and of its descendants if they are selected."""
    found: list[Stored] = []
    folder = _folder(items, selection.namespace, recursive=selection.recursive)
    async for listed in _every(items, folder):
        read = await together(lambda each: items.read(each.name, None, None), listed)
        found += [
            item
            for item in read
            if item and is_within(item, selection.namespace, recursive=selection.recursive)
        ]
    return found


def _folder(items: Items, namespace: Namespace, *, recursive: bool) -> str:
    return items.names.below(namespace) if recursive else items.names.space(namespace)


def is_within(item: Stored, namespace: Namespace, *, recursive: bool) -> bool:
    """Whether an item is in a namespace, or in a descendant if these count."""
    named = item.namespace
    return (named[: len(namespace)] if recursive else named) == namespace


async def clear(items: Items, namespace: Namespace, *, recursive: bool) -> int:
    """Delete the items of a namespace, and of its descendants if these count; return how many."""

    async def remove(listed: Listed) -> bool:
        segment, _ = items.names.parts(listed.name) or ("", "")
        if may_expire(listed.size) or (recursive and is_cut(segment)):
            item = await items.read(listed.name, None, None)
            if item is None or not is_within(item, namespace, recursive=recursive):
                return False
        return await items.remove(listed.name)

    count = 0
    async for listed in _every(items, _folder(items, namespace, recursive=recursive)):
        count += sum(await together(remove, listed))
    return count


async def purge_expired(items: Items) -> None:
    """Delete all items that have expired."""
    async for listed in _every(items, items.names.items):
        perishable = [each for each in listed if may_expire(each.size)]
        await together(lambda each: items.read(each.name, None, None), perishable)
