"""Contract 1: the namespaced key-value store, its values, filters, views and wrappers.

Every backend follows the contract of `base.py`; the checks, the encodings and the evaluation of
filters are here once. Nothing here depends on a database.

Read `base.py` and `item.py` first, then `filters.py` and `text.py`; `view.py` and `wrappers/` are
built on top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.inmemory.store import InMemoryStore as InMemoryStore
    from locus_memory.backends.oci.store import OCIStore as OCIStore
    from locus_memory.backends.opensearch.store import OpenSearchStore as OpenSearchStore
    from locus_memory.backends.oracle.store import OracleStore as OracleStore
    from locus_memory.backends.postgresql.store import PostgreSQLStore as PostgreSQLStore
    from locus_memory.backends.redis.store import RedisStore as RedisStore
    from locus_memory.backends.sqlite.store import SQLiteStore as SQLiteStore
    from locus_memory.errors import StoreCapabilityError as StoreCapabilityError
    from locus_memory.registry import get_store as get_store
    from locus_memory.registry import list_stores as list_stores
    from locus_memory.registry import register_store as register_store
    from locus_memory.store.base import BaseStore
    from locus_memory.store.item import (
        Delete,
        Namespace,
        Put,
        SemanticSearchResult,
        StoreCapabilities,
        StoreItem,
    )
    from locus_memory.store.view import NamespacedStore, StoreContext
    from locus_memory.store.wrappers.base import StoreWrapper
    from locus_memory.store.wrappers.caching import CachingStore
    from locus_memory.store.wrappers.embedding import EmbeddingStore
    from locus_memory.store.wrappers.encrypting import EncryptingStore
    from locus_memory.store.wrappers.metrics import MetricsStore, VerbMetrics
    from locus_memory.store.wrappers.read_only import ReadOnlyStore
    from locus_memory.store.wrappers.retrying import RetryingStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BaseStore": "base",
            "CachingStore": "wrappers.caching",
            "Delete": "item",
            "EmbeddingStore": "wrappers.embedding",
            "EncryptingStore": "wrappers.encrypting",
            "MetricsStore": "wrappers.metrics",
            "Namespace": "item",
            "NamespacedStore": "view",
            "Put": "item",
            "ReadOnlyStore": "wrappers.read_only",
            "RetryingStore": "wrappers.retrying",
            "SemanticSearchResult": "item",
            "StoreCapabilities": "item",
            "StoreContext": "view",
            "StoreItem": "item",
            "StoreWrapper": "wrappers.base",
            "VerbMetrics": "wrappers.metrics",
        },
        unlisted={
            "InMemoryStore": "locus_memory.backends.inmemory.store",
            "OCIStore": "locus_memory.backends.oci.store",
            "OpenSearchStore": "locus_memory.backends.opensearch.store",
            "OracleStore": "locus_memory.backends.oracle.store",
            "PostgreSQLStore": "locus_memory.backends.postgresql.store",
            "RedisStore": "locus_memory.backends.redis.store",
            "SQLiteStore": "locus_memory.backends.sqlite.store",
            "StoreCapabilityError": "locus_memory.errors",
            "get_store": "locus_memory.registry",
            "list_stores": "locus_memory.registry",
            "register_store": "locus_memory.registry",
        },
    )

__all__ = [
    "BaseStore",
    "CachingStore",
    "Delete",
    "EmbeddingStore",
    "EncryptingStore",
    "MetricsStore",
    "Namespace",
    "NamespacedStore",
    "Put",
    "ReadOnlyStore",
    "RetryingStore",
    "SemanticSearchResult",
    "StoreCapabilities",
    "StoreContext",
    "StoreItem",
    "StoreWrapper",
    "VerbMetrics",
]
