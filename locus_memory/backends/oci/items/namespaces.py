"""The list of namespaces, from the names of the items.

A page of the service has 1,000 names of one or many namespaces. As soon as one item of a namespace
is known to be there, the rest of the namespace is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from locus_memory._internal.recent import RecentlyUsed
from locus_memory.backends.oci.connection.driver import Listed
from locus_memory.backends.oci.items.items import Items, together
from locus_memory.backends.oci.items.stored import Stored, may_expire
from locus_memory.backends.oci.schema import decode_labels, is_cut
from locus_memory.store.item import Namespace
from locus_memory.store.listing import Listing

__all__ = ["NamespaceWalk"]

_READ_AT_ONCE: Final = 16
"""The items of a namespace that are read together until one is live."""

_REMEMBERED: Final = 4096


class NamespaceWalk:
    """The walk through the names of all items.

    Args:
        items: The items.
    """

    def __init__(self, items: Items) -> None:
        self._items = items
        self._names = items.names
        self._cut: RecentlyUsed[Namespace] = RecentlyUsed(_REMEMBERED)

    async def listed(self, listing: Listing, limit: int) -> list[Namespace]:
        """Return the namespaces that are asked for and have a live item, in order."""
        found: dict[Namespace, str] = {}
        fixed = listing.prefix.index("*") if "*" in listing.prefix else len(listing.prefix)
        prefix = self._names.below(listing.prefix[:fixed])
        start = self._start(listing)
        following = start if start > prefix else None
        self._items.connection.check_open()
        while limit:
            page = await self._items.connection.page(prefix, start=following)
            skipped = await self._read_page(page.objects, listing, found)
            if page.next_start_with is None or _is_enough(found, limit):
                break
            following = max(page.next_start_with, skipped)
            if not following.startswith(prefix):
                break
        return sorted(found)[:limit]

    def _start(self, listing: Listing) -> str:
        """Return the first name that may be of a namespace behind the cursor."""
        depth = listing.max_depth
        if depth is not None and depth <= len(listing.after):
            return self._names.beyond(listing.after[:depth]) or ""
        return self._names.below(listing.after) if listing.after else ""

    async def _read_page(
        self, objects: Sequence[Listed], listing: Listing, found: dict[Namespace, str]
    ) -> str:
        """Add the namespaces of a page; return the first name that may be of another one."""
        skipped = ""
        for segment, group in groupby(objects, key=self._segment):
            listed = list(group)
            if segment and listed[0].name >= skipped:
                skipped = await self._read_space(segment, listed, listing, found) or skipped
        return skipped

    async def _read_space(
        self,
        segment: str,
        listed: Sequence[Listed],
        listing: Listing,
        found: dict[Namespace, str],
    ) -> str | None:
        """Add one namespace; return the first name behind it, or `None` if it may have more."""
        namespace = await self._namespace(segment, listed)
        if namespace is None:
            return None
        cut = listing.cut(namespace)
        if cut is not None and cut not in found:
            if not await self._live(listed):
                return None
            found[cut] = segment
        beyond = self._names.beyond_space(segment)
        if cut is not None and len(cut) == listing.max_depth:
            return max(beyond, self._names.beyond(cut) or "")
        return beyond

    def _segment(self, listed: Listed) -> str:
        segment, _ = self._names.parts(listed.name) or ("", "")
        return segment

    async def _namespace(self, segment: str, listed: Sequence[Listed]) -> Namespace | None:
        """Return the namespace of a part of a name; `None`: no live item of it is known."""
        if not is_cut(segment):
            return decode_labels(segment)
        known = self._cut.get(segment)
        if known is not None:
            return known
        item = await self._first(listed)
        if item is not None:
            self._cut.put(segment, item.namespace)
        return None if item is None else item.namespace

    async def _live(self, listed: Sequence[Listed]) -> bool:
        """Return whether one of the items is live."""
        if any(not may_expire(each.size) for each in listed):
            return True
        return await self._first(listed) is not None

    async def _first(self, listed: Sequence[Listed]) -> Stored | None:
        """Return a live item, one that does not expire if there is one."""
        ordered = sorted(listed, key=lambda each: may_expire(each.size))
        for place in range(0, len(ordered), _READ_AT_ONCE):
            some = ordered[place : place + _READ_AT_ONCE]
            read = await together(lambda each: self._items.read(each.name, None, None), some)
            live = next(filter(None, read), None)
            if live is not None:
                return live
        return None


def _is_enough(found: dict[Namespace, str], limit: int) -> bool:
    """Return whether all namespaces that follow are behind those that were found."""
    return len(found) >= limit and not is_cut(next(reversed(found.values())))
