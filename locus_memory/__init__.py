"""Memory for LLM agents, on the database you already run.

This module binds names and imports nothing else: each name loads its module when it is first
used. Users import from here, or from the packages below: `store` and `checkpoint` are the two
contracts, `backends` implements them, and `conversation`, `memory`, `retrieval` and `agent` use
them.

Read `docs/architecture.md` for an overview, then `registry.py`, which turns a string into a
backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.agent.events import AgentEvent as AgentEvent
    from locus_memory.agent.events import AgentResult as AgentResult
    from locus_memory.agent.events import Done as Done
    from locus_memory.agent.events import MessageAdded as MessageAdded
    from locus_memory.agent.events import Saved as Saved
    from locus_memory.agent.events import TextDelta as TextDelta
    from locus_memory.agent.events import ToolFinished as ToolFinished
    from locus_memory.agent.events import ToolStarted as ToolStarted
    from locus_memory.agent.hooks import Invocation as Invocation
    from locus_memory.agent.loop import Agent
    from locus_memory.agent.options import AgentOptions as AgentOptions
    from locus_memory.backends.base import Backend as Backend
    from locus_memory.backends.file.backend import FileBackend as FileBackend
    from locus_memory.backends.file.checkpoints import FileCheckpointer as FileCheckpointer
    from locus_memory.backends.file.checkpoints import FileDeltaStorage as FileDeltaStorage
    from locus_memory.backends.inmemory.backend import InMemoryBackend as InMemoryBackend
    from locus_memory.backends.inmemory.checkpoints import (
        InMemoryDeltaStorage as InMemoryDeltaStorage,
    )
    from locus_memory.backends.inmemory.checkpoints import MemoryCheckpointer as MemoryCheckpointer
    from locus_memory.backends.inmemory.store import InMemoryStore as InMemoryStore
    from locus_memory.backends.oci.backend import OCIBackend as OCIBackend
    from locus_memory.backends.oci.checkpoints import OCIBucketCheckpointer as OCIBucketCheckpointer
    from locus_memory.backends.oci.checkpoints import OCICheckpointer as OCICheckpointer
    from locus_memory.backends.oci.checkpoints import OCIDeltaStorage as OCIDeltaStorage
    from locus_memory.backends.oci.connection.connection import OCIConnection as OCIConnection
    from locus_memory.backends.oci.store import OCIStore as OCIStore
    from locus_memory.backends.opensearch.backend import OpenSearchBackend as OpenSearchBackend
    from locus_memory.backends.opensearch.checkpoints import (
        OpenSearchCheckpointer as OpenSearchCheckpointer,
    )
    from locus_memory.backends.opensearch.checkpoints import (
        OpenSearchDeltaStorage as OpenSearchDeltaStorage,
    )
    from locus_memory.backends.opensearch.connection.connection import (
        OpenSearchConnection as OpenSearchConnection,
    )
    from locus_memory.backends.opensearch.store import OpenSearchStore as OpenSearchStore
    from locus_memory.backends.oracle.backend import OracleBackend as OracleBackend
    from locus_memory.backends.oracle.checkpoints import OracleCheckpointer as OracleCheckpointer
    from locus_memory.backends.oracle.checkpoints import OracleDeltaStorage as OracleDeltaStorage
    from locus_memory.backends.oracle.connection.connection import OraclePool as OraclePool
    from locus_memory.backends.oracle.store import OracleStore as OracleStore
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
    from locus_memory.backends.redis.checkpoints import RedisCheckpointer as RedisCheckpointer
    from locus_memory.backends.redis.checkpoints import RedisDeltaStorage as RedisDeltaStorage
    from locus_memory.backends.redis.connection.connection import RedisConnection as RedisConnection
    from locus_memory.backends.redis.store import RedisStore as RedisStore
    from locus_memory.backends.sqlite.backend import SQLiteBackend as SQLiteBackend
    from locus_memory.backends.sqlite.checkpoints import SQLiteCheckpointer as SQLiteCheckpointer
    from locus_memory.backends.sqlite.checkpoints import SQLiteDeltaStorage as SQLiteDeltaStorage
    from locus_memory.backends.sqlite.connection.connection import SQLiteDatabase as SQLiteDatabase
    from locus_memory.backends.sqlite.store import SQLiteStore as SQLiteStore
    from locus_memory.chat.base import ChatModel
    from locus_memory.chat.base import StreamingModel as StreamingModel
    from locus_memory.chat.base import ToolModel as ToolModel
    from locus_memory.chat.base import ToolSpec as ToolSpec
    from locus_memory.chat.openai.model import OpenAIChat
    from locus_memory.chat.registry import get_model as get_model
    from locus_memory.chat.registry import list_models as list_models
    from locus_memory.chat.registry import register_model as register_model
    from locus_memory.chat.scripted import ScriptedModel
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointInfo
    from locus_memory.checkpoint.base import Checkpointable as Checkpointable
    from locus_memory.checkpoint.base import CheckpointerCapabilities as CheckpointerCapabilities
    from locus_memory.checkpoint.base import StorageStats as StorageStats
    from locus_memory.checkpoint.chain import DeltaCheckpointer
    from locus_memory.checkpoint.four_verbs import CheckpointMetadata as CheckpointMetadata
    from locus_memory.checkpoint.four_verbs import DeltaCheckpoint as DeltaCheckpoint
    from locus_memory.checkpoint.storage import DeltaStorage as DeltaStorage
    from locus_memory.conversation.base import ConversationManager
    from locus_memory.conversation.base import NullManager as NullManager
    from locus_memory.conversation.notes import NotesManager as NotesManager
    from locus_memory.conversation.registry import (
        get_conversation_manager as get_conversation_manager,
    )
    from locus_memory.conversation.registry import (
        list_conversation_managers as list_conversation_managers,
    )
    from locus_memory.conversation.registry import (
        register_conversation_manager as register_conversation_manager,
    )
    from locus_memory.conversation.summary.manager import SummarizingManager
    from locus_memory.conversation.tokens import TokenCounter as TokenCounter
    from locus_memory.conversation.tokens import count_tokens as count_tokens
    from locus_memory.conversation.tokens import estimate_tokens as estimate_tokens
    from locus_memory.conversation.window import SlidingWindowManager
    from locus_memory.documents.index import DocumentIndex as DocumentIndex
    from locus_memory.documents.registry import get_documents as get_documents
    from locus_memory.encryption.checkpointer import (
        EncryptingCheckpointer as EncryptingCheckpointer,
    )
    from locus_memory.errors import ArchiveError as ArchiveError
    from locus_memory.errors import BackendClosedError as BackendClosedError
    from locus_memory.errors import BackendCorruptError as BackendCorruptError
    from locus_memory.errors import BackendError as BackendError
    from locus_memory.errors import BackendTimeoutError as BackendTimeoutError
    from locus_memory.errors import BackendUnavailableError as BackendUnavailableError
    from locus_memory.errors import BackendWriteError as BackendWriteError
    from locus_memory.errors import BlockingCallError as BlockingCallError
    from locus_memory.errors import CheckpointConflictError as CheckpointConflictError
    from locus_memory.errors import CheckpointCorruptError as CheckpointCorruptError
    from locus_memory.errors import CheckpointError as CheckpointError
    from locus_memory.errors import CheckpointNotFoundError as CheckpointNotFoundError
    from locus_memory.errors import ConfigurationError as ConfigurationError
    from locus_memory.errors import EncryptionError as EncryptionError
    from locus_memory.errors import InvalidArgumentError as InvalidArgumentError
    from locus_memory.errors import InvalidEmbeddingError as InvalidEmbeddingError
    from locus_memory.errors import InvalidFilterError as InvalidFilterError
    from locus_memory.errors import InvalidKeyError as InvalidKeyError
    from locus_memory.errors import InvalidMemoryURI as InvalidMemoryURI
    from locus_memory.errors import InvalidMessageError as InvalidMessageError
    from locus_memory.errors import InvalidNamespaceError as InvalidNamespaceError
    from locus_memory.errors import LocusMemoryError
    from locus_memory.errors import MemoryAccessDenied as MemoryAccessDenied
    from locus_memory.errors import MemoryBackendError as MemoryBackendError
    from locus_memory.errors import MemoryBackendNotFound as MemoryBackendNotFound
    from locus_memory.errors import MemoryConflict as MemoryConflict
    from locus_memory.errors import MemoryExtractionFailed as MemoryExtractionFailed
    from locus_memory.errors import MemoryNotFound as MemoryNotFound
    from locus_memory.errors import MemoryStoreClosed as MemoryStoreClosed
    from locus_memory.errors import MemoryTimeout as MemoryTimeout
    from locus_memory.errors import MissingDriverError as MissingDriverError
    from locus_memory.errors import ModelAnswerError as ModelAnswerError
    from locus_memory.errors import ModelError as ModelError
    from locus_memory.errors import ModelRequestError as ModelRequestError
    from locus_memory.errors import ModelUnavailableError as ModelUnavailableError
    from locus_memory.errors import StateTypeError as StateTypeError
    from locus_memory.errors import StoreCapabilityError as StoreCapabilityError
    from locus_memory.errors import UnknownOptionError as UnknownOptionError
    from locus_memory.errors import UnknownProviderError as UnknownProviderError
    from locus_memory.errors import UnsetVariableError as UnsetVariableError
    from locus_memory.errors import UnsupportedMemoryOp as UnsupportedMemoryOp
    from locus_memory.errors import ValueNotSerializableError as ValueNotSerializableError
    from locus_memory.errors import VersionConflictError as VersionConflictError
    from locus_memory.events import Event as Event
    from locus_memory.events import subscribe
    from locus_memory.memory.base import BaseMemoryManager
    from locus_memory.memory.base import NoopMemoryManager as NoopMemoryManager
    from locus_memory.memory.extraction.extractors import LLMExtractor
    from locus_memory.memory.forgetting.forget import ForgetReport as ForgetReport
    from locus_memory.memory.forgetting.forget import forget
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.memory.models import ExtractFn as ExtractFn
    from locus_memory.memory.models import Extractor as Extractor
    from locus_memory.memory.models import Memory, MemoryType
    from locus_memory.memory.models import MemoryChange as MemoryChange
    from locus_memory.memory.models import MemorySearchResult as MemorySearchResult
    from locus_memory.memory.phrases.extractor import HeuristicExtractor as HeuristicExtractor
    from locus_memory.memory.providers.base import BaseMemoryProvider as BaseMemoryProvider
    from locus_memory.memory.providers.manager import ProviderManager as ProviderManager
    from locus_memory.memory.providers.registry import MemoryOptions as MemoryOptions
    from locus_memory.memory.providers.registry import MemoryProvider as MemoryProvider
    from locus_memory.memory.providers.registry import get_memory_manager as get_memory_manager
    from locus_memory.memory.providers.registry import (
        list_memory_providers as list_memory_providers,
    )
    from locus_memory.memory.providers.registry import register_memory_api as register_memory_api
    from locus_memory.memory.providers.registry import (
        register_memory_provider as register_memory_provider,
    )
    from locus_memory.memory.providers.settings import MemorySettings as MemorySettings
    from locus_memory.messages import Message, Role
    from locus_memory.messages import ToolCall as ToolCall
    from locus_memory.messages import ToolResult as ToolResult
    from locus_memory.probing import preferred as preferred
    from locus_memory.registry import as_checkpointer as as_checkpointer
    from locus_memory.registry import as_store as as_store
    from locus_memory.registry import (
        get_checkpointer,
        get_store,
        open_backend,
        register_checkpointer,
        register_store,
    )
    from locus_memory.registry import list_checkpointers as list_checkpointers
    from locus_memory.registry import list_stores as list_stores
    from locus_memory.resources.tree import MemoryTree
    from locus_memory.resources.uri import MemoryURI as MemoryURI
    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.embedders.registry import get_embedder
    from locus_memory.retrieval.hybrid import HybridSearch
    from locus_memory.retrieval.options import SearchOptions as SearchOptions
    from locus_memory.retrieval.turns import Turn as Turn
    from locus_memory.retrieval.turns import index_turns as index_turns
    from locus_memory.state import AgentState
    from locus_memory.store.base import BaseStore
    from locus_memory.store.item import Delete as Delete
    from locus_memory.store.item import Put, StoreCapabilities, StoreItem
    from locus_memory.store.item import SemanticSearchResult as SemanticSearchResult
    from locus_memory.store.view import NamespacedStore, StoreContext
    from locus_memory.store.wrappers.base import StoreWrapper as StoreWrapper
    from locus_memory.store.wrappers.caching import CachingStore as CachingStore
    from locus_memory.store.wrappers.embedding import EmbeddingStore as EmbeddingStore
    from locus_memory.store.wrappers.encrypting import EncryptingStore as EncryptingStore
    from locus_memory.store.wrappers.metrics import MetricsStore as MetricsStore
    from locus_memory.store.wrappers.metrics import VerbMetrics as VerbMetrics
    from locus_memory.store.wrappers.read_only import ReadOnlyStore as ReadOnlyStore
    from locus_memory.store.wrappers.retrying import RetryingStore as RetryingStore
    from locus_memory.sync import Blocking as Blocking
    from locus_memory.sync import Bridge as Bridge
    from locus_memory.sync import blocking
    from locus_memory.tools import Tool as Tool
    from locus_memory.tools import tool
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Agent": "agent.loop",
            "AgentState": "state",
            "BaseCheckpointer": "checkpoint.base",
            "BaseMemoryManager": "memory.base",
            "BaseStore": "store.base",
            "ChatModel": "chat.base",
            "CheckpointInfo": "checkpoint.base",
            "ConversationManager": "conversation.base",
            "DeltaCheckpointer": "checkpoint.chain",
            "Embedder": "retrieval.embedders.base",
            "HybridSearch": "retrieval.hybrid",
            "LLMExtractor": "memory.extraction.extractors",
            "LLMMemoryManager": "memory.manager",
            "LocusMemoryError": "errors",
            "Memory": "memory.models",
            "MemoryTree": "resources.tree",
            "MemoryType": "memory.models",
            "Message": "messages",
            "NamespacedStore": "store.view",
            "NotesManager": "conversation.notes",
            "OpenAIChat": "chat.openai.model",
            "Put": "store.item",
            "Role": "messages",
            "ScriptedModel": "chat.scripted",
            "SlidingWindowManager": "conversation.window",
            "StoreCapabilities": "store.item",
            "StoreContext": "store.view",
            "StoreItem": "store.item",
            "SummarizingManager": "conversation.summary.manager",
            "blocking": "sync",
            "forget": "memory.forgetting.forget",
            "get_checkpointer": "registry",
            "get_embedder": "retrieval.embedders.registry",
            "get_store": "registry",
            "open_backend": "registry",
            "register_checkpointer": "registry",
            "register_store": "registry",
            "subscribe": "events",
            "tool": "tools",
        },
        unlisted={
            "AgentEvent": "agent.events",
            "AgentOptions": "agent.options",
            "AgentResult": "agent.events",
            "ArchiveError": "errors",
            "Backend": "backends.base",
            "BackendClosedError": "errors",
            "BackendCorruptError": "errors",
            "BackendError": "errors",
            "BackendTimeoutError": "errors",
            "BackendUnavailableError": "errors",
            "BackendWriteError": "errors",
            "BaseMemoryProvider": "memory.providers.base",
            "Blocking": "sync",
            "BlockingCallError": "errors",
            "Bridge": "sync",
            "CachingStore": "store.wrappers.caching",
            "CheckpointConflictError": "errors",
            "CheckpointCorruptError": "errors",
            "CheckpointError": "errors",
            "CheckpointMetadata": "checkpoint.four_verbs",
            "CheckpointNotFoundError": "errors",
            "Checkpointable": "checkpoint.base",
            "CheckpointerCapabilities": "checkpoint.base",
            "ConfigurationError": "errors",
            "Delete": "store.item",
            "DeltaCheckpoint": "checkpoint.four_verbs",
            "DeltaStorage": "checkpoint.storage",
            "DocumentIndex": "documents.index",
            "Done": "agent.events",
            "EmbeddingStore": "store.wrappers.embedding",
            "EncryptingCheckpointer": "encryption.checkpointer",
            "EncryptingStore": "store.wrappers.encrypting",
            "EncryptionError": "errors",
            "Event": "events",
            "ExtractFn": "memory.models",
            "Extractor": "memory.models",
            "FileBackend": "backends.file.backend",
            "FileCheckpointer": "backends.file.checkpoints",
            "FileDeltaStorage": "backends.file.checkpoints",
            "ForgetReport": "memory.forgetting.forget",
            "HeuristicExtractor": "memory.phrases.extractor",
            "InMemoryBackend": "backends.inmemory.backend",
            "InMemoryDeltaStorage": "backends.inmemory.checkpoints",
            "InMemoryStore": "backends.inmemory.store",
            "InvalidArgumentError": "errors",
            "InvalidEmbeddingError": "errors",
            "InvalidFilterError": "errors",
            "InvalidKeyError": "errors",
            "InvalidMemoryURI": "errors",
            "InvalidMessageError": "errors",
            "InvalidNamespaceError": "errors",
            "Invocation": "agent.hooks",
            "MemoryAccessDenied": "errors",
            "MemoryBackendError": "errors",
            "MemoryBackendNotFound": "errors",
            "MemoryChange": "memory.models",
            "MemoryCheckpointer": "backends.inmemory.checkpoints",
            "MemoryConflict": "errors",
            "MemoryExtractionFailed": "errors",
            "MemoryNotFound": "errors",
            "MemoryOptions": "memory.providers.registry",
            "MemoryProvider": "memory.providers.registry",
            "MemorySearchResult": "memory.models",
            "MemorySettings": "memory.providers.settings",
            "MemoryStoreClosed": "errors",
            "MemoryTimeout": "errors",
            "MemoryURI": "resources.uri",
            "MessageAdded": "agent.events",
            "MetricsStore": "store.wrappers.metrics",
            "MissingDriverError": "errors",
            "ModelAnswerError": "errors",
            "ModelError": "errors",
            "ModelRequestError": "errors",
            "ModelUnavailableError": "errors",
            "NoopMemoryManager": "memory.base",
            "NullManager": "conversation.base",
            "OCIBackend": "backends.oci.backend",
            "OCIBucketCheckpointer": "backends.oci.checkpoints",
            "OCICheckpointer": "backends.oci.checkpoints",
            "OCIConnection": "backends.oci.connection.connection",
            "OCIDeltaStorage": "backends.oci.checkpoints",
            "OCIStore": "backends.oci.store",
            "OpenSearchBackend": "backends.opensearch.backend",
            "OpenSearchCheckpointer": "backends.opensearch.checkpoints",
            "OpenSearchConnection": "backends.opensearch.connection.connection",
            "OpenSearchDeltaStorage": "backends.opensearch.checkpoints",
            "OpenSearchStore": "backends.opensearch.store",
            "OracleBackend": "backends.oracle.backend",
            "OracleCheckpointer": "backends.oracle.checkpoints",
            "OracleDeltaStorage": "backends.oracle.checkpoints",
            "OraclePool": "backends.oracle.connection.connection",
            "OracleStore": "backends.oracle.store",
            "PostgreSQLBackend": "backends.postgresql.backend",
            "PostgreSQLCheckpointer": "backends.postgresql.checkpoints",
            "PostgreSQLDeltaStorage": "backends.postgresql.checkpoints",
            "PostgreSQLPool": "backends.postgresql.connection.connection",
            "PostgreSQLStore": "backends.postgresql.store",
            "ProviderManager": "memory.providers.manager",
            "ReadOnlyStore": "store.wrappers.read_only",
            "RedisBackend": "backends.redis.backend",
            "RedisCheckpointer": "backends.redis.checkpoints",
            "RedisConnection": "backends.redis.connection.connection",
            "RedisDeltaStorage": "backends.redis.checkpoints",
            "RedisStore": "backends.redis.store",
            "RetryingStore": "store.wrappers.retrying",
            "SQLiteBackend": "backends.sqlite.backend",
            "SQLiteCheckpointer": "backends.sqlite.checkpoints",
            "SQLiteDatabase": "backends.sqlite.connection.connection",
            "SQLiteDeltaStorage": "backends.sqlite.checkpoints",
            "SQLiteStore": "backends.sqlite.store",
            "Saved": "agent.events",
            "SearchOptions": "retrieval.options",
            "SemanticSearchResult": "store.item",
            "StateTypeError": "errors",
            "StorageStats": "checkpoint.base",
            "StoreCapabilityError": "errors",
            "StoreWrapper": "store.wrappers.base",
            "StreamingModel": "chat.base",
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
            "UnknownOptionError": "errors",
            "UnknownProviderError": "errors",
            "UnsetVariableError": "errors",
            "UnsupportedMemoryOp": "errors",
            "ValueNotSerializableError": "errors",
            "VerbMetrics": "store.wrappers.metrics",
            "VersionConflictError": "errors",
            "as_checkpointer": "registry",
            "as_store": "registry",
            "count_tokens": "conversation.tokens",
            "estimate_tokens": "conversation.tokens",
            "get_conversation_manager": "conversation.registry",
            "get_documents": "documents.registry",
            "get_memory_manager": "memory.providers.registry",
            "get_model": "chat.registry",
            "index_turns": "retrieval.turns",
            "list_checkpointers": "registry",
            "list_conversation_managers": "conversation.registry",
            "list_memory_providers": "memory.providers.registry",
            "list_models": "chat.registry",
            "list_stores": "registry",
            "preferred": "probing",
            "register_conversation_manager": "conversation.registry",
            "register_memory_api": "memory.providers.registry",
            "register_memory_provider": "memory.providers.registry",
            "register_model": "chat.registry",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AgentState",
    "BaseCheckpointer",
    "BaseMemoryManager",
    "BaseStore",
    "ChatModel",
    "CheckpointInfo",
    "ConversationManager",
    "DeltaCheckpointer",
    "Embedder",
    "HybridSearch",
    "LLMExtractor",
    "LLMMemoryManager",
    "LocusMemoryError",
    "Memory",
    "MemoryTree",
    "MemoryType",
    "Message",
    "NamespacedStore",
    "NotesManager",
    "OpenAIChat",
    "Put",
    "Role",
    "ScriptedModel",
    "SlidingWindowManager",
    "StoreCapabilities",
    "StoreContext",
    "StoreItem",
    "SummarizingManager",
    "__version__",
    "blocking",
    "forget",
    "get_checkpointer",
    "get_embedder",
    "get_store",
    "open_backend",
    "register_checkpointer",
    "register_store",
    "subscribe",
    "tool",
]
