"""Running a function in a worker thread, whatever it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["in_thread"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


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

    def call() -> _Result:
        try:
            return function(*args, **kwargs)
        except StopIteration as stop:
            raise RuntimeError("the function raised StopIteration") from stop

    return await asyncio.to_thread(call)
