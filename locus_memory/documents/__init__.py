"""Documents: files cut into chunks, found again, and shown to a model with their sources.

Read `chunking/` for the cutting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.documents.chunking.chunks import chunk_text
    from locus_memory.documents.chunking.config import Chunk, ChunkConfig
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Chunk": "chunking.config",
            "ChunkConfig": "chunking.config",
            "chunk_text": "chunking.chunks",
        },
    )

__all__ = [
    "Chunk",
    "ChunkConfig",
    "chunk_text",
]
