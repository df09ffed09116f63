"""Telling who is cancelled: the task at hand, or only something that it waited for."""

from __future__ import annotations

import asyncio

__all__ = ["is_being_cancelled", "raise_if_cancelled"]


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
