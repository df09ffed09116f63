"""Handles: an open store that several agents share, closed by its last release."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
import weakref
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from typing_extensions import override

from locus_memory.errors import MemoryBackendError, MemoryStoreClosed
from locus_memory.events import emit
from locus_memory.resources.operations import (
    MemoryOp,
)
from locus_memory.resources.results import (
    MemoryExecutionFailure,
    MemoryResult,
)
from locus_memory.resources.verbs import MemoryVerbs

if TYPE_CHECKING:
    from locus_memory.resources.backends.base import MemoryBackend

__all__ = ["MemoryStoreHandle"]

_SECONDS: Final = 5.0


class MemoryStoreHandle(MemoryVerbs):
    """An open store of a memory backend, with a count of those who use it.

    `acquire` adds one and returns the handle; `release` drops one, and the last one closes the
    store. There is no other way to close it. `async with handle:` acquires and releases; so does
    `with` on a blocking face. A handle that is collected while it is open closes the store, and
    warns.

    Args:
        backend: The backend, which opened it.
        resource: Whatever the backend needs to serve it.
        name: Its name, for messages.
        user_id: The user of the store, if it has one.
    """

    name: str

    def __init__(
        self, backend: MemoryBackend, resource: object, name: str, user_id: str | None = None
    ) -> None:
        self.backend = backend
        self.user_id = user_id
        self.resource = resource
        self.name = name
        self._lock = threading.Lock()
        self._holders = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        with suppress(RuntimeError):
            self._loop = asyncio.get_running_loop()
        self._finalizer = weakref.finalize(
            self, _abandoned, backend, resource, name, os.getpid(), self._loop
        )

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"refcount={self.refcount}"
        return f"{type(self).__name__}({self.name!r}, {state})"

    @property
    @override
    def backend_name(self) -> str:
        return self.backend.name

    @property
    def refcount(self) -> int:
        """How many use it."""
        return self._holders

    @property
    def is_closed(self) -> bool:
        """Whether the last one has released it."""
        return not self._finalizer.alive

    def acquire(self) -> Self:
        """Count one more user, and return this handle.

        Raises:
            MemoryStoreClosed: It is closed.
        """
        with self._lock:
            if self.is_closed:
                raise MemoryStoreClosed(self.name)
            self._holders += 1
        return self

    async def release(self) -> None:
        """Count one user less; the last one closes the store.

        Raises:
            MemoryBackendError: Nobody has acquired it.
        """
        with self._lock:
            if self._holders == 0:
                raise MemoryBackendError(
                    f"{self.name} was released more often than acquired: release it once for each"
                    " acquire"
                )
            self._holders -= 1
            if self._holders > 0:
                return
            self._finalizer.detach()
        await self.backend.close(self)

    @override
    async def dispatch(self, op: MemoryOp) -> MemoryResult | MemoryExecutionFailure:
        """Return the result of an operation, or its failure.

        Raises:
            UnsupportedMemoryOp: The backend does not take such operations.
            MemoryStoreClosed: The store is closed.
        """
        if self.is_closed:
            raise MemoryStoreClosed(self.name)
        return await self.backend.dispatch(self, op)

    def for_user(self, user_id: str) -> MemoryVerbs:
        """Return the part of the store that is a user's, for as long as the handle is open.

        Raises:
            UnsupportedMemoryOp: The backend cannot keep users apart in one store.
            MemoryStoreClosed: The store is closed.
        """
        if self.is_closed:
            raise MemoryStoreClosed(self.name)
        return self.backend.for_user(self, user_id)

    async def __aenter__(self) -> Self:
        return self.acquire()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.release()


def _abandoned(
    backend: MemoryBackend,
    resource: object,
    name: str,
    process: int,
    loop: asyncio.AbstractEventLoop | None,
) -> None:
    """Close the store of a handle that was collected while it was open."""
    if process != os.getpid():
        return
    emit("resource.unclosed", resource=name)
    _close(backend, resource, loop)
    warnings.warn(
        f"{name} was collected while it was open: release it as often as it was acquired",
        ResourceWarning,
        stacklevel=2,
    )


def _close(
    backend: MemoryBackend, resource: object, loop: asyncio.AbstractEventLoop | None
) -> None:
    """Close what a handle stood for: in its event loop, or in one of its own if that has ended."""
    if loop is not None and loop.is_running():
        loop.call_soon_threadsafe(lambda: loop.create_task(backend.discard(resource)))
        return
    # A loop may run in this thread, and another one cannot run beside it.
    thread = threading.Thread(target=lambda: asyncio.run(backend.discard(resource)), daemon=True)
    # At the end of the interpreter, no thread starts.
    with suppress(RuntimeError):
        thread.start()
        thread.join(_SECONDS)
