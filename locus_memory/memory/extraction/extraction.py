"""The steps of an extraction: call the extractor, check its changes, write them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.distillate import Distillate, EpisodeDraft, IdentityClaim
from locus_memory.memory.extraction.origin import Speakers
from locus_memory.memory.extraction.thread import read_document, text_of
from locus_memory.memory.layers.identity import IdentityFact
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import (
    EXPIRES_AT,
    ORIGIN,
    TOOL,
    Extractor,
    Memory,
    MemoryChange,
    MemoryType,
)
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import ExtractionOptions
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.queue.queue import Job
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.item import check_key
from locus_memory.store.json_values import encode_json

__all__ = [
    "Distilled",
    "Extraction",
    "Origin",
    "as_memories",
    "as_memory",
    "check_length",
    "origin_of",
]

_SHOWN: Final = 40
"""How many current memories an extractor gets."""

_LONGEST: Final = 2_000
"""The most characters of an extracted memory: a longer text is not a fact."""

_MOST_IDS: Final = 50

_LEFT_OUT: Final = "The summary of this session is left out: it looks like it holds a secret."

_Answer = TypeVar("_Answer")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What an extraction makes of a session, checked and with its sources.

    Attributes:
        edits: The memories to write and to retire.
        episode: The episode, or `None`.
        identity: The identity facts.
    """

    edits: list[Statement | Retirement]
    episode: EpisodeDraft | None
    identity: list[IdentityFact]


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

    async def run(
        self, jobs: Sequence[Job], holds: Callable[[Sequence[Job]], Awaitable[bool]]
    ) -> None:
        """Extract from the messages of the jobs of one thread, and write the changes.

        Args:
            jobs: The jobs.
            holds: Returns whether jobs are still this process's, and none was erased; if not,
                nothing is written.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        scope, origin = Scope(jobs[0].namespace), origin_of(jobs)
        edits = await self.edits(scope, origin)
        if not await holds(jobs):
            return
        written = await self._ledger.apply(scope, edits)
        emit(
            "memory.extracted",
            messages=len(origin.messages),
            changes=len(edits),
            memories=len(written),
        )

    async def stated(self, job: Job) -> list[tuple[str, float, list[str]]]:
        """Return the memories that messages state, whether they are known already or not.

        It calls the extractor again, so it is for one that calls no model.

        Returns:
            The `current_key` of each, its importance, and the ids of the messages.

        Raises:
            Exception: Any error of the extractor.
        """
        origin = origin_of([job])
        changes = await self._extractor.extract(origin.messages, ())
        return [
            (
                current_key(each.type, each.key),
                _importance(each),
                origin.ids(each.sources),
            )
            for each in changes
            if isinstance(each, MemoryChange) and each.op != "delete"
        ]

    async def edits(self, scope: Scope, origin: Origin) -> list[Statement | Retirement]:
        """Return the memories that an extractor writes and retires, each with its source."""
        if not origin.messages:
            return []
        changes = await self._ask(scope, origin, self._extractor.extract)
        return await self._edits_of(changes, origin, Speakers(origin.messages))

    async def distilled(self, scope: Scope, origin: Origin, fresh: Origin | None) -> Distilled:
        """Return what an extractor makes of a session, checked as by `edits`.

        Args:
            scope: The scope of the memories.
            origin: The session.
            fresh: The part of it whose facts were not extracted before; an extractor with
                `distill` reads the whole session all the same.

        An extractor without `distill` makes changes only. An identity fact from a tool is refused,
        and texts that look like secrets are left out.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        distill: Any = getattr(self._extractor, "distill", None)
        if callable(distill):
            ask = cast("Callable[..., Awaitable[Distillate]]", distill)
            made = await self._ask(scope, origin, ask)
            edits = await self._edits_of(made.changes, origin, Speakers(origin.messages))
        else:
            made = Distillate()
            edits = [] if fresh is None else await self.edits(scope, fresh)
        speakers = Speakers(origin.messages)
        if made.identity:
            await speakers.read()
        return Distilled(
            edits=edits,
            episode=None if made.episode is None else self._without_secrets(made.episode),
            identity=[
                fact
                for claim in made.identity
                if (fact := self._fact(claim, origin, speakers)) is not None
            ],
        )

    async def noted(self, scope: Scope, fresh: Origin | None) -> Distilled:
        """Return the changes of facts of a short session, without an episode.

        In place of an extractor that calls a model, the table of phrases reads it.

        Args:
            scope: The scope of the memories.
            fresh: The part of the session whose facts were not extracted before.

        Raises:
            Exception: Any error of the extractor or the store.
        """
        edits = [] if fresh is None else await self.by_rules().edits(scope, fresh)
        return Distilled(edits=edits, episode=None, identity=[])

    @property
    def distils(self) -> bool:
        """Whether the extractor reads sessions as a whole."""
        return callable(getattr(self._extractor, "distill", None))

    @property
    def is_by_rules(self) -> bool:
        """Whether the table of phrases extracts, and no model."""
        return isinstance(self._extractor, HeuristicExtractor)

    @property
    def is_by_model(self) -> bool:
        """Whether somebody else than the rules extracts, who understands what is said."""
        return not self.is_by_rules

    def by_rules(self) -> Extraction:
        """Return the extraction by phrases in place of an extractor that reads whole sessions."""
        if not self.distils:
            return self
        return Extraction(HeuristicExtractor(), self._ledger, self._recall, self._options)

    async def _ask(
        self,
        scope: Scope,
        origin: Origin,
        ask: Callable[[Sequence[Any], Sequence[Memory]], Awaitable[_Answer]],
    ) -> _Answer:
        """Return the answer of an extractor, which gets the memories that it may change."""
        said = "\n".join(text_of(each) for each in origin.messages if each.role != "tool")
        async with asyncio.timeout(self._options.extract_timeout):
            known = await self._recall.find(scope, _SHOWN, said)
            return await ask(origin.messages, known)

    async def _edits_of(
        self, changes: Sequence[MemoryChange | Memory], origin: Origin, speakers: Speakers
    ) -> list[Statement | Retirement]:
        if changes:
            await speakers.read()
        edits = (self._checked(change, origin, speakers) for change in changes)
        return [edit for edit in edits if edit is not None]

    def _fact(
        self, claim: IdentityClaim, origin: Origin, speakers: Speakers
    ) -> IdentityFact | None:
        """Return an identity fact; one from a tool is refused."""
        if speakers.is_of_tool(claim.sources, claim.text):
            self._refuse("identity cannot come from a tool")
            return None
        if not self._may_hold(claim.text, "identity"):
            return None
        return IdentityFact(
            text=claim.text,
            at=self._ledger.now(),
            thread_id=origin.thread,
            message_ids=tuple(origin.ids(claim.sources)),
        )

    def _without_secrets(self, draft: EpisodeDraft) -> EpisodeDraft:
        """Return an episode without the texts that look like secrets; its summary never ends."""

        def kept(texts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(text for text in texts if self._may_hold(text, "episode"))

        return replace(
            draft,
            summary=draft.summary if self._may_hold(draft.summary, "episode") else _LEFT_OUT,
            topics=kept(draft.topics),
            entities=kept(draft.entities),
            decisions=kept(draft.decisions),
            action_items=kept(draft.action_items),
        )

    def _refuse(self, reason: str) -> None:
        error = InvalidArgumentError(reason)
        emit("memory.change_refused", error=error, extractor=self._extractor.name, reason=reason)

    def _checked(
        self, change: object, origin: Origin, speakers: Speakers
    ) -> Statement | Retirement | None:
        """Return the edit of a change; feedback from a tool is refused."""
        # A memory that the caller's own function returns names its origin itself.
        is_of_tool = isinstance(change, MemoryChange) and speakers.is_of_tool(
            change.sources, change.content
        )
        if isinstance(change, MemoryChange) and is_of_tool and change.type == MemoryType.FEEDBACK:
            self._refuse("feedback cannot come from a tool")
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
        kind = memory.type.value
        return self._may_hold(memory.content, kind) and self._may_hold(memory.key, kind)

    def _may_hold(self, text: str, type: str) -> bool:  # noqa: A002 - the field's word
        """Return whether a text may be kept; it may not, with an event, if it holds a secret."""
        if self._options.allow_secrets:
            return True
        kind = find_secret(text)
        if kind is not None:
            emit("memory.secret_dropped", type=type, kind=kind)
        return kind is None


def origin_of(jobs: Sequence[Job]) -> Origin:
    """Return the messages of the jobs of one thread."""
    found = [each for job in jobs for each in job.messages]
    numbers = [each["number"] for each in found]
    moments = [job.queued_at for job in jobs for _ in job.messages]
    return Origin([read_document(each) for each in found], numbers, jobs[0].thread, moments)


def _importance(change: MemoryChange) -> float:
    return 0.5 if change.importance is None else change.importance


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


def check_end(memory: Memory) -> Memory:
    """Return a memory whose `expires_at`, if it has one, is a moment.

    Raises:
        InvalidArgumentError: It is not, and the memory would never expire.
    """
    end = memory.metadata.get(EXPIRES_AT)
    if end is not None and read_moment(end) is None:
        raise InvalidArgumentError(f"a memory's {EXPIRES_AT} is ISO 8601, not {quote(end)}")
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
