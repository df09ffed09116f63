"""Pages of what a search found, in its order, without what is gone or does not match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from locus_memory.backends.redis.connection.connection import Call
from locus_memory.backends.redis.items.items import decode_item, decode_values, rows
from locus_memory.backends.redis.items.scripts import script
from locus_memory.backends.redis.items.spaces import PAGE, Space, Spaces
from locus_memory.store.filters import All, Condition, matches
from locus_memory.store.item import StoreItem

__all__ = ["Candidate", "Documents", "Page", "collect", "is_open"]

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
    """What an index has, its name there, and how good it is.

    Attributes:
        space: Where it is.
        name: Its key, or the number of a document.
        score: How good it is.
        is_number: Whether the name is a number.
    """

    space: Space
    name: bytes
    score: float
    is_number: bool = False


class Documents(NamedTuple):
    """What a search for words knows of documents.

    Attributes:
        stems: A candidate with a key has to have one of them, for its text may have changed.
        keys: For each number of a document its key, empty if it was gone when it was looked up.
        are_named: Whether the stems are by their names in RediSearch.
    """

    stems: Sequence[str]
    keys: dict[tuple[Space, bytes], bytes]
    are_named: bool = False


async def collect(
    spaces: Spaces, candidates: Iterable[Candidate], page: Page, documents: Documents | None = None
) -> list[tuple[Candidate, StoreItem]]:
    """Return the wanted page of the candidates with their items, in their order.

    Args:
        spaces: Where they are.
        candidates: What was found, in order.
        page: Which part of it is wanted.
        documents: Where their names are numbers of documents: takes the keys of these.
    """
    documents = documents or Documents((), {})
    seen: set[tuple[Space, bytes]] = set()
    found: list[tuple[Candidate, StoreItem]] = []
    rest, size = iter(candidates), min(max(page.end, _LEAST), PAGE)
    while len(found) < page.end and (some := list(islice(rest, size))):
        for candidate, row in await _fetch(spaces, some, documents):
            # A number and a key may be the same item, if it was written in between.
            name = candidate.space, row[0]
            if name not in seen and page.wants(row):
                item = decode_item(candidate.space.namespace, row, candidate.score)
                found.append((candidate, item))
            seen.add(name)
        size = PAGE
    return found[page.offset : page.end]


async def _fetch(
    spaces: Spaces, candidates: Sequence[Candidate], documents: Documents
) -> list[tuple[Candidate, Sequence[bytes]]]:
    """Return the candidates that are there, with the rows of their items."""
    found = await _read(spaces, candidates, documents)
    pairs = list(zip(candidates, found, strict=True))
    for candidate, row in pairs:
        if candidate.is_number:
            documents.keys[candidate.space, candidate.name] = row[0]
    await spaces.purge((candidate.space, row[0]) for candidate, row in pairs if _is_gone(row))
    return [(candidate, row) for candidate, row in pairs if row[1]]


def _is_gone(row: Sequence[bytes]) -> bool:
    return bool(row[0]) and not row[1]


async def _read(
    spaces: Spaces, candidates: Sequence[Candidate], documents: Documents
) -> list[Sequence[bytes]]:
    """Return key, head, value and metadata of each candidate, empty for what is gone."""
    found: dict[int, Sequence[bytes]] = {}
    stems = documents.stems
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
            args: list[str | bytes | int] = [spaces.now(), len(stems), *stems]
            for space, name, _, is_number in (candidates[place] for place in mine):
                args += number[space], 1 if is_number else 2 * documents.are_named, name
            calls.append(script("fetch").call([space.base for space in group], args))
        # An answer may be short, if its items are large.
        for mine, answer in zip(asked, await spaces.run_each(calls, places), strict=True):
            found |= dict(zip(mine, rows(answer, _WIDTH), strict=False))
    return [found[place] for place in range(len(candidates))]
