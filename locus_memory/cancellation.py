"""Telling who is cancelled: the task at hand, or only something that it waited for."""

from __future__ import annotations

import asyncio

__all__ = ["raise_if_cancelled"]


def raise_if_cancelled(error: BaseException) -> None:
    """Raise the error again if it is the cancellation of the current task.

    A `CancelledError` that nobody asked for comes from a task that the failed code had
    cancelled itself, and is an error as any other.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
