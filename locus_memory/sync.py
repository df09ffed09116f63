"""A blocking face for what is async here, for programs and frameworks that are synchronous.

There is one implementation of everything, and it is async. A `Bridge` runs an event loop in a
thread of its own, so that any other thread can wait for what happens there; `blocking(x)` looks
like `x`, but that each of its methods returns when it is done.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Future
from functools import cache, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from typing_extensions import override

from locus_memory.errors import BlockingCallError
from locus_memory.registry import get_store

if TYPE_CHECKING:
    from locus_memory.agent import Agent
    from locus_memory.backends.base import Backend
    from locus_memory.checkpoint.base import BaseCheckpointer
    from locus_memory.faces import (
        BlockingAgent,
        BlockingBackend,
        BlockingCheckpointer,
        BlockingMemoryManager,
        BlockingStore,
    )
    from locus_memory.memory.base import BaseMemoryManager
    from locus_memory.store.base import BaseStore

__all__ = ["Blocking", "Bridge", "blocking"]

T = TypeVar("T")


class Bridge:
    """An event loop in a thread of its own, and calls into it that wait for their result.

    Any number of threads may call at once; their calls run side by side. The thread starts with
    the first call, and again in a process that was forked.

    ```python
    with Bridge() as bridge, blocking(get_store("sqlite:./agent.db"), bridge=bridge) as store:
        store.put(("users", "ada"), "tea", {"likes": "oolong"})
    ```
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closed = False

    def run(self, awaitable: Awaitable[T]) -> T:
        """Return what an awaitable returns, once it is done.

        The caller's context variables are those of the call. An interrupt, such as Ctrl-C,
        cancels what it waited for.

        Raises:
            BlockingCallError: An event loop runs in this thread, which would stand still
                meanwhile; or the bridge is closed. The awaitable was not started.
        """
        try:
            loop = self._running_loop()
        except BlockingCallError:
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), loop)
        try:
            return future.result()
        except CancelledError:
            if not self._closed:
                # The awaitable was cancelled by something else, which is its own affair.
                raise
            raise BlockingCallError("the bridge was closed while a call was running") from None
        except BaseException:
            # An interrupt of the wait; where the call itself failed, there is nothing to cancel.
            future.cancel()
            raise

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields, and close it with this one.

        Raises:
            BlockingCallError: As for `run`.
        """
        try:
            while True:
                try:
                    yield self.run(anext(iterator))
                except StopAsyncIteration:
                    return
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(iterator, "aclose", None)
            if close is not None:
                self.run(close())

    def close(self) -> None:
        """Cancel what is still running, and end the thread; calling it again is harmless.

        Raises:
            BlockingCallError: It is called from the bridge's own thread.
        """
        with self._lock:
            self._closed = True
            thread, loop, stop = self._thread, self._loop, self._stop
            self._thread = self._loop = self._stop = None
        if thread is None or loop is None or stop is None or self._process != os.getpid():
            return
        if thread is threading.current_thread():
            raise BlockingCallError("a bridge cannot wait for the end of the thread it runs in")
        loop.call_soon_threadsafe(stop.set)
        thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if _loop_runs_here():
            raise BlockingCallError(
                "a blocking call would hold up the event loop that runs in this thread: await "
                "the original instead, or call from another thread (asyncio.to_thread)"
            )
        with self._lock:
            if self._closed:
                raise BlockingCallError("the bridge is closed")
            if self._loop is None or self._process != os.getpid():
                self._process = os.getpid()
                self._loop = self._start()
            return self._loop

    def _start(self) -> asyncio.AbstractEventLoop:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

        async def serve() -> None:
            stop = asyncio.Event()
            started.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()

        # asyncio.run() cancels the tasks that are left, and lets asynchronous generators end.
        self._thread = threading.Thread(
            target=lambda: asyncio.run(serve()), name="locus-memory-bridge", daemon=True
        )
        self._thread.start()
        loop, self._stop = started.result()
        return loop


class Blocking:
    """Looks like the object it was made of, but its methods block; see `blocking`."""

    def __init__(self, target: Any, bridge: Bridge) -> None:
        self._target = target
        self._bridge = bridge

    if not TYPE_CHECKING:
        # A type checker knows the attributes of each face, see `locus_memory.faces`.

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self._faced(getattr(self._target, name))

    @override
    def __repr__(self) -> str:
        return f"blocking({self._target!r})"

    @override
    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if not name.startswith("_")]

    def __enter__(self) -> Self:
        """Open what is behind it, if that can be opened."""
        if hasattr(self._target, "__aenter__"):
            self._bridge.run(self._target.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if hasattr(self._target, "__aexit__"):
            self._bridge.run(self._target.__aexit__(kind, error, traceback))

    def _faced(self, value: Any) -> Any:
        """Return an attribute, or what a method returned, such that nobody has to await it."""
        if inspect.isawaitable(value):
            return self._faced(self._bridge.run(value))
        if isinstance(value, AsyncIterator):
            return self._bridge.iterate(value)
        if inspect.ismethod(value):
            return self._blocking_method(value)
        return _face(value, self._bridge) if _is_async(value.__class__) else value

    def _blocking_method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def unwrapped(value: Any) -> Any:
            return value._target if isinstance(value, Blocking) else value  # noqa: SLF001 - its own

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            named = {name: unwrapped(value) for name, value in kwargs.items()}
            return self._faced(method(*map(unwrapped, args), **named))

        return call


@overload
def blocking(target: str | BaseStore, *, bridge: Bridge | None = None) -> BlockingStore: ...
@overload
def blocking(target: BaseCheckpointer, *, bridge: Bridge | None = None) -> BlockingCheckpointer: ...
@overload
def blocking(target: Backend, *, bridge: Bridge | None = None) -> BlockingBackend: ...
@overload
def blocking(
    target: BaseMemoryManager, *, bridge: Bridge | None = None
) -> BlockingMemoryManager: ...
@overload
def blocking(target: Agent, *, bridge: Bridge | None = None) -> BlockingAgent: ...
@overload
def blocking(target: object, *, bridge: Bridge | None = None) -> Any: ...
def blocking(target: object, *, bridge: Bridge | None = None) -> Any:
    """Return a blocking face of a store, a checkpointer, a manager, an agent or a backend.

    It has the target's public attributes and methods, with the same arguments. What a method
    returns is itself blocking where it would be asynchronous. It may be used from any number of
    threads at once. `with` opens and closes the target as `async with` does.

    Args:
        target: Any object with asynchronous methods, or a provider string: the store it makes.
        bridge: Where its calls run. By default all share the bridge of this process, so that
            what belongs to one event loop, such as a pool of connections, is shared as well.

    Returns:
        A `Blocking`: its methods are those of the target, without `await`. A type checker knows
        those of a store, a checkpointer, a backend, a memory manager and an agent; the face of
        anything else is typed `Any`.

    Raises:
        BlockingCallError: By a call of a method, see `Bridge.run`.
    """
    if isinstance(target, str):
        target = get_store(target)
    return _face(target, bridge or _shared_bridge())


def _face(target: object, bridge: Bridge) -> Blocking:
    # The faces are built on what is here.
    from locus_memory.faces import face_of  # noqa: PLC0415

    return face_of(target)(target, bridge)


@cache
def _shared_bridge() -> Bridge:
    bridge = Bridge()
    atexit.register(bridge.close)
    return bridge


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _is_async(kind: Hashable) -> bool:
    """Whether objects of this class have asynchronous methods of their own."""
    names = (name for name in dir(kind) if not name.startswith("_"))
    functions = (inspect.getattr_static(kind, name, None) for name in names)
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        for function in functions
    )
