"""Blocking faces of asynchronous objects, for synchronous programs and frameworks.

There is one implementation of everything, and it is async. A `Bridge` runs an event loop in its
own thread, and any other thread can wait for the calls that run there. `blocking(x)` looks like
`x`, but each of its methods returns when it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from locus_memory._internal.bridge import Blocking, Bridge, face, shared_bridge
from locus_memory.faces import (
    BlockingAgent,
    BlockingBackend,
    BlockingCheckpointer,
    BlockingDocumentIndex,
    BlockingMemoryManager,
    BlockingMemoryStore,
    BlockingMemoryTree,
    BlockingStore,
)
from locus_memory.registry import get_store

if TYPE_CHECKING:
    from locus_memory.agent.loop import Agent
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.documents.index import DocumentIndex
    from locus_memory.memory.base import BaseMemoryManager
    from locus_memory.resources.backends.handle import MemoryStoreHandle
    from locus_memory.resources.tree import MemoryTree
    from locus_memory.store.base import BaseStore

__all__ = ["Blocking", "Bridge", "blocking"]


@overload
def blocking(target: str | BaseStore, *, bridge: Bridge | None = None) -> BlockingStore: ...
@overload
def blocking(target: BaseCheckpointer, *, bridge: Bridge | None = None) -> BlockingCheckpointer: ...
@overload
def blocking(target: Backend, *, bridge: Bridge | None = None) -> BlockingBackend: ...
@overload
def blocking(
    target: BaseMemoryManager, *, bridge: Bridge | None = None
) -> BlockingMemoryManager: ...
@overload
def blocking(target: DocumentIndex, *, bridge: Bridge | None = None) -> BlockingDocumentIndex: ...
@overload
def blocking(target: MemoryTree, *, bridge: Bridge | None = None) -> BlockingMemoryTree: ...
@overload
def blocking(target: MemoryStoreHandle, *, bridge: Bridge | None = None) -> BlockingMemoryStore: ...
@overload
def blocking(target: Agent, *, bridge: Bridge | None = None) -> BlockingAgent: ...
@overload
def blocking(target: object, *, bridge: Bridge | None = None) -> Any: ...
def blocking(target: object, *, bridge: Bridge | None = None) -> Any:
    """Return a blocking face of a store, a checkpointer, a manager, an agent or a backend.

    It has the target's public attributes and methods, with the same arguments. If a method
    returns an asynchronous object, the face returns a blocking face of it. Any number of threads
    may use it at once. `with` opens and closes the target as `async with` does.

    Args:
        target: Any object with asynchronous methods, or a provider string, which gives a store.
        bridge: Runs the calls. By default all faces share the bridge of this process, so that
            objects of one event loop, such as a pool of connections, are shared as well.

    Returns:
        A `Blocking`: its methods are those of the target, without `await`. A type checker knows
        the methods of a store, a checkpointer, a backend, a memory manager, an agent, an index of
        documents, a tree of resources and a handle of one; the face of any other object is typed
        `Any`.

    Raises:
        BlockingCallError: Raised by a method call, see `Bridge.run`.
    """
    if isinstance(target, str):
        target = get_store(target)
    return face(target, bridge or shared_bridge())
