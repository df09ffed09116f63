"""The steps of an extraction: call the extractor, check what it makes, write it with the jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from locus_memory._internal.neutral import neutralise
from locus_memory._internal.offload import in_thread
from locus_memory._internal.quoting import quote
from locus_memory.conversation.roles import role_of
from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.memory.extraction.distillate import Distillate, NoteDraft
from locus_memory.memory.extraction.origin import Speakers
from locus_memory.memory.extraction.prompt import TOOL_OUTPUT
from locus_memory.memory.extraction.source import Told, cited, source_of
from locus_memory.memory.extraction.thread import text_of
from locus_memory.memory.layers.episodes import Episode, EpisodeBook, Note, episode_put
from locus_memory.memory.layers.log import LogEntry, log_put, timed, write_log
from locus_memory.memory.layers.vitals import VitalsBook, VitalsChange
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.models import (
    EXPIRES_AT,
    ORIGIN,
    Extractor,
    Memory,
    MemoryChange,
    MemoryType,
    Origin,
    origin_of,
)
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.phrases.extractor import HeuristicExtractor
from locus_memory.memory.queue.jobs import Job, Outcome, sessions_of
from locus_memory.memory.queue.pace import A_CALL
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.secrets.detection import find_secret
from locus_memory.memory.validity import VALIDITY, checked
from locus_memory.messages import Message
from locus_memory.store.item import Put, check_key
from locus_memory.store.json_values import encode_json

__all__ = [
    "Distilled",
    "Extraction",
    "as_memories",
    "as_memory",
    "check_end",
    "check_length",
    "check_sentence",
]

_SHOWN: Final = 40
"""How many current memories an extractor gets."""

_LONGEST: Final = 2_000
"""The most characters of an extracted memory: a longer text is not a fact."""

_A_LINE: Final = 50
"""Characters of a line of a prompt beside its text."""

_SALIENCE: Final = 0.5

_Messages = tuple[tuple[str, str], ...]
"""The messages that state a memory, each as its thread and its id."""

_Draft = TypeVar("_Draft")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Distilled:
    """What an extraction makes of a session, checked and with its sources.

    Attributes:
        edits: The memories to write and to retire.
        notes: The notes.
        salience: The salience of the notes, from 0 to 1.
    """

    edits: list[Statement | Retirement]
    notes: list[Note]
    salience: float


class Extraction:
    """A service that turns the queued turns of sessions into an episode and facts.

    Args:
        extractor: Decides which memories to change.
        ledger: Writes the changes.
        recall: Finds the memories that may be changed.
        options: The limits of the extractor.
        holds: Returns whether jobs are still this process's, and none was erased; only for `run`.
    """

    def __init__(
        self,
        extractor: Extractor,
        ledger: Ledger,
        recall: Recall,
        options: MemoryOptions,
        *,
        holds: Callable[[Sequence[Job]], Awaitable[bool]] | None = None,
    ) -> None:
        self._extractor = extractor
        self._ledger = ledger
        self._recall = recall
        self._options = options
        self._holds = holds
        self._counts: dict[str, Counter[str]] = {}

    @contextmanager
    def counting(self, lane: str) -> Generator[Counter[str]]:
        """Count what is written of the sessions of a thread within the block."""
        counts = self._counts[lane] = Counter[str]()
        try:
            yield counts
        finally:
            self._counts.pop(lane, None)

    async def run(self, jobs: Sequence[Job]) -> Outcome:
        """Distil the turns of jobs, and write the changes of memories.

        Sessions that travel together have one episode: it is the last one's, and names the others.
        Without transactions, turns that an interrupted distillation wrote an episode of are done.

        Args:
            jobs: The jobs; those of a thread stand together.

        Returns:
            The outcome, for the queue to write with the deletion of the jobs.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store; the turns stay queued.
        """
        done = await self._done_before(jobs)
        return Outcome(done) if done else await self._distilled(jobs)

    async def _done_before(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that an episode tells of that was written, but they were not deleted."""
        if self._recall.store.capabilities.transactions or all(job.attempts <= 1 for job in jobs):
            return []
        told: list[tuple[str, int, int]] = []
        async for episode in EpisodeBook(self._recall.store).scan(Scope(jobs[0].namespace)):
            told += episode.all_turns
        return [
            job
            for job in jobs
            if any(
                thread == job.thread
                and first <= job.messages[0]["number"]
                and job.messages[-1]["number"] <= last
                for thread, first, last in told
            )
        ]

    async def _distilled(self, jobs: Sequence[Job]) -> Outcome:
        scope, entries = Scope(jobs[0].namespace), list[LogEntry]()
        try:
            with timed("distill", self._ledger.now(), entries.append):
                distilled = await self.distilled(scope, jobs)
        except Exception:
            await write_log(self._recall.store, scope, entries)
            raise
        if self._holds is not None and not await self._holds(jobs):
            return Outcome(jobs)
        puts = [log_put(scope, entry) for entry in entries if self.is_by_model]
        written, known = await self._ledger.write(scope, distilled.edits)
        episode = _episode_of(sessions_of(jobs), distilled)
        if episode is not None:
            # It comes last: where it is, everything else is.
            puts.append(episode_put(scope, episode))
        mentioned = _mentions(distilled.edits, known)
        return Outcome(
            jobs,
            partial(self._operations, jobs, mentioned, puts),
            partial(self._report, jobs, distilled, facts=len(written)),
        )

    async def _operations(
        self,
        jobs: Sequence[Job],
        mentioned: Mapping[str, _Messages],
        puts: Sequence[Put],
    ) -> list[Put]:
        """Return the writes, with the vital signs of the memories that sessions mention."""
        scope, at = Scope(jobs[0].namespace), jobs[-1].queued_at

        def mention(messages: _Messages) -> VitalsChange:
            return lambda _, vitals: vitals.mentioned(at, messages)

        changes = {name: mention(messages) for name, messages in mentioned.items()}
        operations = await VitalsBook(self._recall.store).planned(scope, changes)
        return [*operations, *puts]

    def _report(self, jobs: Sequence[Job], distilled: Distilled, *, facts: int) -> None:
        """Count and report the results."""
        found = {"episodes": int(bool(distilled.notes)), "facts": facts}
        self._counts.get(jobs[0].lane, Counter[str]()).update(found)
        emit(
            "memory.extracted",
            messages=sum(len(job.messages) for job in jobs),
            changes=len(distilled.edits),
            memories=facts,
            episodes=found["episodes"],
        )

    async def distilled(self, scope: Scope, jobs: Sequence[Job]) -> Distilled:
        """Return what an extractor makes of sessions, checked and with its sources.

        An extractor without `distill` makes changes only. It is shown no answers to requests for a
        secret. What its origin may not say is refused, and texts that look like secrets are left
        out.

        Args:
            scope: The scope of the memories.
            jobs: The jobs of the sessions; those of a thread stand together.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        options = self._options
        source = source_of(jobs, withholds=not options.allow_secrets, zone=options.zone())
        messages = [each.message for each in source]
        made = await self._made(scope, messages) if messages else Distillate()
        if not (made.changes or made.notes):
            return Distilled(edits=[], notes=[], salience=_SALIENCE)
        speakers = await in_thread(Speakers, messages)
        graded = [each.importance for each in made.notes if each.importance is not None]
        return Distilled(
            edits=self._kept(partial(self._edit, source, speakers), made.changes),
            notes=self._kept(partial(self._note, source, speakers), made.notes),
            salience=max(graded, default=_SALIENCE),
        )

    @property
    def distils(self) -> bool:
        """Whether the extractor reads sessions as a whole."""
        return callable(getattr(self._extractor, "distill", None))

    @property
    def is_by_model(self) -> bool:
        """Whether somebody else than the phrases extracts, who understands what is said."""
        return not isinstance(self._extractor, HeuristicExtractor)

    def seconds_for(self, said: Iterable[tuple[str, str]]) -> float:
        """Return how long an extraction may take: each prompt has the `extract_timeout`.

        Args:
            said: The role and the text of each message.
        """
        sizes = (
            min(len(text), TOOL_OUTPUT) if role == "tool" else len(text) for role, text in said
        )
        room: int = getattr(self._extractor, "room", A_CALL)
        return self._options.extract_timeout * (1 + sum(_A_LINE + each for each in sizes) // room)

    async def _made(self, scope: Scope, messages: Sequence[Message]) -> Distillate:
        """Return the answer of the extractor, which gets the memories that it may change."""
        texts = [(role_of(each), text_of(each)) for each in messages]
        said = "\n".join(text for role, text in texts if role != "tool")
        async with asyncio.timeout(self.seconds_for(texts)):
            known = await self._recall.find(scope, _SHOWN, said)
            if self.distils:
                ask: Any = self._extractor
                made: Distillate = await ask.distill(messages, known)
                return made
            return Distillate(changes=await self._extractor.extract(messages, known))

    def _kept(
        self, make: Callable[[_Draft], _Made | None], drafts: Iterable[_Draft]
    ) -> list[_Made]:
        """Return what is made of drafts; each refusal is reported."""
        kept: list[_Made] = []
        for draft in drafts:
            try:
                made = make(draft)
            except InvalidArgumentError as error:
                name = self._extractor.name
                emit("memory.change_refused", error=error, extractor=name, reason=str(error))
                continue
            if made is not None:
                kept.append(made)
        return kept

    def _note(self, source: Sequence[Told], speakers: Speakers, draft: NoteDraft) -> Note | None:
        """Return a note with its moment and its source; `None`: it looks like a secret.

        Raises:
            InvalidArgumentError: It may not be kept.
        """
        ids, thread, said_at = cited(source, draft.sources)
        told = speakers.origin(draft.sources, draft.text)
        note = Note(
            text=draft.text,
            kind=draft.kind,
            about=draft.about,
            at=said_at,
            thread=thread,
            message_ids=tuple(ids),
            origin="" if told is Origin.USER else told.value,
            **checked(
                {name: getattr(draft, name) or None for name in VALIDITY},
                self._options.zone(),
                leniently=True,
            ),
        )
        return note if self._may_hold("note", draft.text) else None

    def _edit(
        self, source: Sequence[Told], speakers: Speakers, change: MemoryChange | Memory
    ) -> Statement | Retirement | None:
        """Return the edit of a change, with its origin; `None`: it looks like a secret.

        Raises:
            InvalidArgumentError: It is no memory, or its origin may not say it.
        """
        named = change.sources if isinstance(change, MemoryChange) else ()
        ids, thread, said_at = cited(source, named)
        more: dict[str, Any] = {}
        # A memory that the caller's own function returns names its origin itself, but no person.
        if isinstance(change, MemoryChange):
            told = speakers.origin(change.sources, change.content, change.key)
            if change.type is MemoryType.FEEDBACK and told is Origin.ASSISTANT:
                # It may repeat a document that it was shown.
                raise InvalidArgumentError("a rule names a message of the user")
            if change.op == "delete":
                return Retirement(change.type, check_key(change.key), said_at, origin=told)
            more |= {} if told is Origin.USER else {ORIGIN: told.value}
            more |= {} if change.importance is None else {"importance": change.importance}
            more |= {name: each for name in VALIDITY if (each := getattr(change, name))}
            change = Memory(change.type, change.key, change.content)
        if thread:
            more["thread_id"] = thread
        more |= {"extracted_at": self._ledger.now(), "extractor": self._extractor.name}
        memory = as_memory(change)
        own = {ORIGIN: Origin.USER.value} if origin_of(memory) is Origin.PERSON else {}
        facts = {"message_ids": ids, **more, **memory.metadata, **own}
        metadata = checked(facts, self._options.zone(), leniently=True)
        memory = Memory(memory.type, check_key(memory.key), memory.content, metadata)
        encode_json(check_length(memory, _LONGEST).to_store_value())
        is_kept = self._may_hold(memory.type.value, memory.content, memory.key)
        return Statement(memory, said_at) if is_kept else None

    def _may_hold(self, type: str, *texts: str) -> bool:  # noqa: A002 - the field's word
        """Return whether texts may be kept; they may not, with an event, if one holds a secret."""
        found = () if self._options.allow_secrets else map(find_secret, texts)
        kind = next(filter(None, found), None)
        if kind is not None:
            emit("memory.secret_dropped", type=type, kind=kind)
        return kind is None


def _episode_of(sessions: Sequence[Sequence[Job]], distilled: Distilled) -> Episode | None:
    """Return the notes of sessions that were distilled together, as the last one's."""
    if not distilled.notes:
        return None
    *others, jobs = sessions
    return Episode(
        session_id=jobs[0].thread,
        agent_id=next((job.agent for job in reversed(jobs) if job.agent is not None), None),
        started_at=jobs[0].queued_at,
        ended_at=jobs[-1].queued_at,
        notes=tuple(distilled.notes),
        salience=distilled.salience,
        turns=_turns_of(jobs),
        joined_turns=tuple((other[0].thread, *_turns_of(other)) for other in others),
    )


def _turns_of(jobs: Sequence[Job]) -> tuple[int, int]:
    """Return the numbers of the first and the last message of a session."""
    numbers = [each["number"] for job in jobs for each in job.messages]
    return numbers[0], max(numbers)


def _mentions(
    edits: Iterable[Statement | Retirement], known: Mapping[str, str]
) -> dict[str, _Messages]:
    """Return the messages that state memories, by `current_key`.

    Args:
        edits: The changes.
        known: The keys of those that are known already, each with the known one's key.
    """
    found: dict[str, _Messages] = {}
    for memory in (edit.memory for edit in edits if isinstance(edit, Statement)):
        name = current_key(memory.type, memory.key)
        name = known.get(name, name)
        ids, thread = memory.metadata.get("message_ids", ()), memory.metadata.get("thread_id")
        stated = ((str(thread), str(each)) for each in ids if thread is not None)
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), *stated)))
    return found


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


def check_sentence(content: str, *, allow_secrets: bool = False) -> None:
    """Check that a sentence may be remembered.

    Raises:
        InvalidArgumentError: It has no visible character or more than 2,000 characters, or it looks
            like a secret, which is also the event `memory.secret_dropped`.
    """
    given: object = content
    if not isinstance(given, str) or not neutralise(given) or len(given) > _LONGEST:
        raise InvalidArgumentError(f"a memory has 1 to {_LONGEST:,} characters of content")
    kind = None if allow_secrets else find_secret(content)
    if kind is not None:
        emit("memory.secret_dropped", type=MemoryType.USER.value, kind=kind)
        raise InvalidArgumentError(f"this looks like a secret ({kind}), and is not kept")


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
