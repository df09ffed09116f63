"""Work in the background of an event loop, for which its owner waits before it closes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from locus_memory.events import uncollected

__all__ = ["BackgroundTasks"]

_Result = TypeVar("_Result")


class BackgroundTasks:
    """Tasks that nobody awaits; those of an event loop that ended never continue."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Start some work in a task, whose events no caller collects."""
        task = asyncio.get_running_loop().create_task(work, context=uncollected())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def pending(self) -> int:
        """The number of tasks that are not done."""
        return sum(not (task.done() or task.get_loop().is_closed()) for task in [*self._tasks])

    async def wait(self, seconds: float | None = None) -> None:
        """Wait for the tasks of this event loop, also those that they start.

        Args:
            seconds: For how long; `None`: any time.

        Raises:
            TimeoutError: It takes longer.
        """
        async with asyncio.timeout(seconds):
            while mine := self._mine():
                await asyncio.wait(mine)

    def cancel(self) -> list[asyncio.Task[Any]]:
        """Cancel the tasks of this event loop, and return them."""
        mine = self._mine()
        for task in mine:
            task.cancel()
        return mine

    def _mine(self) -> list[asyncio.Task[Any]]:
        loop = asyncio.get_running_loop()
        # A copy: other threads may add theirs meanwhile.
        tasks = [*self._tasks]
        return [task for task in tasks if task.get_loop() is loop and not task.done()]
