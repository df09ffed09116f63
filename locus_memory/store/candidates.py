"""Candidates for a ranking: the hits of both searches of a store, in one call.

A ranking reads many more items than its caller gets. A store that holds items in this process need
not copy each of them for every search: it returns its own objects, and the ranking copies the few
that it returns. Such a store is a `CandidateStore`; for any other, `search` and
`search_by_embedding` are called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from locus_memory.store.item import Namespace, StoreItem

__all__ = ["Candidate", "CandidateStore", "Candidates", "as_candidate_store"]


class Candidate(NamedTuple):
    """An item that a search found.

    Attributes:
        item: The item; its own `score` has no meaning.
        score: The score of the search, higher is better.
    """

    item: StoreItem
    score: float


class Candidates(NamedTuple):
    """The hits of two searches, each with the best first.

    Attributes:
        by_text: The hits of the text search.
        by_vector: The hits of the vector search.
        kept: Whether the items are the store's own objects, which must not be changed or returned
            to a caller.
    """

    by_text: Sequence[Candidate]
    by_vector: Sequence[Candidate]
    kept: bool = False


class CandidateStore(ABC):
    """A store that runs text search and vector search in one call, without copies."""

    @abstractmethod
    async def candidates(
        self,
        namespace: Namespace,
        limit: int,
        *,
        words: str | None = None,
        embedding: Sequence[float] | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        recursive: bool = False,
    ) -> Candidates:
        """Return the results of `search` and `search_by_embedding` at one moment.

        Args:
            namespace: The namespace to search.
            limit: At most this many of each search.
            words: The query of the text search; `None`: no text search.
            embedding: The vector of the vector search, of shape `(dimension,)`; `None`: no vector
                search.
            filter: See `locus_memory.store.filters`.
            recursive: Search the descendants of `namespace` as well.

        Raises:
            InvalidArgumentError: An invalid namespace, limit or filter.
            InvalidEmbeddingError: All vectors there have another dimension.
            BackendError: The store failed.
        """


def as_candidate_store(store: object) -> CandidateStore | None:
    """Return the store if it is a `CandidateStore`, else `None`.

    A subclass that overrides the searches but not `candidates` does not count: items that its
    searches leave out must stay out.
    """
    for each in type(store).__mro__:
        if "candidates" in vars(each):
            break
        if not vars(each).keys().isdisjoint(("search", "search_by_embedding")):
            return None
    return store if isinstance(store, CandidateStore) else None
