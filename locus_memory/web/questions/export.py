"""The export of threads and memories, as the command `export` prints them, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal, Self

import orjson
from starlette.responses import StreamingResponse

from locus_memory.inspection.threads import conversation_of
from locus_memory.web.errors import error_response
from locus_memory.web.models import ThreadAsked, UserAsked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.threads import locate

__all__ = ["ThreadExport", "export_facts", "export_thread"]


class ThreadExport(ThreadAsked):
    """A thread to export, at one of its checkpoints."""

    checkpoint: str | None = None
    """By default the newest."""
    format: Literal["openai", "jsonl"] = "openai"
    """One document, or one line per message."""
    bare: bool = False
    """Leave out id and metadata, for the OpenAI API."""


class Lines(StreamingResponse):
    """A stream of JSON documents, one per line."""

    media_type = "application/x-ndjson"

    @classmethod
    async def of(cls, lines: AsyncIterator[bytes]) -> Self:
        """Return a stream; an error before its first line is an answer of its own."""
        first = await anext(lines, b"")

        async def rest() -> AsyncIterator[bytes]:
            yield first
            try:
                async for line in lines:
                    yield line
            except Exception as error:  # noqa: BLE001 - too late for a status code
                # The last line of a stream that broke off can be taken for nothing else.
                yield bytes(error_response(error).body) + b"\n"

        return cls(rest())


async def export_thread(data: Data, asked: ThreadExport) -> Lines:
    """Export the messages of a thread, in a format that `locus-memory import` reads."""
    place = await locate(data, asked.thread, asked.checkpoint)
    document = await conversation_of(data.checkpointer, *place, bare=asked.bare)
    return await Lines.of(_lines(document["messages"] if asked.format == "jsonl" else [document]))


async def export_facts(data: Data, asked: UserAsked) -> Lines:
    """Export the current memories as facts, one per line, for `import --format facts`."""
    return await Lines.of(_facts(data, asked))


async def _lines(documents: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for each in documents:
        yield orjson.dumps(each) + b"\n"


async def _facts(data: Data, asked: UserAsked) -> AsyncIterator[bytes]:
    async for fact in data.scoped(asked.user).export_facts():
        yield orjson.dumps(fact) + b"\n"
