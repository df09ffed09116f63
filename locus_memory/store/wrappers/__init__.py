"""Stores that wrap another store and add behaviour to any backend.

A wrapper is a store, so wrappers can be nested. Each takes a store, a backend or a provider string.

Read `base.py` first, then `encrypting.py`.
"""

from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.caching import CachingStore
from locus_memory.store.wrappers.embedding import EmbeddingStore
from locus_memory.store.wrappers.encrypting import EncryptingStore
from locus_memory.store.wrappers.metrics import MetricsStore, VerbMetrics
from locus_memory.store.wrappers.read_only import ReadOnlyStore
from locus_memory.store.wrappers.retrying import RetryingStore

__all__ = [
    "CachingStore",
    "EmbeddingStore",
    "EncryptingStore",
    "MetricsStore",
    "ReadOnlyStore",
    "RetryingStore",
    "StoreWrapper",
    "VerbMetrics",
]
