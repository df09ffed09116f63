"""Records of single calls: a span and a duration each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from time import perf_counter
from typing import Any, Final

from locus_memory.observability.conventions import ERROR_TYPE

__all__ = ["Attributes", "Describe", "Recorder", "Telemetry"]

Attributes = Mapping[str, Any]
_Method = Callable[..., Any]
_NO_ATTRIBUTES: Final[Attributes] = {}

_inside: ContextVar[tuple[object, ...]] = ContextVar("locus_memory_recorded", default=())
"""The objects, or the kinds of operations, whose calls are recorded already."""


class Describe(ABC):
    """Describes the calls of one method.

    Attributes:
        kind: The kind of operation, whose further calls, inside this one, are part of it; `None`:
            the further calls of the same object are.
    """

    kind: object = None

    @abstractmethod
    def begin(
        self, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[str, Attributes, Attributes]:
        """Return the name of the span, the attributes of span and metric, and those of the span."""

    def end(self, result: Any) -> Attributes:
        """Return further attributes of the span, from the result of the call: none by default."""
        del result
        return _NO_ATTRIBUTES


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

    Each call is one coroutine around that of the method: it is on the path of every verb.

    Args:
        telemetry: The parts of OpenTelemetry.
        duration: The histogram of the durations, in seconds.
        kind: The kind of the spans; `None`: there are no spans.
    """

    def __init__(self, telemetry: Telemetry, duration: Any, kind: Any) -> None:
        self._telemetry = telemetry
        self._record = duration.record
        self._kind = kind

    def recorded(self, describe: Describe) -> Callable[[_Method], _Method]:
        """Return a decorator of async methods that records each call."""
        record, kind, telemetry = self._record, self._kind, self._telemetry

        def decorator(method: _Method) -> _Method:
            @wraps(method)
            async def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
                key = owner if describe.kind is None else describe.kind
                around = _inside.get()
                if key in around:
                    return await method(owner, *args, **kwargs)
                name, shared, own = describe.begin(owner, args, kwargs)
                span: Any = None
                current: Any = None
                if kind is not None:
                    attributes = {**shared, **own} if own else shared
                    span = telemetry.start_span(name, kind=kind, attributes=attributes)
                    current = telemetry.attach(telemetry.set_span(span))
                inside = _inside.set((*around, key))
                start = perf_counter()
                try:
                    result = await method(owner, *args, **kwargs)
                except BaseException as error:
                    failure = {ERROR_TYPE: type(error).__qualname__}
                    shared = {**shared, **failure}
                    if span is not None:
                        span.set_attributes(failure)
                        span.set_status(telemetry.failed)
                    raise
                else:
                    found = describe.end(result) if span and span.is_recording() else None
                    if span and found:
                        span.set_attributes(found)
                    return result
                finally:
                    seconds = perf_counter() - start
                    _inside.reset(inside)
                    if span is not None:
                        telemetry.detach(current)
                        span.end()
                    # Outside of the span: an exemplar of each call would cost as much as the span.
                    record(seconds, shared)

            return call

        return decorator
