"""The fusion of two indexes: the results of both in one ranking."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol

from typing_extensions import override

from locus_memory._internal.options import check_fields, check_ranges
from locus_memory._internal.resource import Resource
from locus_memory.documents.values import RetrievalResult
from locus_memory.errors import ConfigurationError
from locus_memory.retrieval.ranking.fusion import reciprocal_rank_fusion, weighted_fusion
from locus_memory.store.item import check_limit

__all__ = ["FusedIndex", "HybridOptions", "Retriever", "fuse", "fused"]


class Retriever(Protocol):
    """The verb of an index that finds."""

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int = 5,
        min_score: float | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
    ) -> list[RetrievalResult]:
        """Return the best chunks, the best first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridOptions:
    """How the results of text search and of vector search become one ranking.

    Attributes:
        fusion: `weighted`: the scores are added; `rrf`: only ranks count.
        k: A higher value gives the first ranks less weight, for `rrf`.
        sparse_weight: The weight of text search.
        dense_weight: The weight of vector search.
        depth: Each side is asked for this many times the results that are wanted.

    Raises:
        ConfigurationError: A negative or infinite number, no depth, or an unknown fusion.
    """

    fusion: Literal["weighted", "rrf"] = "weighted"
    k: float = 60
    sparse_weight: float = 1.0
    dense_weight: float = 1.0
    depth: int = 3

    def __post_init__(self) -> None:
        check_fields(self)
        least = {"k": 0, "sparse_weight": 0, "dense_weight": 0, "depth": 1}
        check_ranges("HybridOptions", self, least, one_of={"fusion": ("weighted", "rrf")})
        if math.inf in (self.k, self.sparse_weight, self.dense_weight):
            raise ConfigurationError("HybridOptions: k and the weights are finite")

    @classmethod
    def classic(cls) -> HybridOptions:
        """Return reciprocal rank fusion: each side adds `weight / (60 + rank)`, ranks from 1.

        Each side is asked for three times the results. See
        `locus_memory.retrieval.ranking.fusion.reciprocal_rank_fusion` for its source.
        """
        return cls(fusion="rrf")


_DEFAULT: Final = HybridOptions()


def fused(
    sparse: Sequence[RetrievalResult],
    dense: Sequence[RetrievalResult],
    top_k: int,
    options: HybridOptions,
) -> list[RetrievalResult]:
    """Return the best results of two lists, each chunk once, with the better of its scores."""
    both = (sparse, dense)
    weights = (options.sparse_weight, options.dense_weight)
    best: dict[tuple[str, int, str], RetrievalResult] = {}
    for result in (each for side in both for each in side):
        known = best.setdefault(_name(result), result)
        if result.score > known.score:
            best[_name(result)] = replace(known, score=result.score)
    if options.fusion == "rrf":
        ranking = reciprocal_rank_fusion(
            [[_name(each) for each in side] for side in both], k=options.k, weights=weights
        )
    else:
        ranking = weighted_fusion(
            [{_name(each): each.score for each in side} for side in both], weights=weights
        )
    return [best[name] for name, _ in ranking[:top_k]]


def _name(result: RetrievalResult) -> tuple[str, int, str]:
    """Return the name of a chunk in both indexes: without a source, that is its content."""
    return (result.source or "", result.index if result.source else 0, result.content)


class FusedIndex(Resource):
    """Two indexes that are searched as one.

    A chunk that both find is found once: chunks with the same source, place and content are the
    same, and without a source, those with the same content. What is stored here is in both, under
    one id; files are added to each. Closing it closes both.

    Args:
        sparse: The index for words.
        dense: The index for meanings.
        options: The fusion.
    """

    def __init__(
        self, sparse: Retriever, dense: Retriever, options: HybridOptions = _DEFAULT
    ) -> None:
        self._sparse, self._dense, self._options = sparse, dense, options

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int = 5,
        min_score: float | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
    ) -> list[RetrievalResult]:
        """Return the best chunks of both; see `DocumentIndex.retrieve`.

        Raises:
            InvalidArgumentError: As for `DocumentIndex.retrieve`.
            BackendError: A store failed.
        """
        wanted = check_limit(top_k, "top_k") * self._options.depth
        sides = await asyncio.gather(
            self._sparse.retrieve(query, top_k=wanted, min_score=min_score, filter=filter),
            self._dense.retrieve(query, top_k=wanted, min_score=min_score, filter=filter),
        )
        return fused(*sides, top_k, self._options)

    async def store(
        self, content: str, *, source: str = "", metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Store one piece in both, as it is; return its id, which is that of both.

        Raises:
            ConfigurationError: One of them is no `DocumentIndex`.
            InvalidArgumentError: As for `DocumentIndex.store`.
            BackendError: A store failed; neither index has the piece, unless a store fails at the
                deletion as well.
        """
        first, second = self._written
        doc_id: str = await first.store(content, source=source, metadata=metadata)
        try:
            await second.store(content, source=source, metadata=metadata, doc_id=doc_id)
        except BaseException:
            # The second one may have it, though it failed.
            for each in (first, second):
                with suppress(Exception):
                    await each.delete(doc_id)
            raise
        return doc_id

    async def delete(self, doc_id: str) -> bool:
        """Delete a document from both; returns whether it was in one of them.

        Raises:
            ConfigurationError: One of them is no `DocumentIndex`.
            InvalidArgumentError: The id is no text.
            BackendError: A store failed.
        """
        return any([await each.delete(doc_id) for each in self._written])

    async def clear(self) -> int:
        """Delete all documents of both; returns how many chunks they had.

        Raises:
            ConfigurationError: One of them is no `DocumentIndex`.
            BackendError: A store failed.
        """
        return sum([await each.clear() for each in self._written])

    @property
    def _written(self) -> tuple[Any, Any]:
        both = (self._sparse, self._dense)
        # Its class imports this module.
        if not all(hasattr(each, "delete_source") for each in both):
            raise ConfigurationError("what is no DocumentIndex is written by its own verbs")
        return both

    @override
    async def open(self) -> None:
        """Open both."""
        for each in (self._sparse, self._dense):
            if isinstance(each, Resource):
                await each.open()

    @override
    async def close(self) -> None:
        """Close both; calling it again is harmless."""
        for each in (self._sparse, self._dense):
            if isinstance(each, Resource):
                await each.close()


def fuse(sparse: Retriever, dense: Retriever, *, options: HybridOptions = _DEFAULT) -> FusedIndex:
    """Return an index that searches two others, such as one for words and one for meanings.

    The score of a result stays absolute: the better of those of both sides. The fusion decides only
    the order.

    Args:
        sparse: Anything with `retrieve`, such as a `DocumentIndex` of the kind `text`.
        dense: Another one, such as one of the kind `dense`.
        options: `HybridOptions.classic()` for reciprocal rank fusion.

    Raises:
        ConfigurationError: One of them cannot retrieve.
    """
    for each in (sparse, dense):
        if not callable(getattr(each, "retrieve", None)):
            raise ConfigurationError(f"an index has retrieve, and {type(each).__name__} lacks it")
    return FusedIndex(sparse, dense, options)
