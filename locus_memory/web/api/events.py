"""The stream of events: server-sent events, which a browser's `EventSource` reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Final

from fastapi import Header, Request
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import StreamingResponse

from locus_memory.web.errors import RefusalError
from locus_memory.web.models import Asked
from locus_memory.web.questions.data import Data
from locus_memory.web.security.sessions import Sessions

__all__ = ["stream_events"]

_PATIENCE: Final = 15.0
"""Seconds without an event after which a comment keeps the connection alive."""

_MOST_STREAMS: Final = 64

LastEvent = Annotated[
    str | SkipJsonSchema[None],
    Header(alias="Last-Event-ID", description="The number of the last known event."),
]


class EventStream(StreamingResponse):
    """Server-sent events: their numbers, names and documents."""

    media_type = "text/event-stream"


async def stream_events(
    data: Data, asked: Asked, request: Request, last_event_id: LastEvent = None
) -> EventStream:
    """Follow the events of the process that serves the request.

    It ends with the session of the browser that reads it.
    """
    del asked
    last = last_event_id or "0"
    if not last.isascii() or not last.isdecimal() or len(last) > 18:  # noqa: PLR2004 - 64 bits
        raise RefusalError(400, "Last-Event-ID is the id of an event")
    if data.journal.readers >= _MOST_STREAMS:
        raise RefusalError(503, "too many streams of events are open")
    return EventStream(_lines(request, data, int(last)))


async def _lines(request: Request, data: Data, after: int) -> AsyncIterator[str]:
    sessions: Sessions = request.app.state.sessions
    session = sessions.read(request)
    yield "retry: 2000\n\n"
    async with aclosing(data.journal.follow(after, _PATIENCE)) as entries:
        async for entry in entries:
            if entry is None:
                await sessions.learn(request)
            if sessions.read(request) != session:
                return
            if entry is None:
                yield ": waiting\n\n"
            else:
                yield f"id: {entry.id}\nevent: {entry.name}\ndata: {entry.model_dump_json()}\n\n"
