"""Stores that wrap another store and add behaviour to any backend."""

from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.embedding import EmbeddingStore
from locus_memory.store.wrappers.encrypting import EncryptingStore

__all__ = ["EmbeddingStore", "EncryptingStore", "StoreWrapper"]
