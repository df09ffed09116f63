"""Records of single calls: a span and a duration each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Protocol

from locus_memory.observability.conventions import ERROR_TYPE

__all__ = ["Attributes", "Describe", "Recorder", "Telemetry"]

Attributes = Mapping[str, Any]

_inside: ContextVar[tuple[object, ...]] = ContextVar("locus_memory_recorded", default=())
"""The objects, or the kinds of operations, whose calls are recorded already."""


class Describe(Protocol):
    """Describes the calls of one method."""

    def key(self, owner: Any) -> object:
        """Return the object whose further calls, inside this one, are part of it."""
        ...

    def begin(self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the name of the span, the attributes of span and metric, and those of the span."""
        ...

    def end(self, result: Any) -> Attributes:
        """Return further attributes of the span, from the result of the call."""
        ...


class Telemetry:
    """The parts of OpenTelemetry that a recorded call uses.

    Args:
        tracer: Makes the spans.
        api: The module `opentelemetry.trace`.
        context: The module `opentelemetry.context`.
    """

    def __init__(self, tracer: Any, api: Any, context: Any) -> None:
        self.start_span = tracer.start_span
        self.kinds = api.SpanKind
        self.set_span = api.set_span_in_context
        self.failed = api.Status(api.StatusCode.ERROR)
        self.attach = context.attach
        self.detach = context.detach


class Recorder:
    """Records the calls of methods.

    Args:
        telemetry: The parts of OpenTelemetry.
        duration: The histogram of the durations, in seconds.
        kind: The kind of the spans; `None`: there are no spans.
    """

    def __init__(self, telemetry: Telemetry, duration: Any, kind: Any) -> None:
        self._telemetry = telemetry
        self._record = duration.record
        self._kind = kind
        self._call = self._timed if kind is None else self._traced

    def recorded(self, describe: Describe) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator of async methods that records each call."""

        def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(method)
            async def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                key = describe.key(owner)
                around = _inside.get()
                if key in around:
                    return await method(owner, *args, **kwargs)
                token = _inside.set((*around, key))
                try:
                    return await self._call(method, describe, owner, args, kwargs)
                finally:
                    _inside.reset(token)

            return call

        return decorate

    async def _timed(
        self,
        method: Callable[..., Any],
        describe: Describe,
        owner: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        _, shared, _ = describe.begin(owner, args, kwargs)
        start = time.perf_counter()
        try:
            return await method(owner, *args, **kwargs)
        except BaseException as error:
            shared = {**shared, ERROR_TYPE: type(error).__qualname__}
            raise
        finally:
            self._record(time.perf_counter() - start, shared)

    async def _traced(
        self,
        method: Callable[..., Any],
        describe: Describe,
        owner: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        telemetry = self._telemetry
        name, shared, own = describe.begin(owner, args, kwargs)
        attributes = {**shared, **own} if own else shared
        span = telemetry.start_span(name, kind=self._kind, attributes=attributes)
        token = telemetry.attach(telemetry.set_span(span))
        start = time.perf_counter()
        try:
            result = await method(owner, *args, **kwargs)
        except BaseException as error:
            failure = {ERROR_TYPE: type(error).__qualname__}
            shared = {**shared, **failure}
            span.set_attributes(failure)
            span.set_status(telemetry.failed)
            raise
        else:
            if span.is_recording() and (found := describe.end(result)):
                span.set_attributes(found)
            return result
        finally:
            seconds = time.perf_counter() - start
            telemetry.detach(token)
            span.end()
            # Outside of the span: an exemplar of each call would cost as much as the span.
            self._record(seconds, shared)
