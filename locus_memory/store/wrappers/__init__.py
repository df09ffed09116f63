"""Stores over stores: behaviour that any backend can be given."""

from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.embedding import EmbeddingStore
from locus_memory.store.wrappers.encrypting import EncryptingStore

__all__ = ["EmbeddingStore", "EncryptingStore", "StoreWrapper"]
