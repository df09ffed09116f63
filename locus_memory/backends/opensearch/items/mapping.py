"""The index of items: one mapping for every document, however many keys its value has.

The value and the metadata are kept as texts of JSON, which the server does not read. The fields
that only searches read are left out of the document that it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from locus_memory.backends.opensearch.schema import Features, Index

__all__ = ["ITEMS", "vector_field", "vector_mapping", "vector_value"]

_VECTORS: Final = "knn"
"""The object of the fields of vectors; each length has its own."""

_TERM_FREQUENCY: Final = """
double norm = 1.2 * (0.25 + 0.75 * doc.length * field.docCount / field.sumTotalTermFreq);
return query.boost * doc.freq / (doc.freq + norm);
"""
"""BM25 without the rarity of a word, which a query gives as its boost: the index knows how rare
a word is in all namespaces together only."""

_ANALYSIS: Final[dict[str, Any]] = {
    "analyzer": {
        "words": {
            "type": "custom",
            "tokenizer": "words",
            "filter": ["lowercase", "porter_stem"],
        }
    },
    "tokenizer": {
        "words": {
            "type": "char_group",
            # Texts come folded and split by `searchable`, those in ASCII do not.
            "tokenize_on_chars": [
                *("whitespace", "punctuation", "symbol"),
                *map(chr, (*range(1, 32), 127)),
            ],
        }
    },
}
"""The words of a text; no analyzer of a language, which some Java runtimes lack."""

_DERIVED: Final = (3,)
"""The first version that can rebuild a vector from its index, for documents that have it."""


def _settings(features: Features) -> dict[str, Any]:
    settings: dict[str, Any] = {
        # Explicit, so that it also holds for an index that is seldom searched: the most time until
        # a search sees the write of another process.
        "refresh_interval": "1s",
        "analysis": _ANALYSIS,
        "similarity": {"words": {"type": "scripted", "script": {"source": _TERM_FREQUENCY}}},
    }
    if features.knn:
        settings["knn"] = True
        if features.version >= _DERIVED:
            settings["knn.derived_source.enabled"] = False
    return settings


ITEMS: Final = Index(
    suffix="items",
    properties={
        "namespace": {"type": "keyword"},
        # Of its namespace and of each above it, a digest.
        "within": {"type": "keyword", "doc_values": False},
        "key": {"type": "keyword"},
        "terms": {"type": "keyword"},
        "text": {"type": "text", "analyzer": "words", "similarity": "words"},
        "expires": {"type": "long"},
        "updated": {"type": "long", "index": False},
        "dimension": {"type": "short"},
        "embedding": {"type": "binary", "store": True},
        # Strict, so that no vector is written before its field is there, and never found.
        _VECTORS: {"type": "object", "dynamic": "strict"},
    },
    settings=_settings,
    options={
        "_routing": {"required": True},
        "_source": {"excludes": ["within", "terms", "text", "embedding", _VECTORS]},
    },
)
"""The index of items."""


def vector_field(dimension: int) -> str:
    """Return the name of the field of vectors of this length."""
    return f"{_VECTORS}.{dimension}"


def vector_value(numbers: Sequence[float]) -> dict[str, Any]:
    """Return the part of a document with a vector."""
    return {_VECTORS: {str(len(numbers)): numbers}}


def vector_mapping(dimension: int) -> dict[str, Any]:
    """Return the mapping of the field of vectors of this length."""
    # The engine is named: on some servers the default has no library, and ends the server.
    method = {"name": "hnsw", "space_type": "cosinesimil", "engine": "lucene"}
    field = {"type": "knn_vector", "dimension": dimension, "method": method}
    return {"properties": {_VECTORS: {"properties": {str(dimension): field}}}}
