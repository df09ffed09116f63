"""Closing what belongs to one event loop from another one."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Protocol

__all__ = ["OfOneLoop", "close_elsewhere"]


class OfOneLoop(Protocol):
    """Connections that belong to one event loop, and close themselves when it ends."""

    async def close(self) -> None:
        """Close them, in their loop."""

    def has_ended(self) -> bool:
        """Whether they closed themselves, as their loop ended."""
        ...

    def abandon(self) -> None:
        """Let go of them without their loop, which does not run."""


def close_elsewhere(loop: asyncio.AbstractEventLoop, held: OfOneLoop) -> Future[None]:
    """Close what belongs to the event loop of another thread; the future tells when that is done.

    `asyncio.run` ends asynchronous generators, by which connections close themselves, last of
    all. A loop that has come so far no longer gets to a new task, so none is made then, nor a
    coroutine that nobody would await.
    """
    closed: Future[None] = Future()

    def finish(task: asyncio.Task[None] | None = None) -> None:
        # Whoever waited may have given up.
        if not closed.set_running_or_notify_cancel():
            return
        error = None if task is None or task.cancelled() else task.exception()
        if error is None:
            closed.set_result(None)
        else:
            closed.set_exception(error)

    def start() -> None:
        if held.has_ended():
            finish()
        else:
            loop.create_task(held.close()).add_done_callback(finish)

    try:
        is_running = loop.is_running()
        if is_running:
            loop.call_soon_threadsafe(start)
    except RuntimeError:
        # It was closed meanwhile.
        is_running = False
    if not is_running:
        held.abandon()
        finish()
    return closed
