"""The export of threads and memories, as the command `export` prints them, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import orjson
from pydantic import Field

from locus_memory.inspection.threads import conversation_of
from locus_memory.web.models import Asked, UserAsked
from locus_memory.web.questions.data import Data
from locus_memory.web.questions.threads import locate

__all__ = ["FactsExport", "ThreadExport", "export_facts", "export_thread"]


class ThreadExport(Asked):
    """A thread to export, at one of its checkpoints."""

    thread: str = Field(min_length=1)
    checkpoint: str | None = None
    """By default the newest."""
    format: Literal["openai", "jsonl"] = "openai"
    """One document, or one line per message."""
    bare: bool = False
    """Leave out id and metadata, for the OpenAI API."""


class FactsExport(UserAsked):
    """The memories of a user to export."""


async def export_thread(data: Data, asked: ThreadExport) -> AsyncIterator[bytes]:
    """Export the messages of a thread, in a format that `locus-memory import` reads."""
    place = await locate(data, asked.thread, asked.checkpoint)
    document = await conversation_of(data.checkpointer, *place, bare=asked.bare)
    return _lines(document["messages"] if asked.format == "jsonl" else [document])


async def export_facts(data: Data, asked: FactsExport) -> AsyncIterator[bytes]:
    """Export the current memories as facts, one per line, for `import --format facts`."""
    return _facts(data, asked)


async def _lines(documents: list[dict[str, Any]]) -> AsyncIterator[bytes]:
    for each in documents:
        yield orjson.dumps(each) + b"\n"


async def _facts(data: Data, asked: FactsExport) -> AsyncIterator[bytes]:
    async for fact in data.scoped(asked.user).export_facts():
        yield orjson.dumps(fact) + b"\n"
