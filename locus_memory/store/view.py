"""Views of a store: bound to one namespace, or to one user and session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from locus_memory.errors import InvalidArgumentError
from locus_memory.events import emit
from locus_memory.retrieval.embedders.base import Embedder
from locus_memory.retrieval.embedders.marks import without_mark
from locus_memory.retrieval.embedding import embedded_puts
from locus_memory.retrieval.hybrid import HybridSearch, Mode
from locus_memory.store.base import BaseStore, has_semantic_search
from locus_memory.store.item import Namespace, Put, SemanticSearchResult, StoreItem, check_namespace
from locus_memory.store.json_values import encode_json
from locus_memory.store.opening import StoreUser, store_of
from locus_memory.store.text import index_text

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["NamespacedStore", "StoreContext"]


@dataclass(frozen=True, slots=True, init=False)
class NamespacedStore(StoreUser):
    """A store bound to one namespace; the verbs are those of `BaseStore` without the namespace.

    A view closes its store only if it created it from a provider string; `async with` does that.

    Attributes:
        store: The store.
        namespace: The namespace of all calls.
    """

    store: BaseStore
    namespace: Namespace
    _owned: bool = field(init=False, repr=False, compare=False)

    def __init__(self, store: str | BaseStore | Backend, namespace: Namespace) -> None:
        _fill(self, store, namespace=check_namespace(namespace))

    def scoped(self, *suffix: str) -> NamespacedStore:
        """Return a view of the namespace with more labels."""
        return NamespacedStore(self.store, (*self.namespace, *suffix))

    async def put(
        self,
        key: str,
        value: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        """Insert or replace an item; return its new version."""
        return await self.store.put(
            self.namespace, key, value, metadata, ttl=ttl, if_version=if_version, text=text
        )

    async def get(self, key: str) -> Any:
        """Return the value, or `None` if there is no item."""
        return await self.store.get(self.namespace, key)

    async def get_item(self, key: str) -> StoreItem | None:
        """Return the full item, or `None`."""
        return await self.store.get_item(self.namespace, key)

    async def exists(self, key: str) -> bool:
        """Whether the item exists; a stored `None` exists."""
        return await self.store.exists(self.namespace, key)

    async def delete(self, key: str, *, if_version: int | None = None) -> bool:
        """Delete an item and its vector; return whether it existed."""
        return await self.store.delete(self.namespace, key, if_version=if_version)

    async def list_keys(
        self, limit: int = 100, *, prefix: str | None = None, after: str | None = None
    ) -> list[str]:
        """Return keys in ascending code point order."""
        return await self.store.list_keys(self.namespace, limit, prefix=prefix, after=after)

    async def scan(
        self,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
        descending: bool = False,
    ) -> list[StoreItem]:
        """Return full items in key order."""
        return await self.store.scan(
            self.namespace, limit, prefix=prefix, after=after, descending=descending
        )

    async def clear(self, *, recursive: bool = False) -> int:
        """Delete every item, with `recursive` also those of the descendants."""
        return await self.store.clear_namespace(self.namespace, recursive=recursive)

    async def put_batch(self, items: Iterable[tuple[Any, ...]]) -> list[int]:
        """Put several items, tuples `(key, value)` or `(key, value, metadata)`."""
        return await self.store.put_batch([(self.namespace, *item) for item in items])

    async def get_batch(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of the items that exist, by key."""
        found = await self.store.get_batch([(self.namespace, key) for key in keys])
        return {key: value for (_, key), value in found.items()}

    async def delete_batch(self, keys: Iterable[str]) -> int:
        """Delete several items; return how many existed."""
        return await self.store.delete_batch([(self.namespace, key) for key in keys])

    async def search(
        self,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        offset: int = 0,
        recursive: bool = False,
    ) -> list[StoreItem]:
        """Find items by text and filter."""
        return await self.store.search(
            self.namespace, query, limit, filter=filter, offset=offset, recursive=recursive
        )

    async def put_with_embedding(
        self,
        key: str,
        value: Any,
        embedding: Sequence[float],
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        """Put an item together with its vector."""
        return await self.store.put_with_embedding(
            self.namespace,
            key,
            value,
            embedding,
            metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
        )

    async def get_embedding(self, key: str) -> list[float] | None:
        """Return the item's vector scaled to unit length, or `None` if it has none."""
        return await self.store.get_embedding(self.namespace, key)

    async def search_by_embedding(
        self,
        query_embedding: Sequence[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        *,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[SemanticSearchResult]:
        """Find items by cosine similarity, the best first."""
        return await self.store.search_by_embedding(
            self.namespace,
            query_embedding,
            limit,
            threshold,
            metadata_filter,
            offset=offset,
            recursive=recursive,
        )


def _fill(user: StoreUser, store: str | BaseStore | Backend, **fields: Any) -> None:
    """Set the fields of a frozen object."""
    made, owned = store_of(store)
    for name, value in {"store": made, "_owned": owned, **fields}.items():
        object.__setattr__(user, name, value)


@dataclass(frozen=True, slots=True, init=False)
class StoreContext(StoreUser):
    """A store bound to one user and session, for tools that remember.

    A context closes its store only if it created it from a provider string; `async with` does that.

    Memories of a user are in `("users", user_id, "memories")`, data of a session is in
    `("sessions", session_id)`, and shared data is in `("global",)`.

    Attributes:
        store: The store.
        user_id: The user, if there is one; verbs about a user raise `InvalidArgumentError`
            without it.
        session_id: The session, if there is one.
        embedder: If the store has semantic search, `remember` also stores a vector of each value's
            text, and `search_memories` also uses vector search.
    """

    store: BaseStore
    user_id: str | None = None
    session_id: str | None = None
    embedder: Embedder | None = None
    _owned: bool = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        store: str | BaseStore | Backend,
        user_id: str | None = None,
        session_id: str | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        _fill(self, store, user_id=user_id, session_id=session_id, embedder=embedder)

    def for_user(self, user_id: str | None = None) -> NamespacedStore:
        """Return the view of `("users", user_id)`, by default of the context's own user."""
        chosen = self.user_id if user_id is None else user_id
        if chosen is None:
            raise InvalidArgumentError("this context has no user_id: StoreContext(store, user_id=)")
        return NamespacedStore(self.store, ("users", chosen))

    def for_session(self, session_id: str | None = None) -> NamespacedStore:
        """Return the view of `("sessions", session_id)`, by default of the context's own."""
        chosen = self.session_id if session_id is None else session_id
        if chosen is None:
            raise InvalidArgumentError(
                "this context has no session_id: StoreContext(store, session_id=)"
            )
        return NamespacedStore(self.store, ("sessions", chosen))

    async def remember(
        self,
        key: str,
        value: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
    ) -> int:
        """Store a memory of the user; return its version.

        If the embedder fails, an event reports it, and the memory is stored without a vector.
        """
        space = self._memories().namespace
        put = Put(namespace=space, key=key, value=value, metadata=metadata, ttl=ttl)
        [version] = await self.store.put_batch([await self._embedded(put)])
        return version

    async def _embedded(self, put: Put) -> Put:
        """Return the put with its vector and the mark of the vector's model."""
        embedder = self.embedder
        if embedder is None or not await has_semantic_search(self.store):
            return put
        # The model is not called for an item that the store would refuse.
        encode_json(put.value)
        try:
            [put] = await embedded_puts([put], embedder, [index_text(put.value)])
        except Exception as error:  # noqa: BLE001 - reported; the memory is stored without a vector
            emit("memory.embed_failed", error=error, texts=1)
        return put

    async def remember_with_embedding(
        self,
        key: str,
        value: Any,
        embedding: Sequence[float],
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
    ) -> int:
        """Store a memory of the user together with its vector; return its version."""
        return await self._memories().put_with_embedding(key, value, embedding, metadata, ttl=ttl)

    async def forget(self, key: str) -> bool:
        """Delete a memory of the user; return whether it existed."""
        return await self._memories().delete(key)

    async def get_user_memory(self, key: str) -> Any:
        """Return the value of a memory of the user, or `None`."""
        return await self._memories().get(key)

    async def search_memories(
        self,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
    ) -> list[StoreItem]:
        """Find memories of the user; without a query, the newest.

        With a query, the best come first, ranked by `HybridSearch`: with text search and, if there
        is an embedder, vector search.

        Raises:
            ConfigurationError: The vectors are of another model than the embedder;
                `locus-memory reembed` recomputes them.
        """
        space = self._memories()
        if query is None:
            return list(map(without_mark, await space.search(None, limit, filter=filter)))
        # Without an embedder only text search is requested: nothing is degraded.
        mode: Mode | None = "text" if self.embedder is None else None
        search = HybridSearch(self.store, self.embedder)
        found = await search.search(space.namespace, query, limit, filter=filter, mode=mode)
        return [hit.item for hit in found]

    async def search_memories_semantic(
        self,
        query_embedding: Sequence[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
    ) -> list[SemanticSearchResult]:
        """Find memories of the user by their vectors."""
        hits = await self._memories().search_by_embedding(
            query_embedding, limit, threshold, metadata_filter
        )
        return [replace(hit, item=without_mark(hit.item)) for hit in hits]

    def _memories(self) -> NamespacedStore:
        return self.for_user().scoped("memories")

    async def get_global(self, key: str) -> Any:
        """Return a shared value, or `None`."""
        return await self.store.get(("global",), key)

    async def set_global(
        self, key: str, value: Any, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Store a shared value; return its version."""
        return await self.store.put(("global",), key, value, metadata)
