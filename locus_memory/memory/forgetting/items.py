"""The search for the items of a user or a memory, before they are erased."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.forgetting.threads import Source
from locus_memory.memory.layers.vitals import Vitals
from locus_memory.memory.ledger.revision import past_memory, read_memory
from locus_memory.memory.ledger.wording import search_text
from locus_memory.memory.models import Memory, MemoryType
from locus_memory.memory.scope import Scope, current_key, split_key
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.store.text import query_words, segment, stem, tokens

__all__ = [
    "Findings",
    "Layer",
    "Words",
    "find_below",
    "find_jobs",
    "find_key",
    "find_matching",
    "find_summaries",
    "find_vitals",
]

Name = tuple[Namespace, str]
Layer = Literal["identity", "vitals", "episodes", "turns", "log"]

_PAGE: Final = 500
_TYPES: Final = frozenset(MemoryType)


@dataclass(slots=True)
class Findings:
    """The names of the items found, by kind.

    Attributes:
        current: Current memories.
        past: Past versions of memories.
        cursors: Extraction cursors; the key is the thread.
        jobs: Jobs that wait for extraction, each with its thread.
        layers: The items of the layers beside the memories, by layer.
        others: All other items.
        sources: The source messages of the memories, each with the moments of these statements.
        contents: The contents of the memories.
        mentions: The keys of the episodes that mention the memories.
    """

    current: list[Name] = field(default_factory=list[Name])
    past: list[Name] = field(default_factory=list[Name])
    cursors: list[Name] = field(default_factory=list[Name])
    jobs: dict[Name, str] = field(default_factory=dict[Name, str])
    layers: dict[Layer, list[Name]] = field(default_factory=dict[Layer, list[Name]])
    others: list[Name] = field(default_factory=list[Name])
    sources: dict[Source, set[str]] = field(default_factory=dict[Source, set[str]])
    contents: set[str] = field(default_factory=set[str])
    mentions: set[str] = field(default_factory=set[str])

    def add_memory(self, item: StoreItem, memory: Memory | None, *, is_current: bool) -> None:
        """Add a version of a memory, and its sources."""
        (self.current if is_current else self.past).append((item.namespace, item.key))
        if memory is not None:
            moment = memory.metadata.get("valid_from")
            for source in _sources(memory):
                said = self.sources.setdefault(source, set())
                said.update([moment] if isinstance(moment, str) else ())
            self.contents.add(memory.content)

    def add_to_layer(self, layer: Layer, item: StoreItem) -> None:
        """Add an item of a layer."""
        self.layers.setdefault(layer, []).append((item.namespace, item.key))


class Words:
    """The words of a query, all of which must be in a text.

    Raises:
        InvalidArgumentError: The query has no words.
    """

    def __init__(self, query: str) -> None:
        self._stems = {stem(word) for word in query_words(query)}
        if not self._stems:
            raise InvalidArgumentError("a query to forget by needs at least one word")
        # Scripts without spaces: the characters of a word must be together as well.
        self._runs = [run.casefold() for run in query.split() if segment(run) != run]

    def are_in(self, text: str) -> bool:
        """Return whether a text has all the words, in any form and any order."""
        folded = text.casefold()
        return self._stems <= set(tokens(text)) and all(run in folded for run in self._runs)

    def are_in_memory(self, memory: Memory | None) -> bool:
        """Return whether a memory has all the words in its content or its key."""
        return memory is not None and self.are_in(search_text(memory))


async def find_below(store: BaseStore, root: Namespace, scope: Scope, found: Findings) -> None:
    """Add all items of a namespace and its descendants, and none of another namespace."""
    for namespace in await namespaces_below(store, root):
        async for item in scan_all(store, namespace):
            _sort_in(item, scope, found)


async def namespaces_below(store: BaseStore, root: Namespace) -> list[Namespace]:
    """Return a namespace and all its descendants that hold an item."""
    found: list[Namespace] = []
    after: Namespace | None = None
    # A label "*" of the namespace matches any label: keep only the real descendants.
    while page := await store.list_namespaces(root, _PAGE, after=after):
        found += [each for each in page if each[: len(root)] == root]
        after = page[-1]
    return found


def _sort_in(item: StoreItem, scope: Scope, found: Findings) -> None:
    depth = len(scope.namespace)
    is_ours = item.namespace[:depth] == scope.namespace
    match item.namespace[depth:] if is_ours else ():
        case ("current",) if split_key(item.key):
            found.add_memory(item, read_memory(item), is_current=True)
        case ("history", kind, _) if kind in _TYPES:
            found.add_memory(item, past_memory(item), is_current=False)
        case ("cursors",):
            found.cursors.append((item.namespace, item.key))
        case ("queue",):
            found.jobs[item.namespace, item.key] = _thread_of_job(item)
        case ("identity" | "vitals" | "episodes" | "log" as layer,):
            found.add_to_layer(layer, item)
        case ("tending",) | ("log", "runs"):
            found.add_to_layer("log", item)
        case ("transcript", _):
            found.add_to_layer("turns", item)
        case ("blocks",):
            pass  # They show what other items hold, and go with any of these.
        case _:
            found.others.append((item.namespace, item.key))


async def find_key(
    store: BaseStore, scope: Scope, kinds: Sequence[MemoryType], key: str, found: Findings
) -> None:
    """Add the memories under a key, with all their versions."""
    for kind in kinds:
        item = await store.get_item(scope.current, current_key(kind, key))
        if item is not None:
            found.add_memory(item, read_memory(item), is_current=True)
        async for record in scan_all(store, scope.history(kind, key)):
            found.add_memory(record, past_memory(record), is_current=False)


async def find_matching(
    store: BaseStore, scope: Scope, kinds: Sequence[MemoryType], words: Words, found: Findings
) -> None:
    """Add the memories that have all the words; of other memories, the past versions that do."""
    for kind in kinds:
        matching: set[str] = set()
        async for item in scan_all(store, scope.current, prefix=current_key(kind, "")):
            memory = read_memory(item)
            if memory is not None and words.are_in_memory(memory):
                matching.add(memory.key)
                found.add_memory(item, memory, is_current=True)
        async for record in _records(store, scope, kind):
            version = past_memory(record)
            if record.namespace[-1] in matching or words.are_in_memory(version):
                found.add_memory(record, version, is_current=False)


async def _records(store: BaseStore, scope: Scope, kind: MemoryType) -> AsyncIterator[StoreItem]:
    root = (*scope.namespace, "history", kind.value)
    for namespace in await namespaces_below(store, root):
        if len(namespace) == len(root) + 1:
            async for record in scan_all(store, namespace):
                yield record


async def find_vitals(store: BaseStore, scope: Scope, found: Findings) -> None:
    """Add the vital signs of the memories, and what they name: messages and episodes.

    They name every statement of a memory, also those that changed no version of it.
    """
    current = {key for _, key in found.current}
    past = {current_key(MemoryType(space[-2]), space[-1]) for space, _ in found.past} - current
    names = [(scope.current, key) for key in sorted(past)]
    kept = {key for _, key in await store.get_batch(names)}
    for key in sorted(current | (past - kept)):
        item = await store.get_item(scope.vitals, key)
        if item is None:
            continue
        found.add_to_layer("vitals", item)
        with suppress(InvalidArgumentError):
            vitals = Vitals.from_value(item.value)
            found.mentions.update(vitals.sources)
            for message in vitals.messages:
                # No episode has this moment: those of these statements are named.
                found.sources.setdefault(message, {""})


async def find_jobs(
    store: BaseStore, queue: Namespace, wanted: Callable[[Mapping[str, Any]], bool]
) -> dict[Name, str]:
    """Return the wanted jobs of a queue, each with its thread."""
    return {
        (item.namespace, item.key): _thread_of_job(item)
        async for item in scan_all(store, queue)
        if isinstance(item.value, Mapping) and wanted(item.value)
    }


async def find_summaries(
    store: BaseStore, namespace: Namespace, roots: Collection[str]
) -> list[Name]:
    """Return the rolling summaries in a namespace whose conversations have one of some roots."""
    found: list[Name] = []
    wanted = {"root": {"$in": sorted(roots)}}
    while page := await store.search(namespace, limit=_PAGE, filter=wanted, offset=len(found)):
        found += [(item.namespace, item.key) for item in page]
    return found


def _thread_of_job(item: StoreItem) -> str:
    value = item.value
    thread = value.get("thread") if isinstance(value, Mapping) else None
    return thread if isinstance(thread, str) else item.key


def _sources(memory: Memory) -> list[Source]:
    thread_id, ids = memory.metadata.get("thread_id"), memory.metadata.get("message_ids")
    thread = thread_id if isinstance(thread_id, str) else None
    names = [name for name in ids if isinstance(name, str)] if isinstance(ids, list) else []
    # If a memory names only its thread, any message of it may be the source.
    return [(thread, name) for name in names or ["#"]]
