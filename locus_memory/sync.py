"""A blocking face for what is async here, for programs and frameworks that are synchronous.

There is one implementation of everything, and it is async. A `Bridge` runs an event loop in a
thread of its own, so that any other thread can wait for what happens there; `blocking(x)` looks
like `x`, but that each of its methods returns when it is done.
"""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING, Any, overload

from locus_memory._internal.bridge import Blocking, Bridge, face
from locus_memory.faces import (
    BlockingAgent,
    BlockingBackend,
    BlockingCheckpointer,
    BlockingMemoryManager,
    BlockingStore,
)
from locus_memory.registry import get_store

if TYPE_CHECKING:
    from locus_memory.agent.loop import Agent
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.memory.base import BaseMemoryManager
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
def blocking(target: Agent, *, bridge: Bridge | None = None) -> BlockingAgent: ...
@overload
def blocking(target: object, *, bridge: Bridge | None = None) -> Any: ...
def blocking(target: object, *, bridge: Bridge | None = None) -> Any:
    """Return a blocking face of a store, a checkpointer, a manager, an agent or a backend.

    It has the target's public attributes and methods, with the same arguments. What a method
    returns is itself blocking where it would be asynchronous. It may be used from any number of
    threads at once. `with` opens and closes the target as `async with` does.

    Args:
        target: Any object with asynchronous methods, or a provider string: the store it makes.
        bridge: Where its calls run. By default all share the bridge of this process, so that
            what belongs to one event loop, such as a pool of connections, is shared as well.

    Returns:
        A `Blocking`: its methods are those of the target, without `await`. A type checker knows
        those of a store, a checkpointer, a backend, a memory manager and an agent; the face of
        anything else is typed `Any`.

    Raises:
        BlockingCallError: By a call of a method, see `Bridge.run`.
    """
    if isinstance(target, str):
        target = get_store(target)
    return face(target, bridge or _shared_bridge())


@cache
def _shared_bridge() -> Bridge:
    bridge = Bridge()
    atexit.register(bridge.close)
    return bridge
