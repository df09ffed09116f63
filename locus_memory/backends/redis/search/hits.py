"""Pages of the hits of a search, in order, without deleted items and those that do not match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from locus_memory.backends.redis.items.items import decode_item, decode_values, rows
from locus_memory.backends.redis.items.spaces import PAGE, Space, Spaces
from locus_memory.backends.redis.lua import Call, script
from locus_memory.backends.selection import Page, is_everything
from locus_memory.store.filters import Condition, matches
from locus_memory.store.item import StoreItem

__all__ = ["Candidate", "Documents", "collect", "wants"]

_WIDTH: Final = 4
_LEAST: Final = 16


def wants(condition: Condition, row: Sequence[bytes]) -> bool:
    """Return whether the item of a row satisfies a condition."""
    return is_everything(condition) or matches(condition, *decode_values(row))


class Candidate(NamedTuple):
    """A hit in an index: its name there, and its score.

    Attributes:
        space: The namespace.
        name: Its key, or the number of a document.
        score: Its score.
        is_number: Whether the name is a number.
    """

    space: Space
    name: bytes
    score: float
    is_number: bool = False


class Documents(NamedTuple):
    """The data of a text search that documents are checked with.

    Attributes:
        stems: The stems of the query: an item found by its key must still have one of them.
        keys: For each number of a document its key, empty if it was deleted before the lookup.
    """

    stems: Sequence[str]
    keys: dict[tuple[Space, bytes], bytes]


async def collect(
    spaces: Spaces,
    candidates: Iterable[Candidate],
    condition: Condition,
    page: Page,
    documents: Documents | None = None,
) -> list[tuple[Candidate, StoreItem]]:
    """Return the wanted page of the candidates with their items, in order.

    Args:
        spaces: The namespaces of the store.
        candidates: The candidates, in order.
        condition: The filter that the items satisfy.
        page: The wanted part of those.
        documents: For candidates with numbers of documents; their keys are added to it.
    """
    documents = documents or Documents((), {})
    seen: set[tuple[Space, bytes]] = set()
    found: list[tuple[Candidate, StoreItem]] = []
    rest, size = iter(candidates), min(max(page.end, _LEAST), PAGE)
    while len(found) < page.end and (some := list(islice(rest, size))):
        for candidate, row in await _fetch(spaces, some, documents):
            # A number and a key may name the same item, if it was written in between.
            name = candidate.space, row[0]
            if name not in seen and wants(condition, row):
                item = decode_item(candidate.space.namespace, row, candidate.score)
                found.append((candidate, item))
            seen.add(name)
        size = PAGE
    return found[page.offset : page.end]


async def _fetch(
    spaces: Spaces, candidates: Sequence[Candidate], documents: Documents
) -> list[tuple[Candidate, Sequence[bytes]]]:
    """Return the candidates that exist, with the rows of their items."""
    found = await _read(spaces, candidates, documents)
    pairs = list(zip(candidates, found, strict=True))
    for candidate, row in pairs:
        if candidate.is_number:
            documents.keys[candidate.space, candidate.name] = row[0]
    gone = ((candidate.space, row[0]) for candidate, row in pairs if row[0] and not row[1])
    await spaces.purge(gone)
    return [(candidate, row) for candidate, row in pairs if row[1]]


async def _read(
    spaces: Spaces, candidates: Sequence[Candidate], documents: Documents
) -> list[Sequence[bytes]]:
    """Return key, head, value and metadata of each candidate, empty for deleted items."""
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
                args += number[space], int(is_number), name
            calls.append(script("fetch").call([space.base for space in group], args))
        # A reply may be incomplete if its items are large.
        for mine, answer in zip(asked, await spaces.run_each(calls, places), strict=True):
            found |= dict(zip(mine, rows(answer, _WIDTH), strict=False))
    return [found[place] for place in range(len(candidates))]
