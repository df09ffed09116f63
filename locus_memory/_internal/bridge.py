"""A bridge from synchronous code: an event loop in its own thread, and faces that block.

`locus_memory.sync.blocking` creates the faces.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from concurrent.futures import CancelledError
from functools import cache, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from typing_extensions import override

from locus_memory.errors import BlockingCallError

__all__ = ["Blocking", "Bridge", "face", "shared_bridge"]

T = TypeVar("T")


class Bridge:
    """An event loop in its own thread, for calls that wait for their result.

    Any number of threads may call at once; their calls run concurrently. The thread starts with the
    first call, and again in a forked process.

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

    def run(self, awaitable: Awaitable[T], *, inside_loop: bool = False) -> T:
        """Return the result of an awaitable, once it is done.

        The call has the caller's context variables. An interrupt, such as Ctrl-C, cancels the
        awaitable.

        Args:
            awaitable: It runs in the bridge's own event loop.
            inside_loop: An event loop may run in this thread: it stands still until the result is
                there. For frameworks that call blocking code from their event loop.

        Raises:
            BlockingCallError: An event loop runs in this thread and would be blocked, or the bridge
                is closed. The awaitable was not started.
        """
        try:
            loop = self._running_loop(inside_loop=inside_loop)
        except BlockingCallError:
            if inspect.iscoroutine(awaitable):
                awaitable.close()
            raise
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), loop)
        try:
            return future.result()
        except CancelledError:
            if not self._closed:
                # Something else cancelled the awaitable: the error is passed on.
                raise
            raise BlockingCallError("the bridge was closed while a call was running") from None
        except BaseException:
            # An interrupt of the wait; if the call itself failed, there is nothing to cancel.
            future.cancel()
            raise

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an asynchronous iterator, and close it with this one.

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
        """Cancel running calls, and end the thread; calling it again is harmless.

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

    def _running_loop(self, *, inside_loop: bool) -> asyncio.AbstractEventLoop:
        # The bridge's own loop would wait for itself.
        own = self._thread is threading.current_thread()
        if own or (not inside_loop and _loop_runs_here()):
            raise BlockingCallError(
                "a blocking call would block the event loop that runs in this thread: await "
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
        loop, stop = asyncio.new_event_loop(), asyncio.Event()

        def work() -> None:
            try:
                # At its end, it cancels the remaining tasks and closes asynchronous generators.
                with asyncio.Runner(loop_factory=lambda: loop) as runner:
                    runner.run(_awaited(stop.wait()))
            except RuntimeError:
                # From Python 3.12 on no thread starts while the interpreter ends, not even the one
                # that waits for those of the loop.
                if not self._closed:
                    raise

        self._stop = stop
        self._thread = threading.Thread(target=work, name="locus-memory-bridge", daemon=True)
        self._thread.start()
        return loop


# By the name of the target's class, so that unused classes need not be imported.
_FACES: dict[str, type[Blocking]] = {}


def face(target: object, bridge: Bridge) -> Blocking:
    """Return a blocking face of an object, of the face class for its class, if there is one."""
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(target).__mro__)
    return next((_FACES[name] for name in names if name in _FACES), Blocking)(target, bridge)


class Blocking:
    """A blocking face of an object: it has the same methods, but they block.

    A subclass names the class of its targets: `class BlockingStore(Blocking, of="...")`.
    """

    def __init_subclass__(cls, *, of: str, **options: Any) -> None:
        """Register this as the face of the class of that name."""
        super().__init_subclass__(**options)
        _FACES[of] = cls

    def __init__(self, target: Any, bridge: Bridge) -> None:
        self._target = target
        self._bridge = bridge

    if not TYPE_CHECKING:
        # A type checker knows the attributes of each face; see `locus_memory.faces`.

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
        """Open the target, if it can be opened."""
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
        """Return a blocking face of an attribute or a result, if it has one."""
        if inspect.isawaitable(value):
            return self._faced(self._bridge.run(value))
        if isinstance(value, AsyncIterator):
            return self._bridge.iterate(value)
        if inspect.ismethod(value):
            return self._blocking_method(value)
        return face(value, self._bridge) if _is_async(value.__class__) else value

    def _blocking_method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def unwrapped(value: Any) -> Any:
            return value._target if isinstance(value, Blocking) else value  # noqa: SLF001 - its own

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            named = {name: unwrapped(value) for name, value in kwargs.items()}
            return self._faced(method(*map(unwrapped, args), **named))

        return call


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
    """Whether objects of this class have their own asynchronous methods."""
    names = (name for name in dir(kind) if not name.startswith("_"))
    functions = (inspect.getattr_static(kind, name, None) for name in names)
    return any(
        inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
        for function in functions
    )


@cache
def shared_bridge(name: str = "faces") -> Bridge:  # noqa: ARG001 - the key of the cache
    """Return the bridge of this process with a name; all faces share one by default."""
    bridge = Bridge()
    atexit.register(bridge.close)
    return bridge
