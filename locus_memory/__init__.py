"""Memory for LLM agents, on the database you already run.

This module binds names and imports nothing else: each name loads its module when it is first
used. Users import from here, or from the packages below: `store` and `checkpoint` are the two
contracts, `backends` keeps them, `conversation`, `memory`, `retrieval` and `agent` stand on them.

Read `docs/architecture.md` for the whole house, then `registry.py`, which turns a string into a
backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names
from locus_memory.errors import (
    BackendClosedError,
    BackendCorruptError,
    BackendError,
    BackendUnavailableError,
    BackendWriteError,
    BlockingCallError,
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
    InvalidMessageError,
    InvalidNamespaceError,
    LocusMemoryError,
    MissingDriverError,
    ModelAnswerError,
    ModelError,
    ModelRequestError,
    ModelUnavailableError,
    StateTypeError,
    StoreCapabilityError,
    UnknownOptionError,
    UnknownProviderError,
    ValueNotSerializableError,
    VersionConflictError,
)

if TYPE_CHECKING:
    from locus_memory.agent.events import (
        AgentEvent,
        AgentResult,
        Done,
        MessageAdded,
        Saved,
        TextDelta,
        ToolFinished,
        ToolStarted,
    )
    from locus_memory.agent.loop import Agent
    from locus_memory.backends.base import Backend
    from locus_memory.backends.file.backend import FileBackend
    from locus_memory.backends.file.checkpoints import FileCheckpointer, FileDeltaStorage
    from locus_memory.backends.inmemory.backend import InMemoryBackend
    from locus_memory.backends.inmemory.checkpoints import InMemoryDeltaStorage, MemoryCheckpointer
    from locus_memory.backends.inmemory.store import InMemoryStore
    from locus_memory.backends.postgresql.backend import PostgreSQLBackend as PostgreSQLBackend
    from locus_memory.backends.postgresql.checkpoints import (
        PostgreSQLCheckpointer as PostgreSQLCheckpointer,
    )
    from locus_memory.backends.postgresql.checkpoints import (
        PostgreSQLDeltaStorage as PostgreSQLDeltaStorage,
    )
    from locus_memory.backends.postgresql.connection.connection import (
        PostgreSQLPool as PostgreSQLPool,
    )
    from locus_memory.backends.postgresql.store import PostgreSQLStore as PostgreSQLStore
    from locus_memory.backends.redis.backend import RedisBackend as RedisBackend
    from locus_memory.backends.redis.checkpoints import (
        RedisCheckpointer as RedisCheckpointer,
    )
    from locus_memory.backends.redis.checkpoints import (
        RedisDeltaStorage as RedisDeltaStorage,
    )
    from locus_memory.backends.redis.connection.connection import RedisConnection as RedisConnection
    from locus_memory.backends.redis.store import RedisStore as RedisStore
    from locus_memory.backends.sqlite.backend import SQLiteBackend
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer, SQLiteDeltaStorage
    from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase
    from locus_memory.backends.sqlite.store import SQLiteStore
    from locus_memory.chat.base import ChatModel, StreamingModel, ToolModel, ToolSpec
    from locus_memory.chat.openai.model import OpenAIChat
    from locus_memory.chat.scripted import ScriptedModel
    from locus_memory.checkpoint.base import (
        BaseCheckpointer,
        Checkpointable,
        CheckpointerCapabilities,
        CheckpointInfo,
        StorageStats,
    )
    from locus_memory.checkpoint.chain import DeltaCheckpointer
    from locus_memory.checkpoint.storage import DeltaStorage
    from locus_memory.conversation.base import ConversationManager, NullManager
    from locus_memory.conversation.summary.manager import SummarizingManager
    from locus_memory.conversation.tokens import TokenCounter, count_tokens, estimate_tokens
    from locus_memory.conversation.window import SlidingWindowManager
    from locus_memory.events import Event, subscribe
    from locus_memory.memory.base import BaseMemoryManager, NoopMemoryManager
    from locus_memory.memory.extraction.extractors import LLMExtractor
    from locus_memory.memory.forgetting.forget import forget
    from locus_memory.memory.forgetting.report import ForgetReport
    from locus_memory.memory.heuristic.extractor import HeuristicExtractor
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import Extractor, Memory, MemoryChange, MemoryType
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
    from locus_memory.retrieval.embedders.registry import get_embedder
    from locus_memory.retrieval.hybrid import HybridSearch
    from locus_memory.retrieval.options import SearchOptions
    from locus_memory.retrieval.turns import Turn, index_turns
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
    from locus_memory.sync import Blocking, Bridge, blocking
    from locus_memory.tools import Tool, tool
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Agent": "agent.loop",
            "AgentEvent": "agent.events",
            "AgentResult": "agent.events",
            "AgentState": "state",
            "Backend": "backends.base",
            "BaseCheckpointer": "checkpoint.base",
            "BaseMemoryManager": "memory.base",
            "BaseStore": "store.base",
            "Blocking": "sync",
            "Bridge": "sync",
            "ChatModel": "chat.base",
            "CheckpointInfo": "checkpoint.base",
            "Checkpointable": "checkpoint.base",
            "CheckpointerCapabilities": "checkpoint.base",
            "ConversationManager": "conversation.base",
            "Delete": "store.item",
            "DeltaCheckpointer": "checkpoint.chain",
            "DeltaStorage": "checkpoint.storage",
            "Done": "agent.events",
            "Embedder": "retrieval.embedders.base",
            "EmbeddingStore": "store.wrappers.embedding",
            "EncryptingStore": "store.wrappers.encrypting",
            "Event": "events",
            "Extractor": "memory.models",
            "FileBackend": "backends.file.backend",
            "FileCheckpointer": "backends.file.checkpoints",
            "FileDeltaStorage": "backends.file.checkpoints",
            "ForgetReport": "memory.forgetting.report",
            "HeuristicExtractor": "memory.heuristic.extractor",
            "HybridSearch": "retrieval.hybrid",
            "InMemoryBackend": "backends.inmemory.backend",
            "InMemoryDeltaStorage": "backends.inmemory.checkpoints",
            "InMemoryStore": "backends.inmemory.store",
            "LLMExtractor": "memory.extraction.extractors",
            "LLMMemoryManager": "memory.manager",
            "Memory": "memory.models",
            "MemoryChange": "memory.models",
            "MemoryCheckpointer": "backends.inmemory.checkpoints",
            "MemoryType": "memory.models",
            "Message": "messages",
            "MessageAdded": "agent.events",
            "NamespacedStore": "store.view",
            "NoopMemoryManager": "memory.base",
            "NullManager": "conversation.base",
            "OpenAIChat": "chat.openai.model",
            "Put": "store.item",
            "Role": "messages",
            "SQLiteBackend": "backends.sqlite.backend",
            "SQLiteCheckpointer": "backends.sqlite.checkpoints",
            "SQLiteDatabase": "backends.sqlite.connection.connection",
            "SQLiteDeltaStorage": "backends.sqlite.checkpoints",
            "SQLiteStore": "backends.sqlite.store",
            "Saved": "agent.events",
            "ScriptedModel": "chat.scripted",
            "SearchOptions": "retrieval.options",
            "SemanticSearchResult": "store.item",
            "SlidingWindowManager": "conversation.window",
            "StorageStats": "checkpoint.base",
            "StoreCapabilities": "store.item",
            "StoreContext": "store.view",
            "StoreItem": "store.item",
            "StoreWrapper": "store.wrappers.base",
            "StreamingModel": "chat.base",
            "SummarizingManager": "conversation.summary.manager",
            "TextDelta": "agent.events",
            "TokenCounter": "conversation.tokens",
            "Tool": "tools",
            "ToolCall": "messages",
            "ToolFinished": "agent.events",
            "ToolModel": "chat.base",
            "ToolResult": "messages",
            "ToolSpec": "chat.base",
            "ToolStarted": "agent.events",
            "Turn": "retrieval.turns",
            "as_checkpointer": "registry",
            "as_store": "registry",
            "blocking": "sync",
            "count_tokens": "conversation.tokens",
            "estimate_tokens": "conversation.tokens",
            "forget": "memory.forgetting.forget",
            "get_checkpointer": "registry",
            "get_embedder": "retrieval.embedders.registry",
            "get_store": "registry",
            "index_turns": "retrieval.turns",
            "list_checkpointers": "registry",
            "list_stores": "registry",
            "open_backend": "registry",
            "register_checkpointer": "registry",
            "register_store": "registry",
            "subscribe": "events",
            "tool": "tools",
        },
        driven={
            "PostgreSQLBackend": "backends.postgresql.backend",
            "PostgreSQLCheckpointer": "backends.postgresql.checkpoints",
            "PostgreSQLDeltaStorage": "backends.postgresql.checkpoints",
            "PostgreSQLPool": "backends.postgresql.connection.connection",
            "PostgreSQLStore": "backends.postgresql.store",
            "RedisBackend": "backends.redis.backend",
            "RedisCheckpointer": "backends.redis.checkpoints",
            "RedisConnection": "backends.redis.connection.connection",
            "RedisDeltaStorage": "backends.redis.checkpoints",
            "RedisStore": "backends.redis.store",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentEvent",
    "AgentResult",
    "AgentState",
    "Backend",
    "BackendClosedError",
    "BackendCorruptError",
    "BackendError",
    "BackendUnavailableError",
    "BackendWriteError",
    "BaseCheckpointer",
    "BaseMemoryManager",
    "BaseStore",
    "Blocking",
    "BlockingCallError",
    "Bridge",
    "ChatModel",
    "CheckpointConflictError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointInfo",
    "CheckpointNotFoundError",
    "Checkpointable",
    "CheckpointerCapabilities",
    "ConfigurationError",
    "ConversationManager",
    "Delete",
    "DeltaCheckpointer",
    "DeltaStorage",
    "Done",
    "Embedder",
    "EmbeddingStore",
    "EncryptingStore",
    "EncryptionError",
    "Event",
    "Extractor",
    "FileBackend",
    "FileCheckpointer",
    "FileDeltaStorage",
    "ForgetReport",
    "HeuristicExtractor",
    "HybridSearch",
    "InMemoryBackend",
    "InMemoryDeltaStorage",
    "InMemoryStore",
    "InvalidArgumentError",
    "InvalidEmbeddingError",
    "InvalidFilterError",
    "InvalidKeyError",
    "InvalidMessageError",
    "InvalidNamespaceError",
    "LLMExtractor",
    "LLMMemoryManager",
    "LocusMemoryError",
    "Memory",
    "MemoryChange",
    "MemoryCheckpointer",
    "MemoryType",
    "Message",
    "MessageAdded",
    "MissingDriverError",
    "ModelAnswerError",
    "ModelError",
    "ModelRequestError",
    "ModelUnavailableError",
    "NamespacedStore",
    "NoopMemoryManager",
    "NullManager",
    "OpenAIChat",
    "Put",
    "Role",
    "SQLiteBackend",
    "SQLiteCheckpointer",
    "SQLiteDatabase",
    "SQLiteDeltaStorage",
    "SQLiteStore",
    "Saved",
    "ScriptedModel",
    "SearchOptions",
    "SemanticSearchResult",
    "SlidingWindowManager",
    "StateTypeError",
    "StorageStats",
    "StoreCapabilities",
    "StoreCapabilityError",
    "StoreContext",
    "StoreItem",
    "StoreWrapper",
    "StreamingModel",
    "SummarizingManager",
    "TextDelta",
    "TokenCounter",
    "Tool",
    "ToolCall",
    "ToolFinished",
    "ToolModel",
    "ToolResult",
    "ToolSpec",
    "ToolStarted",
    "Turn",
    "UnknownOptionError",
    "UnknownProviderError",
    "ValueNotSerializableError",
    "VersionConflictError",
    "__version__",
    "as_checkpointer",
    "as_store",
    "blocking",
    "count_tokens",
    "estimate_tokens",
    "forget",
    "get_checkpointer",
    "get_embedder",
    "get_store",
    "index_turns",
    "list_checkpointers",
    "list_stores",
    "open_backend",
    "register_checkpointer",
    "register_store",
    "subscribe",
    "tool",
]
