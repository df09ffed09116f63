"""Text search by BM25 over the library's own inverted index, which works on any Redis.

The scripts update it together with the items. For each stem it has records of a document's number,
the frequency of the stem in the document, and the document's number of words; they are ranked here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from locus_memory.backends.redis.items.items import rows
from locus_memory.backends.redis.items.spaces import Space, Spaces
from locus_memory.backends.redis.search.hits import Candidate, Documents, collect
from locus_memory.backends.selection import Page
from locus_memory.store.filters import Condition
from locus_memory.store.item import StoreItem
from locus_memory.store.text import stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Postings", "rank", "search_text"]

# The usual constants of BM25: S. Robertson and H. Zaragoza, "The Probabilistic Relevance
# Framework: BM25 and Beyond", Foundations and Trends in Information Retrieval 3(4), 2009.
_K1, _B = 1.2, 0.75

_TOGETHER: Final = 100
"""How many namespaces a script searches: each may have many postings."""

_ATTEMPTS: Final = 11
"""How often a search starts over because texts changed between its two queries."""

_RECORD: Final = [("number", "<u4"), ("count", "<u2"), ("length", "<u4")]


class Postings(NamedTuple):
    """The data of one namespace's index for the stems of a query.

    Attributes:
        documents: The number of documents.
        words: The number of words of all of them.
        last: The number of the document that was indexed last.
        recent: Numbers and keys of the documents indexed since an earlier query, in turn.
        dead: The numbers of deleted documents.
        records: For each stem its records, packed.
    """

    documents: int
    words: int
    last: int
    recent: Sequence[bytes]
    dead: Sequence[int]
    records: Sequence[bytes]


def rank(indexes: Sequence[Postings]) -> Iterator[tuple[int, int, float]]:
    """Return index, number and score of each document with any of the stems, the best first.

    The weight of a stem depends on how rare it is in all the indexes together. Among equals in one
    index, the document indexed last comes first.
    """
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    scored = list(_scored(indexes))
    if not scored:
        return iter(())
    names, places = np.unique(np.concatenate([each for each, _ in scored]), return_inverse=True)
    scores = np.bincount(places, np.concatenate([each for _, each in scored]))
    order = np.lexsort((-names, -scores))
    names, scores = names[order], scores[order]
    owners, numbers = names >> 32, names & 0xFFFFFFFF
    return zip(owners.tolist(), numbers.tolist(), scores.tolist(), strict=True)


def _scored(
    indexes: Sequence[Postings],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Yield, for each stem in each index, the documents' names and its part of their scores.

    A name is the position of the index, then the number of the document, 32 bits each.
    """
    import numpy as np  # noqa: PLC0415 - the import of the package must not load numpy

    documents = sum(index.documents for index in indexes)
    mean_length = max(sum(index.words for index in indexes) / max(documents, 1), 1.0)
    owners = np.arange(len(indexes), dtype=np.int64) << 32
    dead = [
        owner + number for owner, each in zip(owners, indexes, strict=True) for number in each.dead
    ]
    record = np.dtype(_RECORD)
    # A thread is a namespace, so there may be many: all of them are scored at once.
    for packed in zip(*(index.records for index in indexes), strict=True):
        postings = np.frombuffer(b"".join(packed), record)
        sizes = [len(records) // record.itemsize for records in packed]
        names = postings["number"].astype(np.int64) + np.repeat(owners, sizes)
        if dead:
            alive = ~np.isin(names, dead)
            postings, names = postings[alive], names[alive]
        weight = math.log1p((documents - len(names) + 0.5) / (len(names) + 0.5))
        count = postings["count"].astype(np.float64)
        norm = 1 - _B + _B * postings["length"] / mean_length
        yield names, weight * count * (_K1 + 1) / (count + _K1 * norm)


async def search_text(
    spaces: Spaces,
    targets: Sequence[Space],
    words: Sequence[str],
    condition: Condition,
    page: Page,
) -> list[StoreItem]:
    """Return the items with any of the words that satisfy the condition, the best first.

    A changed text gets a new number. If that happens between the query for numbers and the query
    for their items, both run again, and documents whose keys are known by then are read by their
    keys, which do not change.
    """
    stems = list({stem(word): None for word in words})
    keys, start = dict[tuple[Space, bytes], bytes](), dict[Space, int]()
    hits: list[tuple[Candidate, StoreItem]] = []
    for _ in range(_ATTEMPTS):
        indexes = await _postings(spaces, targets, stems, start)
        for space, index in zip(targets, indexes, strict=True):
            keys |= {(space, number): key for number, key in rows(index.recent, 2)}
            start.setdefault(space, index.last)
        documents = Documents(stems, dict(keys))
        candidates = _candidates(targets, indexes, keys)
        hits = await collect(spaces, candidates, condition, page, documents)
        if all(documents.keys.values()):
            break
        keys = {name: key for name, key in documents.keys.items() if key}
    return [item for _, item in hits]


def _candidates(
    targets: Sequence[Space],
    indexes: Sequence[Postings],
    keys: Mapping[tuple[Space, bytes], bytes],
) -> Iterator[Candidate]:
    """Yield the documents in order, by their keys if these are known."""
    for place, number, score in rank(indexes):
        space, name = targets[place], str(number).encode()
        key = keys.get((space, name))
        yield Candidate(space, key or name, score, is_number=key is None)


async def _postings(
    spaces: Spaces,
    targets: Sequence[Space],
    stems: Sequence[str],
    start: Mapping[Space, int],
) -> list[Postings]:
    """Return the postings of each namespace, after its expired items are deleted from them.

    Args:
        spaces: The namespaces of the store.
        targets: The namespaces to search.
        stems: The stems of the query.
        start: For each namespace the number after which documents are recent; none, if it is empty.
    """

    def args(group: Sequence[Space]) -> list[Any]:
        return [len(stems), *stems, *(start[space] for space in group if start)]

    found = await spaces.searched("postings", targets, _TOGETHER, 6 + len(stems), args)
    return [
        Postings(row[1], row[2], row[3], row[4], [int(each) for each in row[5]], row[6:])
        for row in found
    ]
