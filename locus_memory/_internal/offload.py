"""Code in worker threads, so that it does not block the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, Generic, ParamSpec, TypeVar

from locus_memory._internal.cancellation import kept

__all__ = ["Undertaking", "aside", "call", "in_thread"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_LARGE: Final = 5_000


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function or a callable object; a sync one runs in a worker thread.

    Raises:
        Exception: As for `in_thread`.
    """
    if _is_async(function):
        return await function(*args, **kwargs)
    returned = await in_thread(function, *args, **kwargs)
    return await returned if inspect.isawaitable(returned) else returned


def _is_async(function: Callable[..., Any]) -> bool:
    method = getattr(function, "__call__", None)  # noqa: B004 - it may be a coroutine function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


async def in_thread(
    function: Callable[_Arguments, _Result],
    /,
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Return the function's result from a worker thread, with the caller's context variables.

    Raises:
        RuntimeError: The function raised `StopIteration`, which is its cause: no future can hold
            it, and a caller would wait for ever. Any other error is raised unchanged.
    """
    return await _in_worker(None, partial(function, *args, **kwargs))


async def _in_worker(workers: Executor | None, work: Callable[[], _Result]) -> _Result:
    def carried() -> _Result:
        try:
            return work()
        except StopIteration as stop:
            raise RuntimeError("the function raised StopIteration") from stop

    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(workers, copy_context().run, carried)


async def aside(
    size: int,
    function: Callable[_Arguments, _Result],
    /,
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Return the result of a function that reads so many characters.

    From 5,000 on it runs in a worker thread: no text blocks the event loop for 50 ms.

    Raises:
        Exception: As for `in_thread`.
    """
    if size < _LARGE:
        return function(*args, **kwargs)
    return await in_thread(function, *args, **kwargs)


class Undertaking(Generic[_Result]):
    """Work in a thread: a cancelled caller drops it before it has begun, else waits for it.

    So cancelled work never takes effect after the call. A read has no effects, so its caller does
    not wait.

    Attributes:
        over: Done when the work has ended.
        is_read: Whether it changes nothing.

    Args:
        work: Gets a function to call before it changes anything, which raises if the caller
            was cancelled.
        is_read: Whether it changes nothing.
        workers: Its threads; `None`: those of the event loop, which look up names as well.
    """

    def __init__(
        self,
        work: Callable[[Callable[[], None]], _Result],
        *,
        is_read: bool = False,
        workers: Executor | None = None,
    ) -> None:
        self.over: Future[None] = Future()
        self._work = work
        self.is_read = is_read
        self._workers = workers
        # Removing the only element is atomic.
        self._unclaimed = [True]

    async def result(self) -> _Result:
        """Do the work and return its result; call it once.

        Raises:
            CancelledError: The caller was cancelled, and the work has ended, unless it only reads
                or the caller was cancelled twice.
        """
        task = kept(_in_worker(self._workers, self._run))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._claim():
                self._end()
            elif not self.is_read and not task.done():
                await asyncio.wait([task])
            raise

    def _run(self) -> _Result:
        try:
            return self._work(self._begin)
        finally:
            self._end()

    def _begin(self) -> None:
        if not self._claim():
            raise asyncio.CancelledError

    def _claim(self) -> bool:
        """Return whether this is the first claim: the thread's to begin or the caller's to drop."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def _end(self) -> None:
        with suppress(InvalidStateError):
            self.over.set_result(None)
