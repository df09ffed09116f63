"""The plan of an erasure: it finds everything first, reports it, and erases it then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer
from locus_memory.checkpoint.pending import beside
from locus_memory.memory.batch import insisting, rewritten
from locus_memory.memory.forgetting.choice import (
    Choice,
    Kind,
    Name,
    Named,
    named,
    text_of,
    thread_of_job,
)
from locus_memory.memory.forgetting.threads import ThreadView, roots_of, view_thread
from locus_memory.memory.layers.blocks import drop_blocks
from locus_memory.memory.layers.episodes import EpisodeBook
from locus_memory.memory.layers.identity import read_record
from locus_memory.memory.ledger.revision import memory_in, read_memory
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.models import MemoryType
from locus_memory.memory.moments import read_moment
from locus_memory.memory.scope import Scope, current_key
from locus_memory.retrieval.turns import Turn, turn_puts
from locus_memory.store.base import BaseStore, all_namespaces, scan_all
from locus_memory.store.hidden_namespaces import further_vectors
from locus_memory.store.item import Namespace, StoreItem

__all__ = ["ForgetPlan", "ForgetReport", "ForgottenMemory"]

_BATCH: Final = 500

_NEIGHBOURS: Final = 4
"""How far away from it the search text of a turn may name another one."""

_SUMMARIES: Final = ("locus_memory", "summaries")
"""The default namespace of the summaries of a `SummarizingManager`."""

_SESSIONS: Final = ("sessions",)
"""The namespace of a `StoreContext` for sessions, by their ids, which are those of threads."""

_USERS: Final = "users"
_DEEPEST: Final = 4
"""The most labels of a prefix under which the name of a user is looked for."""

_SHARED: Final = {
    "sources": "an index of documents that users share",
    "tree": "a tree of resources that users share",
}
"""What users share, by a label of its namespaces; each has chunks beside it."""

_NAMESAKE: Final = "a user of this name under another prefix, which has to be named"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMemory:
    """One forgotten memory.

    Attributes:
        namespace: The scope of the memory.
        type: Its type.
        key: Its key.
        is_current: Whether its current version is erased; else only past ones are.
        past: The numbers of its erased past versions, ascending.
    """

    namespace: Namespace
    type: MemoryType
    key: str
    is_current: bool
    past: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """The data that was erased, or would be: names and numbers, never contents.

    Attributes:
        dry_run: Whether nothing was erased.
        namespace: The scope that was searched.
        memories: The memories.
        items: Other items, as namespace and key.
        jobs: The threads of the jobs that waited for extraction, one for each job.
        cursors: The threads of the extraction cursors.
        threads: The threads, with all their checkpoints.
        shared: Those of the threads that other users have checkpoints in, with these users.
        checkpoints: How many checkpoints these threads had.
        summaries: How many rolling summaries of these threads.
        vitals: How many records of vital signs.
        episodes: How many episodes, each as a whole.
        turns: How many turns of transcripts.
        log: How many entries of the log.
        sources: Threads that stay, with source messages of the memories, and forks that hold them.
        unreadable: Damaged threads whose user cannot be determined; they are not erased.
        kept: Namespaces that stay when a user is erased, each with the reason: indexes of documents
            and trees of resources that users share, and a user of this name under another prefix.
        has_store: Whether there is a store; else only threads were searched.
    """

    dry_run: bool
    namespace: Namespace
    memories: tuple[ForgottenMemory, ...] = ()
    items: tuple[tuple[Namespace, str], ...] = ()
    jobs: tuple[str, ...] = ()
    cursors: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    shared: tuple[tuple[str, tuple[str, ...]], ...] = ()
    checkpoints: int = 0
    summaries: int = 0
    vitals: int = 0
    episodes: int = 0
    turns: int = 0
    log: int = 0
    sources: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    kept: tuple[tuple[Namespace, str], ...] = ()
    has_store: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to erase."""
        layers = (self.vitals, self.episodes, self.turns, self.log)
        others = (self.memories, self.items, self.jobs, self.cursors, self.threads)
        return not any((*layers, *others))


@dataclass(slots=True)
class ForgetPlan:
    """A plan that finds all data of a target first, and erases it then.

    Attributes:
        store: The store.
        checkpointer: The threads'; `None`: no thread is erased.
        choice: The choice of the items that go.
        with_threads: Whether the threads of the sources are erased.
        found: The names of the items found, by kind.
        jobs: The threads of the jobs found.
        seen: All threads with checkpoints.
        holders: Threads that stay, and may hold source messages.
        shared: The other users of the threads that go.
        unreadable: Damaged threads whose user cannot be determined.
        thread_spaces: The namespaces with items of the threads.
        kept: What stays of what a user may have, with the reasons.
    """

    store: BaseStore
    checkpointer: BaseCheckpointer | None
    choice: Choice
    with_threads: bool
    found: dict[Kind, list[Name]] = field(default_factory=lambda: defaultdict(list))
    jobs: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    holders: list[str] = field(default_factory=list[str])
    shared: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    unreadable: list[str] = field(default_factory=list[str])
    thread_spaces: list[Namespace] = field(default_factory=list[Namespace])
    kept: dict[Namespace, str] = field(default_factory=dict[Namespace, str])

    async def find(
        self,
        thread_namespaces: Iterable[Namespace] = (),
        summary_namespaces: Iterable[Namespace] = (),
    ) -> None:
        """Find all data of the target; writes nothing."""
        scope, prefix, key = self.choice.scope, self.choice.prefix, self.choice.key
        of_key = [] if key is None else [scope.history(kind, key) for kind in MemoryType]
        history = of_key or [(*scope.namespace, "history")]
        own = self._roots() or [scope.current, *history, scope.vitals]
        others = [scope.cursors, scope.transcripts, scope.episodes]
        record = await read_record(self.store, scope)
        item: Any = record.item
        for each in () if self.choice.is_user else record.memories:
            # A dry run has not adopted it.
            name, value = current_key(each.type, each.key), each.to_store_value()
            self._note(replace(item, namespace=scope.current, key=name, value=value))
        await self._search(*own)
        if self.choice.tells(str(record.unreadable)):
            self.found["items"].append((scope.identity, item.key))
        roots = await self._find_threads()
        spaces = {_SUMMARIES, (*prefix.namespace, "summaries"), *summary_namespaces}
        for space in sorted(spaces) if roots else ():
            async for item in scan_all(self.store, space):
                root = item.value.get("root") if isinstance(item.value, Mapping) else None
                if isinstance(root, str) and root in roots:
                    self.found["summaries"].append((space, item.key))
        await self._search(*(() if self.choice.is_user else others), prefix.queue)
        await self._find_thread_items((_SESSIONS, *thread_namespaces))
        if self.choice.is_user:
            await self._find_kept(own)

    async def _search(self, *roots: Namespace) -> None:
        for root in roots:
            async for space in all_namespaces(self.store, root):
                async for item in scan_all(self.store, space):
                    self._note(item)

    def _note(self, item: StoreItem) -> None:
        """Note an item that goes."""
        kind = self.choice.kind_of(item)
        if self.choice.takes(kind, item):
            self.found[kind].append((item.namespace, item.key))
            if kind == "jobs":
                self.jobs.append(thread_of_job(item))

    async def _find_threads(self) -> set[str]:
        """Find the threads, and return the roots of those to erase."""
        roots, checkpointer, choice = set[str](), self.checkpointer, self.choice
        if checkpointer is None or not (choice.is_user or choice.sources):
            return roots
        async for name in paged(lambda after: checkpointer.list_threads(_BATCH, after=after)):
            view = await view_thread(checkpointer, name)
            self.seen.add(name)
            if not view.is_readable and not view.users:
                self.unreadable.append(name)
            elif self._is_wanted(view) and self.with_threads:
                choice.threads[name] = view.checkpoints
                if others := sorted(view.users - {choice.user_id}):
                    self.shared[name] = others
                roots |= await roots_of(checkpointer, view)
            elif self._is_wanted(view):
                self.holders.append(name)
        for name in {beside(thread) for thread in choice.threads} & self.seen:
            view = await view_thread(checkpointer, name)
            if not view.users:
                choice.threads[name] = view.checkpoints
        return roots

    def _is_wanted(self, view: ThreadView) -> bool:
        """Return whether a thread is the user's, or may hold a source of the memories.

        In a fork of its thread, a message is recognised only by a unique id.
        """
        user_id, sources = self.choice.user_id, self.choice.sources
        is_theirs = user_id in view.users
        is_free = is_theirs or user_id is None or not view.users
        if self.choice.is_user:
            return is_theirs
        return is_free and sources.are_of(view.thread_id, view.message_ids)

    async def _find_thread_items(self, spaces: Iterable[Namespace]) -> None:
        threads = sorted({*self.choice.threads, *await self._unsaved_threads()})
        for space in ((*each, thread) for each in dict.fromkeys(spaces) for thread in threads):
            names = [
                (below, item.key)
                async for below in all_namespaces(self.store, space)
                async for item in scan_all(self.store, below)
            ]
            if names:
                self.thread_spaces.append(space)
                self.found["items"] += names

    async def _unsaved_threads(self) -> set[str]:
        """Return the threads that only the user's cursors and waiting messages name.

        If another user has a thread of the same name, it is not erased for either of them.
        """
        if not self.choice.is_user:
            return set()
        prefix, marks = self.choice.prefix.namespace, self.choice.scope.cursors
        names = {*(key for _, key in self.found["cursors"]), *self.jobs} - self.seen
        async for space in all_namespaces(self.store, prefix, suffix=marks[-1:]):
            if space != marks:
                shared = await self.store.get_batch([(space, name) for name in sorted(names)])
                names -= {name for _, name in shared}
        return names

    async def _find_kept(self, own: Collection[Namespace]) -> None:
        """Find what stays of documents, of resources, and under other prefixes."""
        for label, why in _SHARED.items():
            async for *root, _ in all_namespaces(self.store, suffix=(label,)):
                # What is below another user is theirs alone.
                if _USERS not in root and await self.store.list_namespaces((*root, "chunks"), 1):
                    self.kept[tuple(root)] = why
        for depth in range(1, _DEEPEST + 1):
            pattern = (*["*"] * depth, _USERS, str(self.choice.user_id))
            for space in await self.store.list_namespaces(pattern, _BATCH, max_depth=len(pattern)):
                # In a listing, a user of the name "*" is any other.
                if space[-2:] == pattern[-2:] and space not in own:
                    self.kept[space] = _NAMESAKE

    def report(self, *, dry_run: bool, has_store: bool) -> ForgetReport:
        """Return the report of the data to erase."""
        found, threads = self.found, self.choice.threads
        return ForgetReport(
            dry_run=dry_run,
            namespace=self.choice.scope.namespace,
            memories=tuple(self._memories()),
            items=tuple(found["items"]),
            jobs=tuple(self.jobs),
            cursors=tuple(thread for _, thread in found["cursors"]),
            threads=tuple(threads),
            shared=tuple((name, tuple(others)) for name, others in self.shared.items()),
            checkpoints=sum(threads.values()),
            summaries=len(found["summaries"]),
            vitals=len(found["vitals"]),
            episodes=len(found["episodes"]),
            turns=len(found["turns"]),
            log=len(found["log"]),
            sources=tuple(self.holders),
            unreadable=tuple(self.unreadable),
            kept=tuple(sorted(self.kept.items())),
            has_store=has_store,
        )

    def _memories(self) -> list[ForgottenMemory]:
        """Return one forgotten memory for each type and key, in this order."""
        current = {named(*name) for name in self.found["current"]}
        past: dict[Named, list[int]] = {name: [] for name in current}
        for name in self.found["past"]:
            past.setdefault(named(*name), []).append(int(name[1]) if name[1].isdecimal() else 0)
        return [
            ForgottenMemory(
                namespace=self.choice.scope.namespace,
                type=name[0],
                key=name[1],
                is_current=name in current,
                past=tuple(sorted(past[name])),
            )
            for name in sorted(past)
        ]

    async def carry_out(self) -> None:
        """Erase the data found; data that leads to other data is erased last.

        Waiting messages could bring a memory back, so they are erased first. Summaries and the
        items of a thread are found through the thread, and a thread through its cursor and the
        memories that were extracted from it, with their vital signs. These and recorded turns
        lead to episodes as well. What may show a memory goes before it, and once more after it,
        since a run may have built it meanwhile.
        """
        is_idle = self.choice.key is not None and not any(self.found.values())
        if not self.choice.is_user:
            await _reword(self.store, self.choice, self.found)
        await self._erase("jobs", "episodes", "turns", "log", "items", "summaries")
        await self._clear(self.thread_spaces)
        await self._erase("cursors")
        for thread_id in self.choice.threads:
            if self.checkpointer is not None:
                await self.checkpointer.delete(thread_id)
        memories: tuple[Kind, ...] = ("vitals", "past", "current")
        for kinds in () if is_idle else (memories, ()):
            await EpisodeBook(self.store).drop_condensed(self.choice.scope)
            await drop_blocks(self.store, self.choice.scope, erases=True)
            await self._erase(*kinds)
        await self._clear(self._roots())
        await self.store.compact()

    async def _clear(self, roots: Iterable[Namespace]) -> None:
        """Erase items written since, and the further vectors of items."""
        for root in roots:
            for space in (root, further_vectors(root)):
                await self.store.clear_namespace(space, recursive=True)

    def _roots(self) -> list[Namespace]:
        """Return the namespaces that go as a whole."""
        user_id, is_user = self.choice.user_id, self.choice.is_user
        return [self.choice.scope.namespace, (_USERS, user_id)] if user_id and is_user else []

    async def _erase(self, *kinds: Kind) -> None:
        for kind in kinds:
            names = self.found[kind]
            for start in range(0, len(names), _BATCH):
                await self.store.delete_batch(names[start : start + _BATCH])


async def _reword(store: BaseStore, choice: Choice, found: Mapping[Kind, Sequence[Name]]) -> None:
    """Take what is about to be erased out of what stays.

    These are the search texts of current memories, which name their past versions, and those of
    turns, which name the turns around them.

    Args:
        store: The store.
        choice: The choice of the items that go.
        found: The names of these items, those of a namespace together.

    Raises:
        VersionConflictError: Another writer changes an item without pause.
        BackendError: The store failed.
    """
    for space, names in groupby(found.get("turns", ()), itemgetter(0)):
        await _reword_turns(store, space, {key for _, key in names})
    for space, names in groupby(found.get("past", ()), itemgetter(0)):
        if choice.memories.get(named(space, "")) is False:
            gone = {key for _, key in names}
            await _reword_memory(store, choice.scope, space, gone)


@insisting
async def _reword_memory(
    store: BaseStore, scope: Scope, history: Namespace, gone: Collection[str]
) -> None:
    item = await store.get_item(scope.current, current_key(*named(history, "")))
    memory = None if item is None else read_memory(item)
    if item is not None and memory is not None:
        records = [each async for each in scan_all(store, history) if each.key not in gone]
        past = {int(each.key): memory_in(each.value) for each in records if each.key.isdecimal()}
        await store.put_batch([await rewritten(store, item, search_text(memory, past))])


@insisting
async def _reword_turns(store: BaseStore, space: Namespace, gone: Collection[str]) -> None:
    turns = [item async for item in scan_all(store, space)]
    left = [place for place, item in enumerate(turns) if item.key not in gone]
    puts = turn_puts(space, [_turn(turns[place]) for place in left])
    near = {
        place + step
        for place, item in enumerate(turns)
        if item.key in gone
        for step in range(-_NEIGHBOURS, _NEIGHBOURS + 1)
    }
    await store.put_batch(
        [
            await rewritten(store, turns[place], put.text or "")
            for place, put in zip(left, puts, strict=True)
            if place in near
        ]
    )


def _turn(item: StoreItem) -> Turn:
    speaker = item.metadata.get("speaker")
    return Turn(
        text=text_of(item.value),
        speaker=speaker if isinstance(speaker, str) else "",
        said_at=read_moment(item.metadata.get("date")),
    )
