"""The memory service for ADK; public as `integrations.adk`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content
from typing_extensions import override

from locus_memory.backends.base import Backend
from locus_memory.integrations.adk.events import json_of, state_of
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import (
    DAMAGE,
    decoded,
    labels_below,
    readable,
)
from locus_memory.registry import get_store
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.retrieval.hybrid import HybridSearch, Mode
from locus_memory.retrieval.ranking.fields import Fields
from locus_memory.store.base import BaseStore, all_keys
from locus_memory.store.item import (
    Namespace,
    Put,
    StoreItem,
    check_identifier,
    check_limit,
    check_namespace,
    quick_put,
)

if TYPE_CHECKING:
    from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["LocusMemoryService"]

_NAMESPACE: Final = ("adk",)
_NO_SESSION: Final = "__unknown_session_id__"
"""The session of events that are added without one, as in ADK's own services."""

_FIELDS: Final = Fields(text=("text",), speaker=("author",))


class LocusMemoryService(OverStore, BaseMemoryService):
    """A memory service of ADK over a hybrid search in any store of the library.

    Each event with a content is one memory of its user, in all the user's sessions. A search finds
    the memories that have any of the words, and with an embedder those that mean the same, the best
    first. A memory that was deleted is not added again with its session. A damaged memory is left
    out and told by the event `integrations.item_unreadable`.

    Args:
        where: A provider string, a backend or a store of the library. Only the store of a string is
            closed here.
        embedder: Makes a vector of each memory and each query; `None`: text search alone.
        namespace: The namespace of all memories in the store.
        limit: At most this many memories answer a query; ADK's own return ten.

    Raises:
        InvalidArgumentError: The namespace or the limit is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        embedder: Embedder | None = None,
        namespace: Namespace = _NAMESPACE,
        limit: int = 10,
    ) -> None:
        self._namespace = check_namespace(namespace)
        self._limit = check_limit(limit)
        self._take(where)
        self._embedder = embedder
        self._search = HybridSearch(self.store, embedder, fields=_FIELDS)

    @override
    async def add_session_to_memory(self, session: Session) -> None:
        """Make the events of a session its memories; those of events that are gone are deleted.

        Raises:
            ValueNotSerializableError: JSON cannot hold a content. Nothing is written.
            BackendError: The database failed.
        """
        user = self._user(session.app_name, session.user_id)
        namespace = (*user, check_identifier(session.id, "session.id"))
        await self._add(namespace, session.events)
        there = {f"={event.id}" for event in session.events if _is_said(event)}
        gone = [key for key in await all_keys(self.store, namespace) if key not in there]
        await self.store.delete_batch([(namespace, key) for key in gone])

    @override
    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add the events whose ids are new in the session; entries keep the metadata.

        Raises:
            ValueNotSerializableError: JSON cannot hold a content or the metadata; nothing is
                written.
            BackendError: The database failed.
        """
        user = self._user(app_name, user_id)
        await self._add((*user, session_id or _NO_SESSION), events, custom_metadata)

    @override
    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories that are no events; an entry with the id of another replaces it.

        Raises:
            ValueNotSerializableError: JSON cannot hold an entry; nothing is written.
            BackendError: The database failed.
        """
        namespace = (*self._user(app_name, user_id), _NO_SESSION)
        await self._write(
            [
                _put(
                    namespace,
                    entry.id or uuid4().hex,
                    entry.content,
                    f"memories[{number}]",
                    author=entry.author,
                    timestamp=entry.timestamp,
                    metadata={**entry.custom_metadata, **(custom_metadata or {})},
                )
                for number, entry in enumerate(memories)
            ]
        )

    @override
    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the memories of a user that fit a query best, the best first.

        Raises:
            InvalidArgumentError: The query is not a string.
            BackendError: The database failed.
        """
        user = self._user(app_name, user_id)
        # Without an embedder, a search for both would be told as one that lacks vectors.
        mode: Mode | None = "text" if self._embedder is None else None
        options: Any = {"limit": self._limit, "recursive": True}
        try:
            found = await self._search.search(user, query, mode=mode, **options)
        except DAMAGE:
            # One query for many items fails on a damaged one.
            search = HybridSearch(await self._undamaged(user), fields=_FIELDS)
            found = await search.search(user, query, mode="text", **options)
        items = [hit.item for hit in found]
        read = [decoded(each.namespace, each.key, _entry, each) for each in items]
        return SearchMemoryResponse(memories=[each for each in read if each is not None])

    @override
    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete the memory with an id, in every session of the user."""
        if not memory_id:
            return
        user, key = self._user(app_name, user_id), f"={memory_id}"
        names = [((*user, session), key) async for session in labels_below(self.store, user)]
        if await self.store.delete_batch(names):
            await self.store.put(self._deleted(user), key, None, text="")

    async def _undamaged(self, user: Namespace) -> BaseStore:
        """Return a copy of the memories of a user without the damaged ones."""
        copy = get_store("memory")
        async for session in labels_below(self.store, user):
            async for item, text in readable(self.store, (*user, session), _text):
                await copy.put(item.namespace, item.key, item.value, text=text)
        return copy

    async def _add(
        self,
        namespace: Namespace,
        events: Sequence[Event],
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add the events that have a content, and are neither there nor deleted."""
        puts = [
            _put(
                namespace,
                event.id,
                event.content,
                f"events[{number}]",
                author=event.author,
                timestamp=event.timestamp,
                metadata=metadata or {},
            )
            for number, event in enumerate(events)
            if _is_said(event)
        ]
        known = set(await all_keys(self.store, namespace))
        known.update(await all_keys(self.store, self._deleted(namespace[:-1])))
        new = {put.key: put for put in reversed(puts) if put.key not in known}
        await self._write(list(new.values())[::-1])

    async def _write(self, puts: list[Put]) -> None:
        """Store memories; with an embedder, those that have words with their vectors."""
        if self._embedder is not None:
            puts = await embedded_puts(puts, self._embedder, [each.text or "" for each in puts])
        if puts:
            await self.store.put_batch(puts)

    def _user(self, app_name: object, user_id: object) -> Namespace:
        app = check_identifier(app_name, "app_name")
        return (*self._namespace, "memories", app, check_identifier(user_id, "user_id"))

    def _deleted(self, user: Namespace) -> Namespace:
        return (*self._namespace, "deleted_memories", *user[-2:])


def _is_said(event: Event) -> bool:
    return bool(event.content and event.content.parts)


def _put(
    namespace: Namespace,
    memory_id: str,
    content: Content | None,
    name: str,
    *,
    author: str | None,
    timestamp: float | str | None,
    metadata: Mapping[str, object],
) -> Put:
    """Return the put of a memory, which is found by the words of its content.

    Raises:
        ValueNotSerializableError: JSON cannot hold it; the error names the field.
    """
    said = content or Content()
    text = " ".join(part.text for part in said.parts or () if part.text)
    value = {
        "id": memory_id,
        "author": author,
        "timestamp": timestamp,
        "content": json_of(said, f"{name}.content"),
        "custom_metadata": state_of(metadata, f"{name}.custom_metadata"),
        "text": text,
    }
    return quick_put(namespace, f"={memory_id}", value, text=text)


def _text(item: StoreItem) -> str:
    return str(item.value["text"])


def _entry(item: StoreItem) -> MemoryEntry:
    value = item.value
    moment = value["timestamp"]
    if isinstance(moment, int | float):
        moment = datetime.fromtimestamp(moment).astimezone().replace(tzinfo=None).isoformat()
    return MemoryEntry(
        id=value["id"],
        author=value["author"],
        content=Content.model_validate(value["content"]),
        timestamp=moment,
        custom_metadata=value["custom_metadata"],
    )
