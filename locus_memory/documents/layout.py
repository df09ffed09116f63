"""The layout of documents in a store: their namespaces, keys, values and metadata; pure.

A document's id begins with a digest of its source, so all versions of a source are one range of
keys. The rest is a digest of all that its chunks depend on: so an interrupted write that is run
again writes the same items, and a document with the same id is the same document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final
from uuid import uuid4

from locus_memory._internal.quoting import quote
from locus_memory.documents.chunking.config import Chunk, ChunkConfig, DocumentKind
from locus_memory.documents.values import RetrievalResult, SourceInfo
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.hybrid import Hit
from locus_memory.store.item import Namespace, Put, StoreItem, need_text
from locus_memory.store.json_values import encode_metadata

__all__ = [
    "RESERVED",
    "Document",
    "check_source",
    "checked_metadata",
    "chunk_key",
    "chunk_put",
    "chunks_of",
    "digest_of",
    "document_id",
    "info_of",
    "piece",
    "record_put",
    "result_of",
    "shown_by",
    "source_range",
    "sources_of",
]

RESERVED: Final = frozenset(
    [
        "source",
        "document",
        "index",
        "offset",
        "digest",
        "kind",
        "start",
        "end",
        "line",
        "end_line",
        "heading",
        "content",
    ]
)
"""The names that a caller's metadata may not have."""

_DIGITS: Final = 6
_PIECE: Final = "p-"
_PIECE_ID: Final = re.compile(f"{_PIECE}[0-9a-f]{{32}}")


def digest_of(content: bytes | str) -> str:
    """Return BLAKE2b of 16 bytes, in hex."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return blake2b(raw, digest_size=16).hexdigest()


def chunks_of(namespace: Namespace) -> Namespace:
    """Return the namespace of the chunks."""
    return (*namespace, "chunks")


def sources_of(namespace: Namespace) -> Namespace:
    """Return the namespace of the records of the sources."""
    return (*namespace, "sources")


def source_range(source: str) -> str:
    """Return the beginning of the keys of all chunks of a named source."""
    return f"{digest_of(source)}-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document to index.

    Attributes:
        id: The id.
        source: The name; may be empty.
        text: The text.
        digest: The digest of its bytes.
        kind: The shape of its text.
        metadata: The caller's own metadata.
        record: The key of its record.
        root: The digest of the folder it is from; empty if it is from none.
    """

    id: str
    source: str
    text: str
    digest: str
    kind: DocumentKind
    metadata: Mapping[str, Any] = field(default_factory=dict)
    record: str = ""
    root: str = ""

    @classmethod
    def of(
        cls,
        text: str,
        source: str,
        config: ChunkConfig,
        *,
        kind: DocumentKind = "text",
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Return a document that is cut; with the same arguments, the same.

        Raises:
            InvalidArgumentError: The text, the source or the metadata is invalid.
        """
        own = checked_metadata(metadata)
        _check(text, source)
        digest = digest_of(text)
        name = document_id(source, digest, config, kind, own)
        return cls(
            id=name,
            source=source,
            text=text,
            digest=digest,
            kind=kind,
            metadata=own,
            record=source or f"\n{name}",
        )


def document_id(
    source: str, digest: str, config: ChunkConfig, kind: DocumentKind, metadata: Mapping[str, Any]
) -> str:
    """Return the id of a document with these bytes, cut like this."""
    facts = f"{config!r}\n{kind}\n{encode_metadata(metadata)!r}\n{digest}"
    return f"{source_range(source or digest)}{digest_of(facts)}"


def piece(
    text: str, source: str, metadata: Mapping[str, Any] | None, doc_id: str | None = None
) -> Document:
    """Return a document that is one chunk; without an id, each is another one.

    Raises:
        InvalidArgumentError: The text, the source, the metadata or the id is invalid.
    """
    own = checked_metadata(metadata)
    _check(text, source)
    if not text.strip():
        raise InvalidArgumentError("a document to store has a text, not only spaces")
    name = f"{_PIECE}{uuid4().hex}" if doc_id is None else doc_id
    if not _PIECE_ID.fullmatch(name):
        raise InvalidArgumentError(f"no index has the id {quote(doc_id)}: leave doc_id out")
    return Document(
        id=name,
        source=source,
        text=text,
        digest=digest_of(text),
        kind="text",
        metadata=own,
        record=f"{source}\n{name}",
    )


def _check(text: object, source: object) -> None:
    need_text(text, "a document")
    check_source(source)


def check_source(source: object) -> None:
    """Check that a name can be that of a source.

    Raises:
        InvalidArgumentError: It is no text, or it has more than one line.
    """
    if "\n" in need_text(source, "a source"):
        raise InvalidArgumentError("a source is one line, such as a path")


def checked_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a caller's metadata.

    Raises:
        InvalidArgumentError: It is not an object, it is no JSON, or it has a reserved name.
    """
    if not isinstance(metadata, Mapping | None):
        raise InvalidArgumentError(f"metadata is an object, not {type(metadata).__name__}")
    own = dict(metadata or {})
    taken = sorted(RESERVED & own.keys())
    if taken:
        raise InvalidArgumentError(
            f"the index itself writes metadata[{quote(taken[0])}]: choose another name"
        )
    encode_metadata(own)
    return own


def chunk_key(document: str, index: int) -> str:
    """Return the key of a chunk; keys are in the order of the document."""
    return f"{document}/{index:0{_DIGITS}}"


def chunk_put(namespace: Namespace, document: Document, chunk: Chunk) -> Put:
    """Return the put of a chunk.

    The strings of its value, the path of headings and the content, are the text that is searched.
    """
    facts = {
        "source": document.source,
        "document": document.id,
        "index": chunk.index,
        "offset": chunk.offset,
        "digest": document.digest,
        "kind": document.kind,
    }
    heading = chunk.metadata.get("heading")
    value = {"heading": heading} if heading else {}
    return Put(
        namespace=chunks_of(namespace),
        key=chunk_key(document.id, chunk.index),
        value={**value, "content": chunk.content},
        metadata={**document.metadata, **chunk.metadata, **facts},
    )


def record_put(namespace: Namespace, document: Document, chunks: int) -> Put:
    """Return the put of the record of a document, which is written when its chunks are."""
    value = {
        "source": document.source,
        "document": document.id,
        "digest": document.digest,
        "kind": document.kind,
        "chunks": chunks,
        "root": document.root,
        "complete": True,
    }
    return Put(namespace=sources_of(namespace), key=document.record, value=value, text="")


def shown_by(record: Mapping[str, Any], document: str) -> bool:
    """Return whether a record of a source lets a search show a document with this name.

    Args:
        record: The value of the record. While the source is replaced, `shown` is the version to
            show; without it, the version that is written for the first time is seen as it grows.
        document: The id of the document. A piece is not replaced, so its record is another one.
    """
    return document.startswith(_PIECE) or document == record.get("shown", record["document"])


def info_of(item: StoreItem) -> SourceInfo:
    """Return what a record says."""
    value: dict[str, Any] = item.value
    return SourceInfo(
        source=value["source"],
        document=value["document"],
        chunks=value["chunks"],
        digest=value["digest"],
        kind=value["kind"],
        updated_at=item.updated_at,
        cursor=item.key,
    )


def result_of(hit: Hit, contrast: float | None = None) -> RetrievalResult:
    """Return a hit of a search with this contrast as a result."""
    metadata = dict(hit.item.metadata)
    return RetrievalResult(
        content=hit.item.value["content"],
        score=hit.relevance,
        source=metadata.get("source", ""),
        metadata=metadata,
        doc_id=metadata.get("document", ""),
        offset=metadata.get("offset", 0),
        index=metadata.get("index", 0),
        explanation=hit.parts,
        contrast=contrast,
        by_chance=hit.by_chance,
    )
