"""The plan of an erasure: it finds everything first, and erases it then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from locus_memory._internal.quoting import quote
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.errors import CheckpointError, InvalidArgumentError
from locus_memory.memory.forgetting.items import (
    Findings,
    Layer,
    Name,
    Words,
    find_below,
    find_jobs,
    find_key,
    find_matching,
    find_summaries,
    find_vitals,
)
from locus_memory.memory.forgetting.layers import LayerErasure, entries, words_of
from locus_memory.memory.forgetting.places import Places
from locus_memory.memory.forgetting.report import ForgetReport, ForgottenMemory
from locus_memory.memory.forgetting.threads import ThreadView, all_threads, holds, roots_of
from locus_memory.memory.forgetting.words import take_out_words
from locus_memory.memory.layers.blocks import drop_blocks
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.layers.identity import IdentityBook
from locus_memory.memory.models import MemoryType
from locus_memory.memory.scope import Scope, split_key, user_namespace
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.hidden_namespaces import further_vectors
from locus_memory.store.item import Namespace, check_identifier, check_key, check_namespace

__all__ = ["ForgetPlan", "ForgetTarget"]

_BATCH: Final = 500
_LAYERS: Final[tuple[Layer, ...]] = ("episodes", "turns", "identity", "log")
"""The layers that are erased before the threads, in this order."""

_SUMMARIES: Final = ("locus_memory", "summaries")
"""The default namespace of the summaries of a `SummarizingManager`."""

_SESSIONS: Final = ("sessions",)
"""The namespace of a `StoreContext` for sessions, by their ids, which are those of threads."""

_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class ForgetTarget:
    """The target of an erasure; without a key and words, all data of the user.

    Attributes:
        scope: The scope of the memories.
        prefix: The prefix of the namespaces of the queue and the summaries.
        user_id: The user of the scope, if it has one.
        kinds: The types of memories.
        key: One key, or `None`.
        words: The words that a memory must contain, or `None`.
    """

    scope: Scope
    prefix: Scope
    user_id: str | None
    kinds: tuple[MemoryType, ...]
    key: str | None
    words: Words | None

    @classmethod
    def of(
        cls,
        user_id: str | None,
        key: str | None,
        kind: MemoryType | str | None,
        query: str | None,
        prefix: Namespace,
    ) -> ForgetTarget:
        """Return the target that the arguments of `forget` describe.

        Raises:
            InvalidArgumentError: They describe no target, or two.
        """
        if key is not None and query is not None:
            raise InvalidArgumentError("forget by key or by query, not by both")
        if key is None and query is None:
            if user_id is None:
                raise InvalidArgumentError("give a target to forget: a user_id, a key or a query")
            if kind is not None:
                raise InvalidArgumentError("a type needs a key or a query")
        scope = check_namespace(prefix)
        if user_id is not None:
            scope = user_namespace(prefix, check_identifier(user_id, "a user id"))
        return cls(
            Scope(scope),
            Scope(prefix),
            user_id,
            tuple(MemoryType) if kind is None else (_checked_type(kind),),
            None if key is None else check_key(key),
            None if query is None else Words(query),
        )

    @property
    def is_user(self) -> bool:
        """Whether the target is all data of the user."""
        return self.key is None and self.words is None

    def may_erase(self, view: ThreadView) -> bool:
        """Return whether a thread belongs to no other user."""
        return self.user_id is None or not view.users or self.user_id in view.users


def _checked_type(kind: MemoryType | str) -> MemoryType:
    try:
        return MemoryType(kind)
    except ValueError:
        known = ", ".join(MemoryType)
        raise InvalidArgumentError(
            f"a memory's type is one of {known}, not {quote(kind)}"
        ) from None


@dataclass(slots=True)
class ForgetPlan:
    """A plan that finds all data of a target first, and erases it then."""

    store: BaseStore
    checkpointer: BaseCheckpointer | None
    target: ForgetTarget
    with_threads: bool
    found: Findings = field(default_factory=Findings)
    threads: dict[str, int] = field(default_factory=dict[str, int])
    thread_roots: set[str] = field(default_factory=set[str])
    summaries: list[Name] = field(default_factory=list[Name])
    sources: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    thread_spaces: list[Namespace] = field(default_factory=list[Namespace])
    layers: LayerErasure | None = None

    async def find(
        self,
        thread_namespaces: Iterable[Namespace] = (),
        summary_namespaces: Iterable[Namespace] = (),
    ) -> None:
        """Find all data of the target; writes nothing."""
        await self._find_items()
        if self.checkpointer is not None and (self.target.is_user or self.found.sources):
            async for view in all_threads(self.checkpointer):
                self.seen.add(view.thread_id)
                await self._look_at(self.checkpointer, view)
        await self._find_summaries(summary_namespaces)
        await self._find_jobs()
        if not self.target.is_user:
            await self._find_cursors()
            await self._find_in_layers()
        await self._find_thread_items((_SESSIONS, *thread_namespaces))

    async def _find_thread_items(self, spaces: Iterable[Namespace]) -> None:
        threads = sorted({*self.threads, *await self._threads_without_checkpoints()})
        for space in ((*each, thread) for each in dict.fromkeys(spaces) for thread in threads):
            known = len(self.found.others)
            await find_below(self.store, space, self.target.scope, self.found)
            if len(self.found.others) > known:
                self.thread_spaces.append(space)

    async def _threads_without_checkpoints(self) -> set[str]:
        """Return the threads that only the user's cursors and waiting messages name.

        If another user has a thread of the same name, it is not erased for either of them.
        """
        if not self.target.is_user:
            return set()
        marks = self.target.scope.cursors
        names = {name for space, name in self.found.cursors if space == marks}
        names = {*names, *self.found.jobs.values()} - self.seen
        prefix = self.target.prefix.namespace
        async for space in _spaces(self.store, prefix, (marks[-1],)):
            if space != marks:
                shared = await self.store.get_batch([(space, name) for name in sorted(names)])
                names -= {name for _, name in shared}
        return names

    async def _find_items(self) -> None:
        store, target, found = self.store, self.target, self.found
        if target.words is not None:
            await find_matching(store, target.scope, target.kinds, target.words, found)
        elif target.key is not None:
            await find_key(store, target.scope, target.kinds, target.key, found)
        else:
            for root in self._roots():
                await find_below(store, root, target.scope, found)
        if not target.is_user:
            await find_vitals(store, target.scope, found)

    async def _find_in_layers(self) -> None:
        target, found = self.target, self.found
        # Only memories have a type: with one, the layers are searched for the memories themselves.
        is_open = target.words is not None and target.kinds == tuple(MemoryType)
        words = [target.words] if is_open and target.words else words_of(found.contents)
        places = Places(found.sources)
        self.layers = LayerErasure(self.store, target.scope, words, places, self.threads)
        await self.layers.find(found)

    async def _count_identity(self) -> int:
        if self.layers is not None:
            return self.layers.identity
        stored = await IdentityBook(self.store).read(self.target.scope)
        return entries(stored) or len(self.found.layers.get("identity", ()))

    def _roots(self) -> list[Namespace]:
        user_id = self.target.user_id
        return [] if user_id is None else [self.target.scope.namespace, ("users", user_id)]

    async def _look_at(self, checkpointer: BaseCheckpointer, view: ThreadView) -> None:
        try:
            is_wanted = await self._is_wanted(checkpointer, view)
        except CheckpointError:
            is_wanted = False
            view = replace(view, is_readable=False)
        if not is_wanted:
            if not view.is_readable and not view.users:
                self.unreadable.append(view.thread_id)
        elif self.with_threads:
            self.threads[view.thread_id] = view.checkpoints
            self.thread_roots |= await roots_of(checkpointer, view)
        else:
            self.sources.append(view.thread_id)

    async def _is_wanted(self, checkpointer: BaseCheckpointer, view: ThreadView) -> bool:
        if self.target.is_user:
            return self.target.user_id in view.users
        if not self.target.may_erase(view):
            return False
        return await holds(checkpointer, view, self.found.sources)

    async def _find_summaries(self, others: Iterable[Namespace]) -> None:
        roots = sorted(self.thread_roots)
        spaces = {_SUMMARIES, (*self.target.prefix.namespace, "summaries"), *others}
        for space in sorted(spaces):
            for batch in _batches(roots):
                self.summaries += await find_summaries(self.store, space, batch)

    async def _find_jobs(self) -> None:
        if not (self.target.is_user or self.found.sources or self.target.words):
            return
        queue, places = self.target.prefix.queue, Places(self.found.sources)
        wanted = partial(self._is_wanted_job, places)
        self.found.jobs |= await find_jobs(self.store, queue, wanted)

    def _is_wanted_job(self, places: Places, job: Mapping[str, Any]) -> bool:
        namespace, scope = job.get("namespace"), self.target.scope.namespace
        if not isinstance(namespace, list):
            return False
        if self.target.is_user:
            return tuple(namespace[: len(scope)]) == scope
        if tuple(namespace) != scope:
            return False
        return job.get("thread") in self.threads or any(
            map(self._is_source(places, job), _said(job))
        )

    def _is_source(
        self, places: Places, job: Mapping[str, Any]
    ) -> Callable[[Mapping[str, Any]], bool]:
        thread, words = job.get("thread"), self.target.words

        def is_source(message: Mapping[str, Any]) -> bool:
            names = (message.get("id"), f"#{message.get('number')}")
            if any(places.has(thread, name) for name in names):
                return True
            return words is not None and words.are_in(str(message.get("content")))

        return is_source

    async def _find_cursors(self) -> None:
        names = [(self.target.scope.cursors, thread_id) for thread_id in self.threads]
        self.found.cursors += await self.store.get_batch(names)

    async def report(self, *, dry_run: bool, has_store: bool) -> ForgetReport:
        """Return the report of the data to erase."""
        found = self.found
        return ForgetReport(
            dry_run=dry_run,
            namespace=self.target.scope.namespace,
            memories=tuple(_memories(found, self.target.scope)),
            items=tuple(found.others),
            vectors=await self._count_vectors(),
            jobs=tuple(found.jobs.values()),
            cursors=tuple(thread for _, thread in found.cursors),
            threads=tuple(self.threads),
            checkpoints=sum(self.threads.values()),
            summaries=len(self.summaries),
            identity=await self._count_identity(),
            vitals=len(found.layers.get("vitals", ())),
            episodes=len(found.layers.get("episodes", ())),
            turns=len(found.layers.get("turns", ())),
            log=len(found.layers.get("log", ())),
            sources=tuple(self.sources),
            unreadable=tuple(self.unreadable),
            has_store=has_store,
        )

    async def _count_vectors(self) -> int:
        if not await has_semantic_search(self.store):
            return 0
        layers = [name for names in self.found.layers.values() for name in names]
        names = (*self.found.current, *self.found.others, *layers)
        vectors = [await self.store.get_embedding(*name) for name in names]
        return sum(vector is not None for vector in vectors)

    async def carry_out(self) -> None:
        """Erase the data found; data that leads to other data is erased last.

        Waiting messages could bring a memory back, so they are erased first. Summaries and the
        items of a thread are found through the thread, and a thread through its cursor and the
        memories that were extracted from it, with their vital signs. These and recorded turns
        lead to episodes as well.
        """
        found = self.found
        if self.layers is not None:
            await self.layers.carry_out()
        layers = (found.layers.get(layer, ()) for layer in _LAYERS)
        for names in (found.jobs, self.summaries, *layers, found.others):
            await self._erase(names)
        await self._clear(self.thread_spaces)
        await self._erase(found.cursors)
        for thread_id in self.threads:
            if self.checkpointer is not None:
                await self.checkpointer.delete(thread_id)
        await take_out_words(self.store, self.target.scope, self._past_of_others())
        for names in (found.layers.get("vitals", ()), found.past, found.current):
            await self._erase(names)
        await EpisodeBook(self.store).drop_condensed(self.target.scope)
        await drop_blocks(self.store, self.target.scope, erases=True)
        if self.target.is_user:
            await self._clear(self._roots())
        await self.store.compact()

    async def _clear(self, roots: Iterable[Namespace]) -> None:
        """Erase items written since, and the further vectors of items."""
        for root in roots:
            for space in (root, further_vectors(root)):
                await self.store.clear_namespace(space, recursive=True)

    def _past_of_others(self) -> list[Name]:
        """Return the past versions to erase of memories that stay."""
        current = {named for _, key in self.found.current if (named := split_key(key))}
        return [
            (namespace, number)
            for namespace, number in self.found.past
            if (MemoryType(namespace[-2]), namespace[-1]) not in current
        ]

    async def _erase(self, names: Iterable[Name]) -> None:
        for batch in _batches(list(names)):
            await self.store.delete_batch(batch)


async def _spaces(
    store: BaseStore, prefix: Namespace, suffix: Namespace
) -> AsyncIterator[Namespace]:
    after: Namespace | None = None
    while page := await store.list_namespaces(prefix, _BATCH, suffix=suffix, after=after):
        for space in page:
            yield space
        after = page[-1]


def _batches(names: Sequence[_Name]) -> Iterator[Sequence[_Name]]:
    for start in range(0, len(names), _BATCH):
        yield names[start : start + _BATCH]


def _said(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = job.get("messages")
    listed = [*(messages if isinstance(messages, list) else ()), job.get("context")]
    return [each for each in listed if isinstance(each, Mapping)]


def _memories(found: Findings, scope: Scope) -> Iterator[ForgottenMemory]:
    """Yield one forgotten memory for each type and key, in this order."""
    current = {named for _, key in found.current if (named := split_key(key))}
    past: dict[tuple[MemoryType, str], list[int]] = {}
    for namespace, number in found.past:
        numbers = past.setdefault((MemoryType(namespace[-2]), namespace[-1]), [])
        numbers.append(int(number) if number.isdecimal() else 0)
    for kind, key in sorted(current | set(past)):
        yield ForgottenMemory(
            namespace=scope.namespace,
            type=kind,
            key=key,
            is_current=(kind, key) in current,
            past=tuple(sorted(past.get((kind, key), ()))),
        )
