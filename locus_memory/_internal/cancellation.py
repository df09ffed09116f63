"""Telling who is cancelled, and waiting for what has begun although one is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["finished", "is_being_cancelled", "kept", "raise_if_cancelled"]

T = TypeVar("T")

_unfinished: set[asyncio.Task[Any]] = set()
"""What still runs, for a loop holds its tasks weakly."""


def kept(work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> asyncio.Task[T]:
    """Return the task of some work, which is not forgotten before it is over."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    return task


async def finished(work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
    """Return what `work` returns; a caller that is cancelled waits until it is over.

    A caller that is cancelled a second time waits no longer, and the work goes on without it.

    Raises:
        CancelledError: The caller was cancelled, and the work is done or has failed.
    """
    task = kept(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise


def is_being_cancelled() -> bool:
    """Whether somebody cancels the running task; if not, a `CancelledError` is but an error."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def raise_if_cancelled(error: BaseException) -> None:
    """Raise the error again if it is the cancellation of the current task.

    A `CancelledError` that nobody asked for comes from a task that the failed code had
    cancelled itself, and is an error as any other.
    """
    if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
        raise error
