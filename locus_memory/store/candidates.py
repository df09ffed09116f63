"""Candidates for a ranking: what both searches of a store find, at once.

A ranking looks at many more items than anybody gets to see. A store that holds items in this
process need not make a copy of each of them for every search: it hands over its own, and
whoever ranks them copies the few that are shown. Such a store is a `CandidateStore`; of any
other, `search` and `search_by_embedding` are asked.
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
        item: The item; its own `score` says nothing.
        score: How good the search finds it, higher is better.
    """

    item: StoreItem
    score: float


class Candidates(NamedTuple):
    """What two searches found, the best first in each.

    Attributes:
        by_text: The hits of the text search.
        by_vector: The hits of the vector search.
        kept: Whether the items are those that the store itself holds: not to be changed, and
            not to be handed on.
    """

    by_text: Sequence[Candidate]
    by_vector: Sequence[Candidate]
    kept: bool = False


class CandidateStore(ABC):
    """A store that searches by words and by meaning at once, and copies nothing for it."""

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
        """Return what `search` and `search_by_embedding` return, as one moment has it.

        Args:
            namespace: Where to look.
            limit: At most this many of each search.
            words: What to search for by words; `None`: do not.
            embedding: What to search for by meaning, of shape `(dimension,)`; `None`: do not.
            filter: See `locus_memory.store.filters`.
            recursive: Look in the descendants of `namespace` as well.

        Raises:
            InvalidArgumentError: A bad namespace, limit or filter.
            InvalidEmbeddingError: All vectors there have another dimension.
            BackendError: The store failed.
        """


def as_candidate_store(store: object) -> CandidateStore | None:
    """Return the store if it is a `CandidateStore`, else `None`.

    A subclass that searches in a way of its own, and says nothing of candidates, is none: what
    its searches leave out must stay out.
    """
    for each in type(store).__mro__:
        if "candidates" in vars(each):
            break
        if not vars(each).keys().isdisjoint(("search", "search_by_embedding")):
            return None
    return store if isinstance(store, CandidateStore) else None
