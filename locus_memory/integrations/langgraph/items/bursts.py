"""Batches that are asked for in one turn of the event loop, run as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from locus_memory.errors import BackendUnavailableError

__all__ = ["Bursts"]

_MOST: Final = 10_000
"""The most operations of joined batches; a larger batch runs alone."""

_Op = TypeVar("_Op")
_Result = TypeVar("_Result")


class _Batch(NamedTuple, Generic[_Op, _Result]):
    ops: Sequence[_Op]
    results: asyncio.Future[list[_Result]]


class Bursts(Generic[_Op, _Result]):
    """Joins the batches of one turn of an event loop, so that a burst takes few transactions.

    The batches of a burst run some at a time, in their order. If the joined ones fail, each half of
    them runs again, until the one that fails has its own error; where the database does not answer,
    all have this error.

    Args:
        run: Runs a batch of operations, and returns their results.
    """

    def __init__(self, run: Callable[[Sequence[_Op]], Awaitable[list[_Result]]]) -> None:
        self._run = run
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Batch[_Op, _Result]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def join(self, ops: Sequence[_Op]) -> list[_Result]:
        """Return the results of a batch.

        Raises:
            Exception: The error of this batch.
        """
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        batch = _Batch[_Op, _Result](ops, loop.create_future())
        waiting.append(batch)
        if len(waiting) == 1:
            task = loop.create_task(self._burst(loop))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await batch.results

    async def _burst(self, loop: asyncio.AbstractEventLoop) -> None:
        batches = self._waiting.pop(loop)
        try:
            while joined := _first(batches):
                await self._joined(joined)
                del batches[: len(joined)]
        finally:
            for each in batches:
                each.results.cancel()

    async def _joined(self, batches: Sequence[_Batch[_Op, _Result]]) -> None:
        wanted = [each for each in batches if not each.results.cancelled()]
        try:
            results = iter(await self._run([op for each in wanted for op in each.ops]))
        except Exception as error:  # noqa: BLE001 - it is raised by the batch that has it
            # Where no database answers, each would wait for it as long, one after another.
            if len(wanted) > 1 and not isinstance(error, BackendUnavailableError):
                # The others are found in few more runs.
                middle = len(wanted) // 2
                await self._joined(wanted[:middle])
                await self._joined(wanted[middle:])
            for each in wanted:
                if not each.results.done():
                    each.results.set_exception(error)
            return
        for each in wanted:
            own = list(islice(results, len(each.ops)))
            if not each.results.done():
                each.results.set_result(own)


def _first(batches: Sequence[_Batch[_Op, _Result]]) -> Sequence[_Batch[_Op, _Result]]:
    """Return the first batches that are run as one, at least one unless there is none."""
    size = 0
    for place, each in enumerate(batches):
        size += len(each.ops)
        if place and size > _MOST:
            return batches[:place]
    return batches[:]
