"""Documents: files cut into chunks, found again, and shown to a model with their sources.

A `DocumentIndex` keeps documents in any store, beside the memory of a conversation. Files are cut
without losing a word, and added again only where they changed. What fits a question is put before
the model as data, numbered, so that its answer can cite it.

Read `index.py` first, then `chunking/`, `writing.py`, `ingest/` and `context.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.documents.chunking.chunks import chunk_text
    from locus_memory.documents.chunking.config import Chunk, ChunkConfig
    from locus_memory.documents.context import ContextConfig, inject_context
    from locus_memory.documents.fusion import FusedIndex, HybridOptions, fuse
    from locus_memory.documents.index import DocumentIndex
    from locus_memory.documents.ingest.reader import DocumentLimits
    from locus_memory.documents.ingest.reading import ingest_path
    from locus_memory.documents.registry import (
        documents_from_config,
        get_documents,
        list_document_indexes,
        register_document_index,
    )
    from locus_memory.documents.values import Ingested, RetrievalResult, SourceInfo
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Chunk": "chunking.config",
            "ChunkConfig": "chunking.config",
            "ContextConfig": "context",
            "DocumentIndex": "index",
            "DocumentLimits": "ingest.reader",
            "FusedIndex": "fusion",
            "HybridOptions": "fusion",
            "Ingested": "values",
            "RetrievalResult": "values",
            "SourceInfo": "values",
            "chunk_text": "chunking.chunks",
            "fuse": "fusion",
            "documents_from_config": "registry",
            "get_documents": "registry",
            "ingest_path": "ingest.reading",
            "inject_context": "context",
            "list_document_indexes": "registry",
            "register_document_index": "registry",
        },
    )

__all__ = [
    "Chunk",
    "ChunkConfig",
    "ContextConfig",
    "DocumentIndex",
    "DocumentLimits",
    "FusedIndex",
    "HybridOptions",
    "Ingested",
    "RetrievalResult",
    "SourceInfo",
    "chunk_text",
    "documents_from_config",
    "fuse",
    "get_documents",
    "ingest_path",
    "inject_context",
    "list_document_indexes",
    "register_document_index",
]
