"""Resources, which are opened and closed by call or by `async with`, and wrappers of objects."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from locus_memory.errors import BackendUnavailableError
from locus_memory.events import emit

__all__ = ["Forwarding", "Resource", "forwarded", "warn_unless_closed"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


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


class Forwarding:
    """An object whose `forwarded` methods call those of its attribute `inner`."""

    async def _call(self: Any, method: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the inner object: a subclass overrides this for many at once."""
        return await getattr(self.inner, method)(*args, **kwargs)


def forwarded(method: _Method) -> _Method:
    """Return a method that calls the one of the same name of the inner object.

    Args:
        method: A coroutine function of the contract, which may be abstract.
    """

    @wraps(method)
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._call(method.__name__, *args, **kwargs)

    # `wraps` copies this attribute from an abstract method.
    vars(call).pop("__isabstractmethod__", None)
    return cast("_Method", call)
