"""Pages of what a search found, in its order, without what is gone or does not match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from locus_memory.backends.redis.connection import Call
from locus_memory.backends.redis.items import decode_item, decode_values, rows
from locus_memory.backends.redis.spaces import PAGE, Space, Spaces
from locus_memory.backends.redis.store_scripts import script
from locus_memory.store.filters import All, Condition, matches
from locus_memory.store.item import StoreItem

__all__ = ["Candidate", "Page", "collect", "is_open"]

_WIDTH: Final = 4
_LEAST: Final = 16


def is_open(condition: Condition) -> bool:
    """Whether a condition lets everything through."""
    return condition == All(())


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of the hits is wanted."""

    limit: int
    offset: int
    condition: Condition

    @property
    def end(self) -> int:
        """How many hits have to be found."""
        return self.offset + self.limit if self.limit else 0

    def wants(self, row: Sequence[bytes]) -> bool:
        """Whether an item, of which this is the row, satisfies the condition."""
        if is_open(self.condition):
            return True
        value, metadata = decode_values(row)
        return matches(self.condition, value, metadata)


class Candidate(NamedTuple):
    """What an index has, its name there, and how good it is."""

    space: Space
    name: bytes
    score: float


async def collect(
    spaces: Spaces, candidates: Iterable[Candidate], page: Page, *, by_number: bool = False
) -> list[tuple[Candidate, StoreItem]]:
    """Return the wanted page of the candidates with their items, in their order.

    Args:
        spaces: Where they are.
        candidates: What was found, in order.
        page: Which part of it is wanted.
        by_number: Whether their names are numbers of documents, and not keys.
    """
    found: list[tuple[Candidate, StoreItem]] = []
    rest, size = iter(candidates), min(max(page.end, _LEAST), PAGE)
    while len(found) < page.end and (some := list(islice(rest, size))):
        kept = await _fetch(spaces, some, by_number=by_number)
        found += [
            (candidate, decode_item(candidate.space.namespace, row, candidate.score))
            for candidate, row in kept
            if page.wants(row)
        ]
        size = PAGE
    return found[page.offset : page.end]


async def _fetch(
    spaces: Spaces, candidates: Sequence[Candidate], *, by_number: bool
) -> list[tuple[Candidate, Sequence[bytes]]]:
    """Return the candidates that are there, with the rows of their items."""
    found = await _read(spaces, candidates, by_number=by_number)
    pairs = list(zip(candidates, found, strict=True))
    await spaces.purge((candidate.space, row[0]) for candidate, row in pairs if _is_gone(row))
    return [(candidate, row) for candidate, row in pairs if row[1]]


def _is_gone(row: Sequence[bytes]) -> bool:
    return bool(row[0]) and not row[1]


async def _read(
    spaces: Spaces, candidates: Sequence[Candidate], *, by_number: bool
) -> list[Sequence[bytes]]:
    """Return key, head, value and metadata of each candidate, empty for what is gone."""
    found: dict[int, Sequence[bytes]] = {}
    while len(found) < len(candidates):
        places: dict[Space, list[int]] = {}
        for place, candidate in enumerate(candidates):
            if place not in found:
                places.setdefault(candidate.space, []).append(place)
        groups = spaces.groups(list(places))
        asked = [sorted(place for space in group for place in places[space]) for group in groups]
        calls: list[Call] = []
        for group, mine in zip(groups, asked, strict=True):
            number = {space: count for count, space in enumerate(group, 1)}
            names = [(number[candidates[p].space], candidates[p].name) for p in mine]
            flat = [part for name in names for part in name]
            args = [spaces.now(), int(by_number), *flat]
            calls.append(script("fetch").call([space.base for space in group], args))
        # An answer may be short, if its items are large.
        for mine, answer in zip(asked, await spaces.run_each(calls), strict=True):
            found |= dict(zip(mine, rows(answer, _WIDTH), strict=False))
    return [found[place] for place in range(len(candidates))]
