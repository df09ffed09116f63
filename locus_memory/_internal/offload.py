"""Running code in worker threads, so that it does not hold up the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, ParamSpec, TypeVar

from locus_memory._internal.cancellation import kept

__all__ = ["Undertaking", "call", "in_thread"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


async def call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return what a function or a callable object returns; a sync one runs in a worker thread.

    Raises:
        Exception: As `in_thread`.
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
    """Return what the function returns in a worker thread, with the caller's context variables.

    Raises:
        RuntimeError: The function raised `StopIteration`, which is its cause: no future can
            carry it, and who waits for one would wait for ever. All else is raised as it is.
    """

    def carried() -> _Result:
        try:
            return function(*args, **kwargs)
        except StopIteration as stop:
            raise RuntimeError("the function raised StopIteration") from stop

    return await asyncio.to_thread(carried)


class Undertaking(Generic[_Result]):
    """Work in a thread, which a cancelled caller drops before it has begun and else waits for.

    So what is cancelled never surprises whoever comes next. A read does no harm to anybody, and
    its caller does not wait.

    Attributes:
        over: Done once nothing of it happens any more.
        is_read: Whether it changes nothing.

    Args:
        work: Is given what it calls before it changes anything; that raises if the caller left.
        is_read: Whether it changes nothing.
    """

    def __init__(
        self, work: Callable[[Callable[[], None]], _Result], *, is_read: bool = False
    ) -> None:
        self.over: Future[None] = Future()
        self._work = work
        self.is_read = is_read
        # Taking the one element is atomic.
        self._unclaimed = [True]

    async def result(self) -> _Result:
        """Do the work and return its result; to be called once.

        Raises:
            CancelledError: The caller was cancelled, and the work is over, unless it only reads or
                the caller was cancelled twice.
        """
        task = kept(in_thread(self._run))
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
        """Return whether nobody claimed it before: the thread to begin, or its caller to not."""
        try:
            self._unclaimed.pop()
        except IndexError:
            return False
        return True

    def _end(self) -> None:
        with suppress(InvalidStateError):
            self.over.set_result(None)
