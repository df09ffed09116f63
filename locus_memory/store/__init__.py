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
