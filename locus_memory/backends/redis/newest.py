"""The newest items of one namespace or of many."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from locus_memory.backends.redis.hits import Page, is_open
from locus_memory.backends.redis.items import decode_item, rows
from locus_memory.backends.redis.spaces import PAGE, Space, Spaces
from locus_memory.backends.redis.store_scripts import script
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["newest"]

_WIDTH: Final = 6
_SKIPPED: Final = 10 * PAGE


async def newest(spaces: Spaces, targets: Sequence[Space], page: Page) -> list[StoreItem]:
    """Return the items that satisfy the condition, the newest write first.

    Within a namespace that is the order of the writes. Between namespaces it is that of the
    server's clock at each, to the microsecond.
    """
    groups = spaces.groups(targets)
    # What is only skipped need not be read, unless it has to be looked at.
    skip = page.offset if is_open(page.condition) and len(groups) == 1 else 0
    size = min(page.end - skip, PAGE) if is_open(page.condition) else PAGE
    sources = [_Source(group, skip, size) for group in groups]
    found: list[StoreItem] = []
    while len(found) < page.end - skip:
        await _refill(spaces, sources)
        source = max((each for each in sources if each.rows), key=_newest_of, default=None)
        if source is None:
            break
        row = source.rows.popleft()
        if page.wants(row.columns):
            found.append(decode_item(row.namespace, row.columns))
    return found[page.offset - skip :]


class _Row(NamedTuple):
    revision: int
    namespace: Namespace
    columns: Sequence[bytes]


class _Source:
    """Namespaces that one script reads together, and what of them is read but not used."""

    def __init__(self, spaces: list[Space], skip: int, size: int) -> None:
        self.spaces = spaces
        self.rows: deque[_Row] = deque()
        self.has_more = True
        self._starts: Sequence[bytes] = [b"+inf"] * len(spaces)
        self._skip = skip
        self._size = size

    @property
    def is_dry(self) -> bool:
        """Whether it has to be read before it is known what comes next."""
        return self.has_more and not self.rows

    def arguments(self) -> tuple[Any, ...]:
        """Return what the script has to be told."""
        most = self._size if self._skip <= _SKIPPED else 0
        return min(self._skip, _SKIPPED), most, *self._starts

    def take(self, answer: Sequence[Any]) -> list[tuple[Space, bytes]]:
        """Take what the script found; return what turned out to be gone."""
        has_more, skipped, self._starts, gone, flat = answer
        self.has_more = bool(has_more)
        self._skip -= skipped
        for number, revision, *columns in rows(flat, _WIDTH):
            namespace = self.spaces[number - 1].namespace
            self.rows.append(_Row(int(revision), namespace, columns))
        return [(self.spaces[number - 1], key) for number, key in rows(gone, 2)]


def _newest_of(source: _Source) -> int:
    return source.rows[0].revision


async def _refill(spaces: Spaces, sources: Sequence[_Source]) -> None:
    while dry := [source for source in sources if source.is_dry]:
        now = spaces.now()
        calls = [
            script("newest").call([s.base for s in source.spaces], [now, *source.arguments()])
            for source in dry
        ]
        for source, answer in zip(dry, await spaces.run_each(calls), strict=True):
            await spaces.purge(source.take(answer))
