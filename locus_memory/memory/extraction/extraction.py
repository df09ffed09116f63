"""The steps of an extraction: call the extractor, check its changes, write them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.distillate import Distillate, IdentityClaim, NoteDraft
from locus_memory.memory.extraction.origin import Speakers
from locus_memory.memory.extraction.source import Source, messages_of, source_of
from locus_memory.memory.extraction.thread import text_of
from locus_memory.memory.layers.episodes import Note
from locus_memory.memory.layers.identity import IdentityFact
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import (
    EXPIRES_AT,
    ORIGIN,
    Extractor,
    Memory,
    MemoryChange,
    MemoryType,
    Origin,
    refusal,
)
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.store.item import check_key
from locus_memory.store.json_values import encode_json

__all__ = [
    "Distilled",
    "Extraction",
    "as_memories",
    "as_memory",
    "check_length",
]

_SHOWN: Final = 40
"""How many current memories an extractor gets."""

_LONGEST: Final = 2_000
"""The most characters of an extracted memory: a longer text is not a fact."""

_KNOWN: Final = "a change comes from a new message"

_SALIENCE: Final = 0.5

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What an extraction makes of a session, checked and with its sources.

    Attributes:
        edits: The memories to write and to retire.
        notes: The notes.
        salience: The salience of the notes, from 0 to 1.
        identity: The identity facts.
    """

    edits: list[Statement | Retirement]
    notes: list[Note]
    salience: float
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
        self, extractor: Extractor, ledger: Ledger, recall: Recall, options: MemoryOptions
    ) -> None:
        self._extractor = extractor
        self._ledger = ledger
        self._recall = recall
        self._options = options

    def source_of(self, jobs: Sequence[Job]) -> Source:
        """Return the messages of jobs; answers to requests for a secret are left out."""
        zone = self._options.zone()
        return source_of(jobs, withholds=not self._options.allow_secrets, zone=zone)

    def messages_of(self, said: Sequence[Any]) -> Source:
        """Return the messages of a conversation, as `source_of`."""
        return messages_of(said, withholds=not self._options.allow_secrets)

    async def stated(self, origin: Source) -> list[Statement | Retirement]:
        """Return what phrases find, known already or not; nothing where somebody else extracts.

        Raises:
            Exception: Any error of the extractor.
        """
        if self.is_by_model:
            return []
        changes = await self._extractor.extract(origin.messages, ())
        return await self._edits_of(changes, origin, Speakers(origin.messages))

    async def edits(self, scope: Scope, origin: Source) -> list[Statement | Retirement]:
        """Return the memories that an extractor writes and retires, each with its source."""
        if not origin.messages:
            return []
        changes = await self._ask(scope, origin, self._extractor.extract)
        return await self._edits_of(changes, origin, Speakers(origin.messages))

    async def distilled(self, scope: Scope, origin: Source) -> Distilled:
        """Return what an extractor makes of sessions, checked as by `edits`.

        An extractor without `distill` makes changes only. An identity fact from a tool or a
        document is refused, and texts that look like secrets are left out.

        Args:
            scope: The scope of the memories.
            origin: The sessions.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        speakers = Speakers(origin.messages)
        if self.distils:
            ask: Any = self._extractor
            made: Distillate = await self._ask(scope, origin, ask.distill)
            edits = await self._edits_of(made.changes, origin, speakers)
        else:
            made = Distillate()
            edits = await self.edits(scope, origin)
        if made.identity or made.notes:
            await speakers.read()
        notes = (self._note(draft, origin, speakers) for draft in made.notes)
        facts = (self._fact(claim, origin, speakers) for claim in made.identity)
        graded = [each.importance for each in made.notes if each.importance is not None]
        return Distilled(
            edits=edits,
            notes=[note for note in notes if note is not None],
            salience=max(graded, default=_SALIENCE),
            identity=[fact for fact in facts if fact is not None],
        )

    @property
    def distils(self) -> bool:
        """Whether the extractor reads sessions as a whole."""
        return callable(getattr(self._extractor, "distill", None))

    @property
    def is_by_model(self) -> bool:
        """Whether somebody else than the phrases extracts, who understands what is said."""
        return not isinstance(self._extractor, HeuristicExtractor)

    async def _ask(
        self,
        scope: Scope,
        origin: Source,
        ask: Callable[[Sequence[Any], Sequence[Memory]], Awaitable[_Answer]],
    ) -> _Answer:
        """Return the answer of an extractor, which gets the memories that it may change."""
        said = "\n".join(text_of(each) for each in origin.messages if each.role != "tool")
        async with asyncio.timeout(self._options.extract_timeout):
            known = await self._recall.find(scope, _SHOWN, said)
            return await ask(origin.messages, known)

    async def _edits_of(
        self, changes: Sequence[MemoryChange | Memory], origin: Source, speakers: Speakers
    ) -> list[Statement | Retirement]:
        if changes:
            await speakers.read()
        edits = (self._checked(change, origin, speakers) for change in changes)
        return [edit for edit in edits if edit is not None]

    def _fact(
        self, claim: IdentityClaim, origin: Source, speakers: Speakers
    ) -> IdentityFact | None:
        """Return an identity fact; it is shown as a rule is, so the same origins are refused."""
        told = speakers.origin(claim.sources, claim.text)
        if (refused := refusal(None, MemoryType.FEEDBACK, told)) is not None:
            self._refuse(refused)
            return None
        if origin.is_context(claim.sources):
            self._refuse(_KNOWN)
            return None
        if not self._may_hold(claim.text, "identity"):
            return None
        return IdentityFact(
            text=claim.text,
            at=self._ledger.now(),
            thread_id=origin.thread_of(claim.sources),
            message_ids=tuple(origin.ids(claim.sources)),
        )

    def _note(self, draft: NoteDraft, origin: Source, speakers: Speakers) -> Note | None:
        """Return a note with its moment and its source; `None`: it may not be kept."""
        if origin.is_context(draft.sources):
            self._refuse(_KNOWN)
            return None
        if not self._may_hold(draft.text, "note"):
            return None
        told = speakers.origin(draft.sources, draft.text)
        return Note(
            text=draft.text,
            kind=draft.kind,
            about=draft.about,
            at=origin.said_at(draft.sources) or "",
            thread=origin.thread_of(draft.sources) or "",
            message_ids=tuple(origin.ids(draft.sources)),
            origin="" if told is Origin.USER else told.value,
        )

    def _refuse(self, reason: str) -> None:
        error = InvalidArgumentError(reason)
        emit("memory.change_refused", error=error, extractor=self._extractor.name, reason=reason)

    def _checked(
        self, change: object, origin: Source, speakers: Speakers
    ) -> Statement | Retirement | None:
        """Return the edit of a change, with its origin."""
        # A memory that the caller's own function returns names its origin itself.
        if not isinstance(change, MemoryChange):
            return self._edit(change, origin, Origin.USER)
        if origin.is_context(change.sources):
            self._refuse(_KNOWN)
            return None
        told = speakers.origin(change.sources, change.content, change.key)
        if change.type is MemoryType.FEEDBACK and told is Origin.ASSISTANT:
            # It may repeat a document that it was shown.
            self._refuse("a rule names a message of the user")
            return None
        return self._edit(change, origin, told)

    def _edit(self, change: object, origin: Source, told: Origin) -> Statement | Retirement | None:
        extractor = self._extractor.name
        places = change.sources if isinstance(change, MemoryChange) else ()
        said_at, thread = origin.said_at(places), origin.thread_of(places)
        try:
            if isinstance(change, MemoryChange) and change.op == "delete":
                return Retirement(change.type, check_key(change.key), said_at, origin=told)
            memory = check_length(_memory_of(change, origin), _LONGEST)
            metadata = {
                "extracted_at": self._ledger.now(),
                "extractor": extractor,
                **({} if thread is None else {"thread_id": thread}),
                **({} if told is Origin.USER else {ORIGIN: told.value}),
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


def _memory_of(change: object, origin: Source) -> Memory:
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
