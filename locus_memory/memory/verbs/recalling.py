"""Recall on request: the memories for a query, now or then, and the plan of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from locus_memory.memory.base import query_and_limit
from locus_memory.memory.blend import Blend
from locus_memory.memory.layers.runs import SeenRun
from locus_memory.memory.ledger.ledger import Ledger
from locus_memory.memory.models import Memory, MemoryType, Origin
from locus_memory.memory.reading.reader import Plan, Reader
from locus_memory.memory.reading.uses import Afterwards
from locus_memory.memory.recall.as_of import RecallAt
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.verbs.single import kinds_of, moment_of
from locus_memory.store.item import check_limit

__all__ = ["RecallVerbs"]

_Find = Callable[..., Awaitable[list[Memory]]]


class RecallVerbs:
    """The part of a memory manager that recalls."""

    retrieve_limit: int
    _listed_of_type: int
    _scope: Scope
    _ledger: Ledger
    _recall: Recall
    _blend: Blend | None
    _reader: Reader
    _afterwards: Afterwards

    async def retrieve(
        self,
        query: str | int | None = None,
        limit: int | str | None = None,
        *,
        type: MemoryType | str | None = None,  # noqa: A002 - the field's word
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the field's word
        min_score: float | None = None,
        origins: Iterable[Origin | str] | None = None,
        at: datetime | str | None = None,
    ) -> list[Memory]:
        """Return current memories, the best first.

        With a query, text search, and vector search where there is an embedder, decide together
        as in `HybridSearch`; what is missing to the limit is filled up with the newest. Without
        a query, the newest come first, at most `max_memories` of a type. Where the store cannot
        search, the newest come first. A search that fails is reported as an event, and the others
        or the newest must do.

        With `min_score`, or with a `blend`, only what the search finds is
        returned: nothing fills the rest. With the blend `"trust"`, what a query finds is counted
        afterwards, in the background; see `Vitals`.

        With `at`, the memories that were current at that moment are searched, those of the history
        included. They are read one by one, and embedded again if there is an embedder.

        Args:
            query: Their subject; of a long text, the two ends are read.
            limit: At most this many; `None`: the `retrieve_limit`.
            type: Only memories of this type.
            filter: Only memories that match; see `locus_memory.store.filters`. Fields are `key`,
                `content` and, for example, `metadata.importance`.
            min_score: Only memories with at least this relevance to the query, from 0 to 1; see
                `Hit.relevance`. It replaces the `min_relevance` of a blend.
            origins: Only memories of these origins, such as `["user", "person"]`.
            at: The moment; as for `memories`.

        Raises:
            InvalidArgumentError: Something else than a query and a limit, an unknown type or
                origin, an invalid filter or `min_score`, `min_score` without a query, or no moment.
            ConfigurationError: The vectors of the memories are of another model than the
                embedder; `locus-memory reembed` recomputes them. A run reports that as an event,
                and recalls by words meanwhile.
            BackendError: The store failed.
        """
        about, most = query_and_limit(query, limit)
        most = self.retrieve_limit if most is None else most
        kind = None if type is None else kinds_of(type)[0]
        selection = Selection(type=kind, filter=filter, min_score=min_score, origins=origins)
        if at is None:
            find: _Find = partial(self._recall.find, self._scope, strict=True)
        else:
            past = RecallAt(self._ledger, self._recall.embedder)
            find = partial(past.find, self._scope, moment_of(at))
        find = partial(find, selection=selection, blend=self._blend)
        found = await (find(most, about) if about else self._listed(find, most))
        if at is None:
            self._train(about, found)
        return found

    async def _listed(self, find: _Find, most: int) -> list[Memory]:
        """Return the newest memories, at most `max_memories` of a type."""
        wanted = most
        while True:
            found = await find(wanted)
            counts: Counter[MemoryType] = Counter()
            listed: list[Memory] = []
            for memory in found:
                counts[memory.type] += 1
                if counts[memory.type] <= self._listed_of_type:
                    listed.append(memory)
            if len(listed) >= most or len(found) < wanted:
                return listed[:most]
            wanted *= 4

    async def plan(
        self,
        query: str | None,
        *,
        explain: bool = False,
    ) -> Plan:
        """Return what the first run of a new thread with this message is shown; nothing is counted.

        Only a decision of the gate's model is written, as an entry of the log.

        Args:
            query: The message of the user.
            explain: Whether to return `Plan.lines` as well: each line that was found, and its
                place.

        Raises:
            BackendError: The store failed.
        """
        return await self._reader.plan(self._scope, query, explain=explain)

    async def saw(self, thread_id: str | None = None, *, limit: int = 20) -> list[SeenRun]:
        """Return what the model was shown in the newest runs of a thread, the newest first.

        A run is recorded in the background after its start, and kept for 30 days. A scope has at
        most 1,000 records: the oldest go. With `transcript=False`, off the record, or if the
        process ends at once, a run has none. When something is erased, all of its scope go too.

        Args:
            thread_id: The thread; `None`: all threads.
            limit: At most this many.

        Raises:
            InvalidArgumentError: `limit` is not an integer of at least 0.
            BackendError: The store failed.
        """
        check_limit(limit)
        await self._afterwards.wait()
        return await self._reader.runs.newest(self._scope, thread_id, limit)

    def _train(self, query: str | None, found: Sequence[Memory], thread: str = "") -> None:
        """Count what a query recalled, if that decides about the order of later recalls."""
        if query and self._blend is not None and self._blend.name == "trust":
            names = [current_key(each.type, each.key) for each in found]
            self._afterwards.count_uses(self._scope, names, thread)
