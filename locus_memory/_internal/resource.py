"""Resources: objects that are opened and closed, by call or by `async with`."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from locus_memory.errors import BackendUnavailableError
from locus_memory.events import emit

__all__ = ["Resource", "warn_unless_closed"]


def warn_unless_closed(
    owner: object, description: str, is_open: Callable[[], bool]
) -> weakref.finalize[..., Any]:
    """Warn when `owner` is garbage-collected, or the interpreter ends, and it is still open.

    A forked process has nothing to close.

    Args:
        owner: The object to close; detach the returned finalizer after closing it.
        description: Describes the object, without a password.
        is_open: Returns whether it is still open; must not refer to `owner`.
    """
    return weakref.finalize(owner, _warn, description, is_open, os.getpid())


def _warn(description: str, is_open: Callable[[], bool], process: int) -> None:
    if process != os.getpid() or not is_open():
        return
    emit("resource.unclosed", resource=description)
    warnings.warn(
        f"{description} was never closed, and calls that were not answered may be lost: use it as "
        "'async with', or await close() of the store, checkpointer or backend",
        ResourceWarning,
        stacklevel=2,
    )


class Resource:
    """An object that opens on first use or on request; its creator closes it."""

    async def open(self) -> None:
        """Connect and set up now, rather than on first use."""

    async def close(self) -> None:
        """Release the resources that were opened here; calling it again is harmless."""

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BackendUnavailableError:
            # The same object may be opened again.
            raise
        except BaseException:
            # No other code closes an object that failed to open, and it may be connected already.
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
