"""Memory for LLM agents, on the database you already run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ConfigurationError,
    EncryptionError,
    InvalidArgumentError,
    InvalidEmbeddingError,
    InvalidFilterError,
    InvalidKeyError,
    InvalidNamespaceError,
    LocusMemoryError,
    MissingDriverError,
    StateTypeError,
    StoreCapabilityError,
    UnknownOptionError,
    UnknownProviderError,
    ValueNotSerializableError,
    VersionConflictError,
)
from locus_memory.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend
    from locus_memory.backends.file.backend import FileBackend
    from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage
    from locus_memory.backends.inmemory.backend import InMemoryBackend
    from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage, MemoryCheckpointer
    from locus_memory.backends.inmemory.store import InMemoryStore
    from locus_memory.backends.sqlite.backend import SQLiteBackend
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer, SQLiteDeltaStorage
    from locus_memory.backends.sqlite.connection import SQLiteDatabase
    from locus_memory.backends.sqlite.store import SQLiteStore
    from locus_memory.checkpoint.base import (
        BaseCheckpointer,
        Checkpointable,
        CheckpointerCapabilities,
        CheckpointInfo,
        StorageStats,
    )
    from locus_memory.checkpoint.chain import DeltaCheckpointer
    from locus_memory.checkpoint.storage import DeltaStorage
    from locus_memory.events import Event, subscribe
    from locus_memory.messages import Message, Role, ToolCall, ToolResult
    from locus_memory.registry import (
        as_checkpointer,
        as_store,
        get_checkpointer,
        get_store,
        list_checkpointers,
        list_stores,
        open_backend,
        register_checkpointer,
        register_store,
    )
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.state import AgentState
    from locus_memory.store.base import BaseStore
    from locus_memory.store.item import (
        Delete,
        Put,
        SemanticSearchResult,
        StoreCapabilities,
        StoreItem,
    )
    from locus_memory.store.view import NamespacedStore, StoreContext
    from locus_memory.store.wrappers.base import StoreWrapper
    from locus_memory.store.wrappers.embedding import EmbeddingStore
    from locus_memory.store.wrappers.encrypting import EncryptingStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "AgentState": "state",
            "Backend": "backends.base",
            "BaseCheckpointer": "checkpoint.base",
            "BaseStore": "store.base",
            "CheckpointInfo": "checkpoint.base",
            "Checkpointable": "checkpoint.base",
            "CheckpointerCapabilities": "checkpoint.base",
            "Delete": "store.item",
            "DeltaCheckpointer": "checkpoint.chain",
            "DeltaStorage": "checkpoint.storage",
            "Embedder": "retrieval.embedders.base",
            "EmbeddingStore": "store.wrappers.embedding",
            "EncryptingStore": "store.wrappers.encrypting",
            "Event": "events",
            "FileBackend": "backends.file.backend",
            "FileCheckpointer": "backends.file.checkpoints",
            "FileDeltaStorage": "backends.file.checkpoints",
            "InMemoryBackend": "backends.inmemory.backend",
            "InMemoryDeltaStorage": "backends.inmemory.checkpoints",
            "InMemoryStore": "backends.inmemory.store",
            "MemoryCheckpointer": "backends.inmemory.checkpoints",
            "Message": "messages",
            "NamespacedStore": "store.view",
            "Put": "store.item",
            "Role": "messages",
            "SQLiteBackend": "backends.sqlite.backend",
            "SQLiteCheckpointer": "backends.sqlite.checkpoints",
            "SQLiteDatabase": "backends.sqlite.connection",
            "SQLiteDeltaStorage": "backends.sqlite.checkpoints",
            "SQLiteStore": "backends.sqlite.store",
            "SemanticSearchResult": "store.item",
            "StorageStats": "checkpoint.base",
            "StoreCapabilities": "store.item",
            "StoreContext": "store.view",
            "StoreItem": "store.item",
            "StoreWrapper": "store.wrappers.base",
            "ToolCall": "messages",
            "ToolResult": "messages",
            "as_checkpointer": "registry",
            "as_store": "registry",
            "get_checkpointer": "registry",
            "get_store": "registry",
            "list_checkpointers": "registry",
            "list_stores": "registry",
            "open_backend": "registry",
            "register_checkpointer": "registry",
            "register_store": "registry",
            "subscribe": "events",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "AgentState",
    "Backend",
    "BackendClosedError",
    "BackendCorruptError",
    "BackendError",
    "BackendUnavailableError",
    "BackendWriteError",
    "BaseCheckpointer",
    "BaseStore",
    "CheckpointConflictError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointInfo",
    "CheckpointNotFoundError",
    "Checkpointable",
    "CheckpointerCapabilities",
    "ConfigurationError",
    "Delete",
    "DeltaCheckpointer",
    "DeltaStorage",
    "Embedder",
    "EmbeddingStore",
    "EncryptingStore",
    "EncryptionError",
    "Event",
    "FileBackend",
    "FileCheckpointer",
    "FileDeltaStorage",
    "InMemoryBackend",
    "InMemoryDeltaStorage",
    "InMemoryStore",
    "InvalidArgumentError",
    "InvalidEmbeddingError",
    "InvalidFilterError",
    "InvalidKeyError",
    "InvalidNamespaceError",
    "LocusMemoryError",
    "MemoryCheckpointer",
    "Message",
    "MissingDriverError",
    "NamespacedStore",
    "Put",
    "Role",
    "SQLiteBackend",
    "SQLiteCheckpointer",
    "SQLiteDatabase",
    "SQLiteDeltaStorage",
    "SQLiteStore",
    "SemanticSearchResult",
    "StateTypeError",
    "StorageStats",
    "StoreCapabilities",
    "StoreCapabilityError",
    "StoreContext",
    "StoreItem",
    "StoreWrapper",
    "ToolCall",
    "ToolResult",
    "UnknownOptionError",
    "UnknownProviderError",
    "ValueNotSerializableError",
    "VersionConflictError",
    "__version__",
    "as_checkpointer",
    "as_store",
    "get_checkpointer",
    "get_store",
    "list_checkpointers",
    "list_stores",
    "open_backend",
    "register_checkpointer",
    "register_store",
    "subscribe",
]
