"""Calling what a user hands in, sync or async, without holding up the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["call", "in_thread"]

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
