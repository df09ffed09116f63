"""The steps of an extraction: call the extractor, check its changes, write them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.origin import Speakers
from locus_memory.memory.extraction.thread import read_document, text_of
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import (
    ORIGIN,
    TOOL,
    Extractor,
    Memory,
    MemoryChange,
    MemoryType,
)
from locus_memory.memory.options import ExtractionOptions
from locus_memory.memory.queue.queue import Job
from locus_memory.memory.recall import Recall
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.item import check_key
from locus_memory.store.json_values import encode_json

__all__ = ["Extraction", "Origin", "as_memories", "as_memory", "check_length"]

_SHOWN: Final = 40
"""How many current memories an extractor gets."""

_LONGEST: Final = 2_000
"""The most characters of an extracted memory: a longer text is not a fact."""

_MOST_IDS: Final = 50


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of an extraction: messages of one thread.

    Attributes:
        messages: The messages, oldest first.
        numbers: Their numbers in the thread, from 1, without system messages.
        thread: The thread, if it is known.
        moments: The moment at which each was queued, if it is known.
    """

    messages: Sequence[Any]
    numbers: Sequence[int]
    thread: str | None = None
    moments: Sequence[str | None] = ()

    def said_at(self, places: Sequence[int] = ()) -> str | None:
        """Return the moment of the messages at some positions, or else of the last of all."""
        said = [self.moments[place] for place in places if 0 <= place < len(self.moments)]
        return max(filter(None, said or self.moments), default=None)

    def ids(self, places: Sequence[int]) -> list[str]:
        """Return the ids of the messages at some positions, or else of the user's messages."""
        valid = [place for place in places if 0 <= place < len(self.messages)]
        said = [n for n, message in enumerate(self.messages) if message.role == "user"]
        return [self._id(place) for place in (valid or said)[-_MOST_IDS:]]

    def _id(self, place: int) -> str:
        return getattr(self.messages[place], "id", None) or f"#{self.numbers[place]}"


class Extraction:
    """A service that calls an extractor and writes its changes.

    Args:
        extractor: Decides which memories to change.
        ledger: Writes the changes.
        recall: Finds the memories that may be changed.
        options: The limits of the extractor.
    """

    def __init__(
        self, extractor: Extractor, ledger: Ledger, recall: Recall, options: ExtractionOptions
    ) -> None:
        self._extractor = extractor
        self._ledger = ledger
        self._recall = recall
        self._options = options

    async def run(self, jobs: Sequence[Job]) -> None:
        """Extract from the messages of the jobs of one thread, and write the changes.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        scope, found = Scope(jobs[0].namespace), [each for job in jobs for each in job.messages]
        numbers = [each["number"] for each in found]
        moments = [job.queued_at for job in jobs for _ in job.messages]
        origin = Origin([read_document(each) for each in found], numbers, jobs[0].thread, moments)
        edits = await self.edits(scope, origin)
        written = await self._ledger.apply(scope, edits)
        emit("memory.extracted", messages=len(found), changes=len(edits), memories=len(written))

    async def edits(self, scope: Scope, origin: Origin) -> list[Statement | Retirement]:
        """Return the memories that an extractor writes and retires, each with its source."""
        if not origin.messages:
            return []
        said = "\n".join(text_of(each) for each in origin.messages if each.role != "tool")
        async with asyncio.timeout(self._options.extract_timeout):
            known = await self._recall.find(scope, _SHOWN, said)
            changes = await self._extractor.extract(origin.messages, known)
        speakers = Speakers(origin.messages)
        if changes:
            await speakers.read()
        edits = (self._checked(change, origin, speakers) for change in changes)
        return [edit for edit in edits if edit is not None]

    def _checked(
        self, change: object, origin: Origin, speakers: Speakers
    ) -> Statement | Retirement | None:
        """Return the edit of a change; feedback from a tool is refused."""
        # A memory that the caller's own function returns names its origin itself.
        is_of_tool = isinstance(change, MemoryChange) and speakers.is_of_tool(
            change.sources, change.content
        )
        if isinstance(change, MemoryChange) and is_of_tool and change.type == MemoryType.FEEDBACK:
            reason = "feedback cannot come from a tool"
            error = InvalidArgumentError(reason)
            name = self._extractor.name
            emit("memory.change_refused", error=error, extractor=name, reason=reason)
            return None
        return self._edit(change, origin, {ORIGIN: TOOL} if is_of_tool else {})

    def _edit(
        self, change: object, origin: Origin, known: Mapping[str, str]
    ) -> Statement | Retirement | None:
        extractor = self._extractor.name
        said_at = origin.said_at(change.sources if isinstance(change, MemoryChange) else ())
        try:
            if isinstance(change, MemoryChange) and change.op == "delete":
                return Retirement(change.type, check_key(change.key), said_at)
            memory = check_length(_memory_of(change, origin), _LONGEST)
            metadata = {
                "extracted_at": self._ledger.now(),
                "extractor": extractor,
                **({} if origin.thread is None else {"thread_id": origin.thread}),
                **known,
                **memory.metadata,
            }
            memory = Memory(memory.type, check_key(memory.key), memory.content, metadata)
            encode_json(memory.to_store_value())
        except InvalidArgumentError as error:
            emit("memory.change_refused", error=error, extractor=extractor, reason="no memory")
            return None
        return Statement(memory, said_at) if self._may_keep(memory) else None

    def _may_keep(self, memory: Memory) -> bool:
        if self._options.allow_secrets:
            return True
        kind = find_secret(memory.content) or find_secret(memory.key)
        if kind is not None:
            emit("memory.secret_dropped", type=memory.type.value, kind=kind)
        return kind is None


def _memory_of(change: object, origin: Origin) -> Memory:
    """Return the memory that a change writes, with its source messages."""
    if not isinstance(change, MemoryChange):
        memory = as_memory(change)
        ids = {"message_ids": origin.ids(())}
        return Memory(memory.type, memory.key, memory.content, ids | memory.metadata)
    metadata: dict[str, Any] = {"message_ids": origin.ids(change.sources)}
    if change.importance is not None:
        metadata["importance"] = change.importance
    return Memory(change.type, change.key, change.content, metadata)


def check_length(memory: Memory, most: int) -> Memory:
    """Return a memory whose key and content have at most `most` characters.

    Raises:
        InvalidArgumentError: The key or the content has more.
    """
    for name, text in (("key", memory.key), ("content", memory.content)):
        if len(text) > most:
            raise InvalidArgumentError(
                f"a memory's {name} has at most {most:,} characters, not {len(text):,}"
            )
    return memory


def as_memories(value: object) -> list[Memory]:
    """Return a list of memories, also from a single memory.

    Raises:
        InvalidArgumentError: A value is not a memory.
    """
    # A memory that is a pydantic model is iterable as well.
    if isinstance(value, Iterable) and not hasattr(value, "content"):
        return [as_memory(each) for each in value]
    return [as_memory(value)]


def as_memory(value: object) -> Memory:
    """Return a memory, also from an object of another library with the same attributes.

    Raises:
        InvalidArgumentError: It is not a memory.
    """
    if isinstance(value, Memory):
        return value
    try:
        found: Any = value
        return Memory(found.type, found.key, found.content, dict(found.metadata or {}))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{type(value).__name__} is not a Memory") from error
