"""The stable blocks and kept notes of threads, and the records of runs: they show what is known."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore

__all__ = ["drop_blocks", "without_blocks"]


@asynccontextmanager
async def without_blocks(
    store: BaseStore, scope: Scope, *, erases: bool = False
) -> AsyncGenerator[None]:
    """Drop the stable blocks of a scope before and after a change, so that no run shows the past.

    Before it, since a process may be killed right after the change; after it, since a run may have
    built its block meanwhile.

    Args:
        store: The store.
        scope: The scope.
        erases: Whether the change erases a text for good: the notes in place of messages and the
            records of runs, which may hold it, are dropped as well.

    Raises:
        BackendError: The store failed.
    """
    await drop_blocks(store, scope, erases=erases)
    try:
        yield
    finally:
        await drop_blocks(store, scope, erases=erases)


async def drop_blocks(store: BaseStore, scope: Scope, *, erases: bool) -> None:
    """Drop the stable blocks of a scope; if `erases`, also what else may hold an erased text.

    That is the notes in place of messages, and then the records of runs.

    A run records what it saw only as long as its block is there, so none is recorded later.

    Raises:
        BackendError: The store failed.
    """
    for space in (scope.blocks, scope.kept_notes, scope.runs)[: 3 if erases else 1]:
        await store.clear_namespace(space)
