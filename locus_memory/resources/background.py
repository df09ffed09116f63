"""Work in the background: what a process leaves undone waits in the store for the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from locus_memory._internal.running.background import BackgroundTasks
from locus_memory.backends.loops import LoopLocal
from locus_memory.events import emit
from locus_memory.resources.levels.making import LevelMaker
from locus_memory.resources.storing.places import Path
from locus_memory.store.base import scan_all

__all__ = ["Background", "Refiner"]

_AT_ONCE: Final = 4
_PAGE: Final = 100
_DRAIN_SECONDS: Final = 30.0


class Background(BackgroundTasks):
    """The tasks of all views of one tree, at most four at once in each event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: LoopLocal[asyncio.Semaphore] = LoopLocal()

    def run(self, work: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
        """Run a function in a task, once there is a slot."""
        return self.start(self._slotted(work))

    async def _slotted(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async with self._slots.get(lambda: asyncio.Semaphore(_AT_ONCE)):
            return await work()

    async def close(self) -> None:
        """Wait for at most 30 seconds, then cancel; what is cancelled waits in the store."""
        try:
            await self.wait(_DRAIN_SECONDS)
        except TimeoutError as error:
            emit("resources.drain_timeout", error=error, pending=self.pending)
            await asyncio.gather(*self.cancel(), return_exceptions=True)


class Refiner:
    """Makes the levels and vectors of entries after they are written.

    Args:
        maker: Makes them.
        background: The tasks.
    """

    def __init__(self, maker: LevelMaker, background: Background) -> None:
        self._maker = maker
        self._background = background
        self._started: asyncio.AbstractEventLoop | None = None

    @property
    def is_needed(self) -> bool:
        """Whether entries have anything that is made later."""
        return self._maker.plans.has_tasks

    def add(self, path: Path) -> asyncio.Task[Any] | None:
        """Complete an entry in the background."""
        return self._background.run(partial(self._tried, path)) if self.is_needed else None

    async def start(self) -> None:
        """Take up what an earlier process left; once in each event loop."""
        loop = asyncio.get_running_loop()
        if self.is_needed and self._started is not loop:
            self._started = loop
            await self._take_up()

    async def drain(self) -> int:
        """Complete all entries that wait; returns how many still do, because it failed."""
        if not self.is_needed:
            return 0
        await self._background.wait()
        await self._take_up()
        await self._background.wait()
        return len(await self._waiting())

    async def _take_up(self) -> None:
        for path in await self._waiting():
            self.add(path)

    async def _waiting(self) -> list[Path]:
        plans = self._maker.plans
        tasks = scan_all(plans.store, plans.places.tasks)
        return [tuple(item.value["path"]) async for item in tasks]

    async def _tried(self, path: Path) -> None:
        try:
            await self._maker.complete(path)
        except Exception as error:  # noqa: BLE001 - reported; its task stays in the store
            emit("resources.refine_failed", error=error)
