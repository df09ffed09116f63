"""Cancellation: which task is cancelled, and how to wait for work that has begun."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["finished", "is_being_cancelled", "kept", "raise_if_cancelled"]

T = TypeVar("T")

_unfinished: set[asyncio.Task[Any]] = set()
"""The running tasks; an event loop holds its tasks only weakly."""


def kept(work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> asyncio.Task[T]:
    """Return a task of the work, with a reference until it is done."""
    task = asyncio.ensure_future(work)
    _unfinished.add(task)
    task.add_done_callback(_unfinished.discard)
    return task


async def finished(work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
    """Return the result of `work`; a cancelled caller waits until it is done.

    A caller that is cancelled a second time stops waiting, and the work continues without it.

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
    """Whether the running task is cancelled; otherwise a `CancelledError` is an ordinary error."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def raise_if_cancelled(error: BaseException) -> None:
    """Raise the error again if it is the cancellation of the current task.

    Otherwise a `CancelledError` comes from a task that the failed code cancelled itself, and is an
    ordinary error.
    """
    if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
        raise error
