"""Documents: the list, the search, and the addition and deletion of texts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, Json

from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Answer, Asked, Limit, PageAnswer, PageAsked
from locus_memory.web.questions.data import Data

__all__ = [
    "AddDocument",
    "Added",
    "Chunk",
    "DocumentAsked",
    "DocumentSearchAsked",
    "DocumentsPage",
    "Removed",
    "SearchedChunks",
    "add_document",
    "delete_document",
    "list_documents",
    "search_documents",
]


class Document(Answer):
    """A document of the index."""

    source: str
    """Its name; empty for a piece that was stored without one."""
    document: str
    """Its id."""
    chunks: int
    kind: str
    digest: str
    updated_at: datetime


class DocumentsPage(PageAnswer):
    """A page of documents, in the order of their names."""

    documents: list[Document]


class DocumentSearchAsked(Asked):
    """A search in the documents."""

    query: str
    filter: Json[dict[str, Any]] | None = None
    """A filter on the metadata, as JSON."""
    min_score: float | None = Field(default=None, ge=0, le=1)
    limit: Limit = 5


class Chunk(Answer):
    """A chunk that was found."""

    content: str
    score: float
    """From 0 to 1; comparable between queries and backends."""
    source: str
    document: str
    index: int
    """Its place in the document, from 0."""
    metadata: Mapping[str, Any]
    why: str | None
    """The parts of its rank, in words."""


class SearchedChunks(Answer):
    """The chunks that were found, the best first."""

    chunks: list[Chunk]


class AddDocument(Asked):
    """A text to index; it replaces the text of the same source."""

    content: str = Field(min_length=1)
    source: str = ""
    """Its name, on one line; without one, it is a document of its own."""
    metadata: dict[str, Any] | None = None
    kind: Literal["text", "markdown", "code"] = "text"


class Added(Answer):
    """The result of an addition."""

    added: int
    updated: int
    unchanged: int
    chunks: int


class DocumentAsked(Asked):
    """A document: by its source, or by its id."""

    source: str | None = Field(default=None, min_length=1)
    document: str | None = Field(default=None, min_length=1)


class Removed(Answer):
    """The result of a removal."""

    removed: bool


async def list_documents(data: Data, asked: PageAsked) -> DocumentsPage:
    """List the indexed documents."""
    found = await data.documents.sources(asked.limit + 1, asked.cursor)
    page = found[: asked.limit]
    rows = list(map(Document.model_validate, page))
    return DocumentsPage(documents=rows, next=page[-1].cursor if len(found) > asked.limit else None)


async def search_documents(data: Data, asked: DocumentSearchAsked) -> SearchedChunks:
    """Find the chunks that answer a question best."""
    found = await data.documents.retrieve(
        asked.query,
        top_k=asked.limit,
        min_score=asked.min_score,
        filter=asked.filter,
        explain=True,
    )
    return SearchedChunks(
        chunks=[
            Chunk(
                content=each.content,
                score=each.score,
                source=each.source,
                document=each.doc_id,
                index=each.index,
                metadata=each.metadata,
                why=None if each.explanation is None else each.explanation.describe(),
            )
            for each in found
        ]
    )


async def add_document(data: Data, asked: AddDocument) -> Added:
    """Cut a text into chunks, and index them in place of those of the same source."""
    done = await data.documents.add(
        asked.content, source=asked.source, metadata=asked.metadata, kind=asked.kind
    )
    return Added.model_validate(done)


async def delete_document(data: Data, asked: DocumentAsked) -> Removed:
    """Remove a document from the index."""
    if asked.source is not None and asked.document is None:
        return Removed(removed=bool(await data.documents.delete_source(asked.source)))
    if asked.document is not None and asked.source is None:
        return Removed(removed=await data.documents.delete(asked.document))
    raise RefusalError(400, "give source or document, not both")
