"""The call of a hook: it may be bounded in time, and is never the end of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from locus_memory._internal.cancellation import kept, raise_if_cancelled
from locus_memory.events import emit

__all__ = ["call_hook", "has_hook"]


async def call_hook(
    hook: str,
    work: Callable[[], Any],
    *,
    seconds: float | None = None,
    event: str = "agent.memory_failed",
    **facts: object,
) -> Any:
    """Return the result of a hook, or `None` if it fails or takes too long.

    A failure is reported, and so is a hook that cancels itself. A hook that runs too long is
    cancelled, and not waited for: it may ignore that.

    Args:
        hook: Its name, for the event.
        work: Calls it; it may be sync or async. A sync function cannot be interrupted.
        seconds: How long an async one may take; `None`: it is waited for, however long it takes.
        event: The name of the event of a failure.
        facts: What the event tells beside the name of the hook.

    Raises:
        CancelledError: The caller is cancelled; so is the hook.
    """
    try:
        return await _within(seconds, work)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - reported
        raise_if_cancelled(error)
        emit(event, error=error, hook=hook, **facts)
        return None


def has_hook(owner: object, hook: str, default: type | None = None) -> bool:
    """Return whether an object has a hook, other than the one that `default` defines."""
    found = getattr(owner, hook, None)
    inherited = getattr(default, hook, None)
    return callable(found) and (inherited is None or getattr(found, "__func__", None) != inherited)


async def _within(seconds: float | None, work: Callable[[], Any]) -> Any:
    returned = work()
    if not isawaitable(returned):
        return returned
    if seconds is None:
        return await returned
    # A task of its own: code that ignores its cancellation must not hold the caller.
    task = kept(asyncio.ensure_future(returned))
    # Its error is read, also if nothing waits for it any more.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
    finally:
        task.cancel()
    raise TimeoutError(f"it took more than {seconds:g} seconds")
