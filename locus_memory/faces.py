"""The types of blocking faces: the methods of their targets, without `await`.

At run time a face has no methods of its own and calls those of its target: see
`locus_memory.sync`. The types are derived from the asynchronous methods, so they cannot differ
from them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from locus_memory._internal.bridge import Blocking

if TYPE_CHECKING:
    from locus_memory.agent.loop import Agent
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer, CheckpointerCapabilities
    from locus_memory.documents.index import DocumentIndex
    from locus_memory.memory.base import BaseMemoryManager
    from locus_memory.memory.manager import LLMMemoryManager
    from locus_memory.resources.backends.handle import MemoryStoreHandle
    from locus_memory.resources.tree import MemoryTree
    from locus_memory.resources.verbs import MemoryVerbs
    from locus_memory.store.base import BaseStore
    from locus_memory.store.item import Namespace, StoreCapabilities

__all__ = [
    "BlockingAgent",
    "BlockingBackend",
    "BlockingCheckpointer",
    "BlockingDocumentIndex",
    "BlockingMemoryManager",
    "BlockingMemoryStore",
    "BlockingMemoryTree",
    "BlockingStore",
]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

if TYPE_CHECKING:

    class _Blocks(Generic[_Arguments, _Result]):
        """The blocking form of an asynchronous method."""

        def __init__(
            self,
            method: Callable[Concatenate[Any, _Arguments], Coroutine[Any, Any, _Result]],
        ) -> None: ...

        def __get__(
            self, face: object, kind: type | None = None
        ) -> Callable[_Arguments, _Result]: ...

    class _Yields(Generic[_Arguments, _Result]):
        """The blocking form of an asynchronous generator."""

        def __init__(
            self, method: Callable[Concatenate[Any, _Arguments], AsyncIterator[_Result]]
        ) -> None: ...

        def __get__(
            self, face: object, kind: type | None = None
        ) -> Callable[_Arguments, Iterator[_Result]]: ...


class BlockingStore(Blocking, of="locus_memory.store.base.BaseStore"):
    """A blocking face of a store."""

    if TYPE_CHECKING:
        capabilities: StoreCapabilities
        put = _Blocks(BaseStore.put)
        get = _Blocks(BaseStore.get)
        get_item = _Blocks(BaseStore.get_item)
        exists = _Blocks(BaseStore.exists)
        delete = _Blocks(BaseStore.delete)
        scan = _Blocks(BaseStore.scan)
        list_keys = _Blocks(BaseStore.list_keys)
        list_namespaces = _Blocks(BaseStore.list_namespaces)
        clear_namespace = _Blocks(BaseStore.clear_namespace)
        compact = _Blocks(BaseStore.compact)
        put_batch = _Blocks(BaseStore.put_batch)
        get_batch = _Blocks(BaseStore.get_batch)
        delete_batch = _Blocks(BaseStore.delete_batch)
        write_batch = _Blocks(BaseStore.write_batch)
        restore = _Blocks(BaseStore.restore)
        search = _Blocks(BaseStore.search)
        put_with_embedding = _Blocks(BaseStore.put_with_embedding)
        get_embedding = _Blocks(BaseStore.get_embedding)
        search_by_embedding = _Blocks(BaseStore.search_by_embedding)
        open = _Blocks(BaseStore.open)
        close = _Blocks(BaseStore.close)


class BlockingCheckpointer(Blocking, of="locus_memory.checkpoint.base.BaseCheckpointer"):
    """A blocking face of a checkpointer."""

    if TYPE_CHECKING:
        capabilities: CheckpointerCapabilities
        save = _Blocks(BaseCheckpointer.save)
        load = _Blocks(BaseCheckpointer.load)
        list_checkpoints = _Blocks(BaseCheckpointer.list_checkpoints)
        list_with_metadata = _Blocks(BaseCheckpointer.list_with_metadata)
        get_metadata = _Blocks(BaseCheckpointer.get_metadata)
        delete = _Blocks(BaseCheckpointer.delete)
        exists = _Blocks(BaseCheckpointer.exists)
        list_threads = _Blocks(BaseCheckpointer.list_threads)
        query_by_metadata = _Blocks(BaseCheckpointer.query_by_metadata)
        copy_thread = _Blocks(BaseCheckpointer.copy_thread)
        fork = _Blocks(BaseCheckpointer.fork)
        restore = _Blocks(BaseCheckpointer.restore)
        prune = _Blocks(BaseCheckpointer.prune)
        vacuum = _Blocks(BaseCheckpointer.vacuum)
        get_storage_stats = _Blocks(BaseCheckpointer.get_storage_stats)
        open = _Blocks(BaseCheckpointer.open)
        close = _Blocks(BaseCheckpointer.close)


class BlockingBackend(Blocking, of="locus_memory.backends.base.Backend"):
    """A blocking face of a backend; its two parts are faces as well."""

    if TYPE_CHECKING:
        provider: str
        store: BlockingStore
        checkpointer: BlockingCheckpointer
        problems = _Blocks(Backend.problems)
        advice = _Blocks(Backend.advice)
        outdated = _Blocks(Backend.outdated)
        compact = _Blocks(Backend.compact)
        remains = _Blocks(Backend.remains)
        open = _Blocks(Backend.open)
        close = _Blocks(Backend.close)


class BlockingMemoryManager(Blocking, of="locus_memory.memory.base.BaseMemoryManager"):
    """A blocking face of a memory manager; your own manager need not have all methods."""

    if TYPE_CHECKING:
        pending: int
        namespace: Namespace
        extract = _Blocks(BaseMemoryManager.extract)
        retrieve = _Blocks(LLMMemoryManager.retrieve)
        save = _Blocks(LLMMemoryManager.save)
        on_session_start = _Blocks(BaseMemoryManager.on_session_start)
        on_session_end = _Blocks(BaseMemoryManager.on_session_end)
        prefetch = _Blocks(BaseMemoryManager.prefetch)
        queue_prefetch = _Blocks(BaseMemoryManager.queue_prefetch)
        on_turn_complete = _Blocks(BaseMemoryManager.on_turn_complete)
        on_pre_compact = _Blocks(BaseMemoryManager.on_pre_compact)
        on_memory_write = _Blocks(BaseMemoryManager.on_memory_write)
        shutdown = _Blocks(BaseMemoryManager.shutdown)
        for_run = _Blocks(BaseMemoryManager.for_run)
        search = _Blocks(LLMMemoryManager.search)
        remember = _Blocks(LLMMemoryManager.remember)
        reflect = _Blocks(BaseMemoryManager.reflect)
        drain = _Blocks(BaseMemoryManager.drain)
        sync_now = _Blocks(LLMMemoryManager.sync_now)
        add = _Blocks(LLMMemoryManager.add)
        ingest = _Blocks(LLMMemoryManager.ingest)
        condense_notes = _Blocks(LLMMemoryManager.condense_notes)
        notes_of = _Blocks(LLMMemoryManager.notes_of)
        history = _Blocks(LLMMemoryManager.history)
        saw = _Blocks(LLMMemoryManager.saw)
        undo = _Blocks(LLMMemoryManager.undo)
        forget = _Blocks(LLMMemoryManager.forget)
        memories = _Yields(LLMMemoryManager.memories)
        get = _Blocks(LLMMemoryManager.get)
        update = _Blocks(LLMMemoryManager.update)
        delete = _Blocks(LLMMemoryManager.delete)
        trust = _Blocks(LLMMemoryManager.trust)
        vitals = _Blocks(LLMMemoryManager.vitals)
        feedback = _Blocks(LLMMemoryManager.feedback)
        import_facts = _Blocks(LLMMemoryManager.import_facts)
        import_history = _Blocks(LLMMemoryManager.import_history)
        export_facts = _Yields(LLMMemoryManager.export_facts)
        search_memories = _Blocks(LLMMemoryManager.search_memories)
        search_episodes = _Blocks(LLMMemoryManager.search_episodes)
        search_transcript = _Blocks(LLMMemoryManager.search_transcript)
        episodes = _Blocks(LLMMemoryManager.episodes)
        consolidate = _Blocks(LLMMemoryManager.consolidate)
        consolidate_facts = _Blocks(LLMMemoryManager.consolidate_facts)
        plan = _Blocks(LLMMemoryManager.plan)
        open = _Blocks(BaseMemoryManager.open)
        close = _Blocks(BaseMemoryManager.close)

        def for_user(self, user_id: str) -> BlockingMemoryManager:
            """Return a blocking face of the view of one user."""
            ...

        def scoped(self, namespace: Namespace) -> BlockingMemoryManager:
            """Return a blocking face of the view of a namespace."""
            ...


class BlockingAgent(Blocking, of="locus_memory.agent.loop.Agent"):
    """A blocking face of an agent."""

    if TYPE_CHECKING:
        run = _Blocks(Agent.run)
        resume = _Blocks(Agent.resume)
        stream = _Yields(Agent.stream)
        state = _Blocks(Agent.state)
        history = _Blocks(Agent.history)
        fork = _Blocks(Agent.fork)
        remember_memory = _Blocks(Agent.remember_memory)
        recall_memory = _Blocks(Agent.recall_memory)
        commit_memory = _Blocks(Agent.commit_memory)
        open = _Blocks(Agent.open)
        close = _Blocks(Agent.close)


class BlockingDocumentIndex(Blocking, of="locus_memory.documents.index.DocumentIndex"):
    """A blocking face of an index of documents."""

    if TYPE_CHECKING:
        store = _Blocks(DocumentIndex.store)
        add = _Blocks(DocumentIndex.add)
        add_path = _Blocks(DocumentIndex.add_path)
        retrieve = _Blocks(DocumentIndex.retrieve)
        delete = _Blocks(DocumentIndex.delete)
        delete_source = _Blocks(DocumentIndex.delete_source)
        clear = _Blocks(DocumentIndex.clear)
        sources = _Blocks(DocumentIndex.sources)
        reembed = _Blocks(DocumentIndex.reembed)
        embedding_model = _Blocks(DocumentIndex.embedding_model)
        open = _Blocks(DocumentIndex.open)
        close = _Blocks(DocumentIndex.close)


class _BlockingVerbs:
    """The verbs of a tree and of a handle."""

    if TYPE_CHECKING:
        dispatch = _Blocks(MemoryVerbs.dispatch)
        write = _Blocks(MemoryVerbs.write)
        read = _Blocks(MemoryVerbs.read)
        list = _Blocks(MemoryVerbs.list)
        tree = _Blocks(MemoryVerbs.tree)
        find = _Blocks(MemoryVerbs.find)
        search = _Blocks(MemoryVerbs.search)
        add_resource = _Blocks(MemoryVerbs.add_resource)
        commit = _Blocks(MemoryVerbs.commit)
        delete = _Blocks(MemoryVerbs.delete)
        move = _Blocks(MemoryVerbs.move)
        history = _Blocks(MemoryVerbs.history)


class BlockingMemoryTree(_BlockingVerbs, Blocking, of="locus_memory.resources.tree.MemoryTree"):
    """A blocking face of a tree of resources."""

    if TYPE_CHECKING:
        user_id: str | None
        drain = _Blocks(MemoryTree.drain)
        open = _Blocks(MemoryTree.open)
        close = _Blocks(MemoryTree.close)

        def for_user(self, user_id: str) -> BlockingMemoryTree:
            """Return a blocking face of the tree of one user."""
            ...


class BlockingMemoryStore(
    _BlockingVerbs, Blocking, of="locus_memory.resources.backends.handle.MemoryStoreHandle"
):
    """A blocking face of a handle; `with` acquires and releases it."""

    if TYPE_CHECKING:
        refcount: int
        is_closed: bool
        name: str
        release = _Blocks(MemoryStoreHandle.release)

        def acquire(self) -> BlockingMemoryStore:
            """Count one more user, and return this face."""
            ...
