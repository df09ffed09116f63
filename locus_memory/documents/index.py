"""The index of documents over a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Resource
from locus_memory.documents.chunking.config import ChunkConfig, DocumentKind
from locus_memory.documents.fusion import HybridOptions, fused
from locus_memory.documents.ingest.adding import MOST_BYTES, PathAdding, counted
from locus_memory.documents.ingest.reader import DocumentReader
from locus_memory.documents.layout import (
    Document,
    chunks_of,
    info_of,
    piece,
    result_of,
    sources_of,
)
from locus_memory.documents.values import Ingested, RetrievalResult, SourceInfo
from locus_memory.documents.versions import search_shown
from locus_memory.documents.writing import Writer
from locus_memory.errors import ConfigurationError, InvalidArgumentError
from locus_memory.retrieval.candidates import Mode
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.registry import as_embedder
from locus_memory.retrieval.hybrid import HybridSearch
from locus_memory.retrieval.options import SearchOptions
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.retrieval.reembed import ReembedReport, reembed
from locus_memory.retrieval.rerankers.registry import get_reranker
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Namespace, check_limit, check_namespace, check_text, need_text

if TYPE_CHECKING:
    from pathlib import Path

    from locus_memory.backends.base import Backend
    from locus_memory.documents.ingest.reader import DocumentLimits
    from locus_memory.retrieval.rerankers.base import Reranker

__all__ = ["DocumentIndex", "Kind"]

Kind = Literal["text", "dense", "bm25", "late", "hybrid"]
"""How an index finds; see `DocumentIndex`."""

_MODES: Final[dict[str, Mode | None]] = {
    "text": "text",
    "bm25": "text",
    "dense": "vector",
    "late": None,
    "hybrid": None,
}
_CHUNKING: Final = ChunkConfig()
_HYBRID: Final = HybridOptions()
_OPTIONS: Final = SearchOptions()
_LATE: Final = SearchOptions(rerank_depth=100)

# A caller's metadata has no meaning for the ranking, and chunks are no turns of a conversation.
_FIELDS: Final = Fields(
    text=("content",),
    title=("heading",),
    speaker=(),
    role=(),
    date=(),
    session=(),
    position=(),
    supersedes=(),
    superseded_by=(),
)


class DocumentIndex(Resource):
    """Documents in a store, cut into chunks, and found by words, by meaning or by both.

    The kinds: `text` searches words; `dense` compares vectors; `hybrid` does both, and without an
    embedder only words; `late` reranks the candidates of `hybrid` by late interaction, which is the
    slowest; `bm25` is `text` by another name, for a store in memory. Scores are from 0 to 1 and
    mean the same with every kind and every store.

    A source is a name, such as a path: adding it again replaces it. Searches find its old chunks
    until all new ones are written, and from then on the new ones. The same call repairs what an
    interrupted one left.

    Args:
        store: A store, a backend that has one, or a provider string, whose store this index closes.
        namespace: Where the index is in the store.
        kind: How it finds.
        embedder: Computes the vectors, see `as_embedder`; a string names one.
        reranker: Reorders the best hits; its calibrated scores become those of the results.
        chunking: The sizes of the chunks.
        hybrid: How the kind `hybrid` merges its two searches.

    Attributes:
        namespace: Where the index is in the store.
        kind: How it finds.
        chunking: The sizes of the chunks.
        embedder: The embedder, if it has one.

    Raises:
        ConfigurationError: An unknown kind, `dense` without an embedder, or an invalid provider
            string.
        InvalidArgumentError: An invalid namespace.
        MissingDriverError: `late` without a reranker, and the model's runtime is not installed.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        *,
        namespace: Namespace = ("documents",),
        kind: Kind = "hybrid",
        embedder: Embedder | str | Any | None = None,
        reranker: Reranker | None = None,
        chunking: ChunkConfig = _CHUNKING,
        hybrid: HybridOptions = _HYBRID,
    ) -> None:
        if kind not in get_args(Kind):
            raise ConfigurationError(
                f"the kind of an index is one of {', '.join(get_args(Kind))}, not {quote(kind)}"
            )
        if kind == "dense" and embedder is None:
            raise ConfigurationError("an index of the kind 'dense' needs an embedder")
        self.namespace = check_namespace(namespace)
        self.kind: Kind = kind
        self.chunking = chunking
        self._hybrid = hybrid
        self.embedder = None if embedder is None else as_embedder(embedder)
        # An index of words needs no vectors, and its documents no embedding.
        made = None if kind in ("text", "bm25") else self.embedder
        if kind == "late" and reranker is None:
            reranker = get_reranker("late-interaction")
        options = _LATE if kind == "late" else _OPTIONS
        self._search = HybridSearch(store, made, reranker=reranker, options=options, fields=_FIELDS)
        self._writer = Writer(self._search.store, self.namespace, made)

    def __repr__(self) -> str:
        return f"DocumentIndex({self._search.store!r}, kind={self.kind!r})"

    @override
    async def open(self) -> None:
        """Open the store, if this index owns it."""
        await self._search.open()

    @override
    async def close(self) -> None:
        """Close the store, if this index owns it; calling it again is harmless."""
        await self._search.close()

    async def store(
        self,
        content: str,
        *,
        source: str = "",
        metadata: Mapping[str, Any] | None = None,
        doc_id: str | None = None,
    ) -> str:
        """Store one piece as it is, not cut; return its id.

        Each call stores another piece, also one with the same content or source.

        Args:
            content: The text, with something besides spaces in it.
            source: Its name, on one line.
            metadata: JSON to store with it; `RetrievalResult` lists the names that are taken.
            doc_id: The id under which another index stored it; `None`: a new one.

        Raises:
            InvalidArgumentError: An invalid text, source, metadata or id.
            BackendError: The store failed.
        """
        document = piece(content, source, metadata, doc_id)
        await self._writer.store(document)
        return document.id

    async def add(
        self,
        content: str,
        *,
        source: str = "",
        metadata: Mapping[str, Any] | None = None,
        kind: DocumentKind = "text",
    ) -> Ingested:
        """Cut a text, and store its chunks in place of those of the same source.

        The same text, source, metadata and sizes change nothing. A text without a source is a
        document of its own, and replaces nothing.

        Args:
            content: The text.
            source: Its name, on one line.
            metadata: JSON to store with each chunk.
            kind: The shape of the text: `text`, `markdown` or `code`.

        Raises:
            InvalidArgumentError: An invalid text, source, metadata or kind.
            BackendError: The store failed.
        """
        started = time.perf_counter()
        document = Document.of(content, source, self.chunking, kind=kind, metadata=metadata)
        change = await self._writer.change(document, self.chunking)
        change = await self._writer.apply(*await self._writer.embedded([change]))
        return counted(change.outcome, change.chunks, time.perf_counter() - started)

    async def add_path(
        self,
        path: str | Path,
        *,
        prefix: str = "",
        metadata: Mapping[str, Any] | None = None,
        prune: bool = False,
        max_bytes: int = MOST_BYTES,
        limits: DocumentLimits | None = None,
    ) -> Ingested:
        """Index a file, or all files below a folder; see `ingest_path` for which.

        A source is the path relative to the folder, with `/`. Files whose bytes are the same as
        before are left alone, but chunks without a vector get one. A file that cannot be read is
        skipped, with its reason, and the chunks of an earlier version of it stay. Each file emits
        `documents.ingested`.

        Args:
            path: The file or the folder.
            prefix: Stands in front of each source, to tell the files of two folders apart.
            metadata: JSON to store with each chunk.
            prune: Delete the sources whose files are gone from this folder.
            max_bytes: Larger files are skipped.
            limits: What a file may take; `None` for the defaults. PDF, HTML and Office documents
                are read in a process of their own, which ends with the call.

        Raises:
            InvalidArgumentError: Nothing is there, or an invalid prefix, metadata or size.
            BackendError: The store failed; the same call continues.
        """
        # The process that reads ends with the call.
        with closing(DocumentReader(limits)) as reader:
            adding = PathAdding(
                self._writer,
                self.chunking,
                prefix=prefix,
                metadata=metadata,
                max_bytes=max_bytes,
                reader=reader,
            )
            done = await adding.run(path, prune=prune)
        if done.unchanged:
            await self._writer.catch_up()
        return done

    async def retrieve(
        self,
        query: str,
        *,
        top_k: int = 5,
        min_score: float | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        explain: bool = False,
    ) -> list[RetrievalResult]:
        """Return the best chunks, the best first; none for a query without words.

        Args:
            query: A question, or any words.
            top_k: At most this many.
            min_score: Leave out chunks with a lower score; from 0 to 1.
            filter: See `locus_memory.store.filters`; only matching chunks are found. The caller's
                own metadata can be filtered, such as `{"team": {"$in": ["support"]}}`.
            explain: Whether each result explains its rank.

        Raises:
            InvalidArgumentError: An invalid query, number, filter or `min_score`.
            ConfigurationError: The vectors in the store are of another model.
            StoreCapabilityError: The store has no such search.
            BackendError: The store failed.
        """
        check_limit(top_k, "top_k")
        need_text(query, "a query")
        if not query.strip() or not top_k:
            return []

        async def found(mode: Mode | None, limit: int) -> list[RetrievalResult]:
            search = partial(
                self._search.search,
                chunks_of(self.namespace),
                query,
                limit,
                mode=mode,
                min_score=min_score,
                explain=explain,
            )
            hits = await search_shown(self._search.store, self.namespace, search, filter)
            return [result_of(hit, hits.contrast) for hit in hits]

        if self.kind == "hybrid" and self._hybrid != _HYBRID and self.embedder is not None:
            wanted = top_k * self._hybrid.depth
            sides = await asyncio.gather(found("text", wanted), found("vector", wanted))
            return fused(*sides, top_k, self._hybrid)
        return await found(_MODES[self.kind], top_k)

    async def delete(self, doc_id: str) -> bool:
        """Delete a document with all its chunks; returns whether it was there.

        Args:
            doc_id: The id that `store` returned, or `RetrievalResult.doc_id`.

        Raises:
            InvalidArgumentError: It is not a string.
            BackendError: The store failed.
        """
        if not check_text(doc_id, "a document's id"):
            raise InvalidArgumentError("a document's id is a string that is not empty")
        return await self._writer.delete(doc_id)

    async def delete_source(self, source: str) -> int:
        """Delete all documents with this name; returns how many chunks they had.

        Raises:
            InvalidArgumentError: It is not a string.
            VersionConflictError: Other writers of the source were first 500 times.
            BackendError: The store failed.
        """
        need_text(source, "a source")
        return await self._writer.delete_source(source)

    async def clear(self) -> int:
        """Delete all documents of this index; returns how many chunks they had.

        Raises:
            BackendError: The store failed.
        """
        store = self._search.store
        # The records go first: none may say that chunks are there which are gone.
        await store.clear_namespace(sources_of(self.namespace))
        return await store.clear_namespace(chunks_of(self.namespace))

    async def sources(self, limit: int = 100, after: str | None = None) -> list[SourceInfo]:
        """Return what the index holds, in the order of the names.

        Args:
            limit: At most this many.
            after: The `SourceInfo.cursor` of the last one of the page before.

        Raises:
            InvalidArgumentError: An invalid limit or cursor.
            BackendError: The store failed.
        """
        found = await self._search.store.scan(sources_of(self.namespace), limit, after=after)
        return list(map(info_of, found))

    async def embedding_model(self) -> str | None:
        """Return the name of the model whose vectors the chunks have; `None`: they have none.

        Raises:
            BackendError: The store failed.
        """
        return await self._writer.model()

    async def reembed(self) -> ReembedReport:
        """Compute the vectors of chunks that have none of this embedder, such as after it failed.

        Raises:
            ConfigurationError: The index has no embedder, or the store no vectors.
            BackendError: The store failed; the same call continues.
        """
        if self.embedder is None:
            raise ConfigurationError("an index without an embedder has no vectors to compute")
        return await reembed(
            self._search.store, chunks_of(self.namespace), self.embedder, include_unmarked=True
        )

    def as_retriever(self, **options: Any) -> Any:
        """Return a LangChain retriever over this index, for its chains and LangGraph's graphs.

        Args:
            **options: `top_k`, `min_score` and `filter`, as for `retrieve`.

        Raises:
            MissingDriverError: `langchain-core`, which comes with LangGraph, is not installed.
        """
        adapter = import_module("locus_memory.integrations.langgraph.retriever")
        return adapter.LocusRetriever.over(self, **options)
