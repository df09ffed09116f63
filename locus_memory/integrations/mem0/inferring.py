"""The memories that an extractor makes of the messages of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from typing_extensions import override

from locus_memory.integrations.mem0.shapes import PART, Said, mark_of, part_of
from locus_memory.memory.extraction.extraction import Extraction
from locus_memory.memory.extraction.thread import SPEAKERS
from locus_memory.memory.forms import ROLES
from locus_memory.memory.ledger.ledger import Ledger, Retirement, Statement
from locus_memory.memory.ledger.likeness import made_up_key
from locus_memory.memory.models import ORIGIN, Extractor, Memory, MemoryType
from locus_memory.memory.options import MemoryOptions
from locus_memory.memory.queue.jobs import Job
from locus_memory.memory.queue.turns import transcribed
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.store.base import BaseStore

__all__ = ["Inference"]


class _PartRecall(Recall):
    """A recall of the memories of one agent and run, under the keys that they have alone."""

    def __init__(
        self,
        store: BaseStore,
        embedder: Embedder | None,
        clock: Callable[[], float],
        part: Mapping[str, Any],
    ) -> None:
        super().__init__(store, embedder, clock=clock)
        self._mark = mark_of(part)
        terms = {name: part.get(name, {"$exists": False}) for name in PART}
        self._own = Selection(filter={f"metadata.{name}": term for name, term in terms.items()})

    @override
    async def find(
        self, scope: Scope, limit: int, query: str | None = None, **options: Any
    ) -> list[Memory]:
        found = await super().find(scope, limit, query, **options, selection=self._own)
        return [replace(each, key=each.key.removesuffix(self._mark)) for each in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """A service that makes memories of messages: those of an agent and a run stay apart.

    Attributes:
        store: The store, also of the transcript.
        extractor: Decides which memories to change.
        ledger: Reads the memories.
        embedder: Finds the memories that may be changed.
        options: The limits of the extractor, and what is recorded.
        clock: Returns seconds since the epoch.
    """

    store: BaseStore
    extractor: Extractor
    ledger: Ledger
    embedder: Embedder | None
    options: MemoryOptions
    clock: Callable[[], float]

    async def edits(
        self, scope: Scope, said: Sequence[Said], told: Mapping[str, Any]
    ) -> list[Statement | Retirement]:
        """Record messages in the transcript, and return the changes that they make.

        What the extractor notes beside facts is a memory as well.

        Args:
            scope: The scope of the memories.
            said: The messages.
            told: The metadata of each memory, with the agent and the run.

        Raises:
            TimeoutError: The extractor took too long.
            Exception: Any error of the extractor or the store.
        """
        named = [each._replace(role=ROLES.get(each.role, "")) for each in said]
        spoken = [each for each in named if each.role in SPEAKERS]
        now, thread = self.ledger.now(), uuid4().hex
        if not spoken:
            return []
        job = Job.unqueued(scope.namespace, thread, spoken, now)
        is_on, is_open = self.options.transcript, self.options.allow_secrets
        await self.store.put_batch(await transcribed(job, is_on=is_on, allow_secrets=is_open))
        recall = _PartRecall(self.store, self.embedder, self.clock, part_of(told))
        extraction = Extraction(self.extractor, self.ledger, recall, self.options)
        made = await extraction.distilled(scope, [job])
        source = {"thread_id": thread, "extracted_at": now, "extractor": self.extractor.name}
        edits = list(made.edits)
        for note in made.notes:
            metadata = {**source, "message_ids": list(note.message_ids)}
            metadata |= {ORIGIN: note.origin} if note.origin else {}
            key = made_up_key(note.text)
            edits.append(Statement(Memory(MemoryType.USER, key, note.text, metadata)))
        return [await self._within(scope, each, told) for each in edits]

    async def _within(
        self, scope: Scope, edit: Statement | Retirement, told: Mapping[str, Any]
    ) -> Statement | Retirement:
        """Return a change under a key that no other agent or run has, nor had."""
        part = part_of(told)
        marked = edit.key + mark_of(part)
        own = await self.ledger.current(scope, edit.type, marked)
        other = await self.ledger.current(scope, edit.type, edit.key)
        known = [other] if other else await self.ledger.history(scope, edit.type, edit.key)
        is_free = own is None and all(part_of(each.metadata) == part for each in known)
        key = edit.key if is_free else marked
        if isinstance(edit, Retirement):
            return replace(edit, key=key)
        metadata = {**edit.memory.metadata, **told}
        return replace(edit, memory=replace(edit.memory, key=key, metadata=metadata))
