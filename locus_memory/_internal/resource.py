"""What is opened and closed, by hand or by `async with`."""

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
    """Warn when `owner` is collected, or the interpreter ends, and it is still open.

    A process that was forked from this one has nothing to close.

    Args:
        owner: What is to be closed; detach what is returned when that is done.
        description: Says what it is, without a password.
        is_open: Whether it still holds something; must not refer to `owner`.
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
    """Something that opens on first use, or when told to, and that whoever made it closes."""

    async def open(self) -> None:
        """Connect and set up now, rather than on first use."""

    async def close(self) -> None:
        """Release what was opened here; calling it again is harmless."""

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BackendUnavailableError:
            # The same object may be tried again.
            raise
        except BaseException:
            # Nobody else closes what failed to open, and it may be connected already.
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
