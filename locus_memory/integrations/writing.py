"""Writes that are planned again while other writers are first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from locus_memory._internal.running.retrying import until_first
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Delete, Put

__all__ = ["written"]

_Answer = TypeVar("_Answer")


async def written(
    store: BaseStore, plan: Callable[[], Awaitable[tuple[_Answer, Sequence[Put | Delete]]]]
) -> _Answer:
    """Write what `plan` returns, and return its answer.

    Args:
        store: The store.
        plan: Reads what is there, and returns the answer and the writes, each with the version
            that it expects.

    Raises:
        VersionConflictError: Others were first all the time.
        BackendError: The store failed.
    """

    async def once() -> _Answer:
        answer, writes = await plan()
        await write_together(store, writes)
        return answer

    return await until_first(once)
