"""Batches that are asked for in one turn of the event loop, run as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from langgraph.store.base import Op, PutOp, Result

from locus_memory.errors import BackendUnavailableError

__all__ = ["Bursts"]

_MOST: Final = 10_000
"""How many batches are run as one."""


class _Batch(NamedTuple):
    ops: Sequence[Op]
    results: asyncio.Future[list[Result]]


class Bursts:
    """Joins the batches of one turn of an event loop, so that a burst takes few transactions.

    The batches of a burst run some at a time, in their order. A batch with a read that fails has
    its error, and writes nothing. If the writes of the others fail, each half of them is written
    again, until the batch that fails has its own error; where the database does not answer, all
    have this error.

    Args:
        read: Returns the result of each operation, or its error; that of a put is `None`.
        write: Writes the puts among operations.
    """

    def __init__(
        self,
        read: Callable[[Sequence[Op]], Awaitable[list[Result | Exception]]],
        write: Callable[[Sequence[Op]], Awaitable[None]],
    ) -> None:
        self._read, self._write = read, write
        self._waiting: dict[asyncio.AbstractEventLoop, list[_Batch]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def joined(self, ops: Sequence[Op]) -> asyncio.Future[list[Result]]:
        """Return a future of the results of a batch, or of its error."""
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        batch = _Batch(ops, loop.create_future())
        waiting.append(batch)
        if len(waiting) == 1:
            task = loop.create_task(self._burst(loop))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, loop, waiting))
        return batch.results

    async def _burst(self, loop: asyncio.AbstractEventLoop) -> None:
        batches = self._waiting.pop(loop)
        for start in range(0, len(batches), _MOST):
            some = batches[start : start + _MOST]
            await self._run([each for each in some if not each.results.done()])

    def _ended(
        self, loop: asyncio.AbstractEventLoop, batches: Sequence[_Batch], task: asyncio.Task[None]
    ) -> None:
        self._tasks.discard(task)
        if self._waiting.get(loop) is batches:
            # It was cancelled before it began: the next call begins another one.
            del self._waiting[loop]
        for each in batches:
            each.results.cancel()

    async def _run(self, batches: Sequence[_Batch]) -> None:
        try:
            answers = iter(await self._read([op for each in batches for op in each.ops]))
        except Exception as error:  # noqa: BLE001 - it is raised by each of the calls
            _fail(batches, error)
            return
        writing: list[tuple[_Batch, list[Any]]] = []
        for each in batches:
            own: list[Any] = list(islice(answers, len(each.ops)))
            failed = next((answer for answer in own if isinstance(answer, Exception)), None)
            if failed is not None:
                _fail([each], failed)
            elif any(isinstance(op, PutOp) for op in each.ops):
                writing.append((each, own))
            elif not each.results.done():
                each.results.set_result(own)
        if writing:
            await self._finish(writing)

    async def _finish(self, answered: Sequence[tuple[_Batch, list[Any]]]) -> None:
        batches = [batch for batch, _ in answered]
        try:
            await self._write([op for each in batches for op in each.ops])
        except Exception as error:  # noqa: BLE001 - it is raised by the batch that has it
            # Where no database answers, each would wait for it as long, one after another.
            if len(batches) > 1 and not isinstance(error, BackendUnavailableError):
                # The others are found in few more writes.
                middle = len(batches) // 2
                await self._finish(answered[:middle])
                await self._finish(answered[middle:])
            _fail(batches, error)
        for batch, results in answered:
            if not batch.results.done():
                batch.results.set_result(results)


def _fail(batches: Sequence[_Batch], error: Exception) -> None:
    for each in batches:
        if not each.results.done():
            each.results.set_exception(error)
