"""The stable blocks of threads, which are dropped when what a scope knows becomes less."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore

__all__ = ["without_blocks"]


@asynccontextmanager
async def without_blocks(store: BaseStore, scope: Scope) -> AsyncGenerator[None]:
    """Drop the stable blocks of a scope before and after a change, so that no run shows the past.

    Before it, since a process may be killed right after the change; after it, since a run may have
    built its block meanwhile.

    Raises:
        BackendError: The store failed.
    """
    await store.clear_namespace(scope.blocks)
    try:
        yield
    finally:
        await store.clear_namespace(scope.blocks)
