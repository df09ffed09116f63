"""The memory store for Strands; public as `integrations.strands`."""

# Strands is installed in an environment of its own, for it needs an older release of `mcp`.
# mypy: disable-error-code="import-not-found, misc"
# pyright: reportMissingImports=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from strands.memory.types import MemoryEntry, MemoryStore

from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError, ValueNotSerializableError
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import decoded
from locus_memory.store.base import BaseStore
from locus_memory.store.item import (
    Namespace,
    check_identifier,
    check_namespace,
    check_text,
)

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig
    from strands.memory.types import Metadata, SearchOptions

    from locus_memory.retrieval.embedders.base import Embedder
    from locus_memory.retrieval.hybrid import Hit

__all__ = ["LocusMemoryStore"]

_NAMESPACE: Final = ("strands_memory",)
_MOST: Final = 10


class LocusMemoryStore(OverStore, MemoryStore):
    """A `MemoryStore` of Strands over any store of the library.

    ```python
    memories = LocusMemoryStore("notes", "sqlite:./agent.db")
    agent = Agent(memory_manager=MemoryManager(stores=[memories], add_tool_config=True))
    ```

    A search ranks by text, and with an embedder by meaning as well. The same content is stored
    once, whichever process adds it again. A memory of another form is left out of the hits, and
    told by the event `integrations.item_unreadable`.

    Args:
        name: The name of the store in the framework's tools, unique in a memory manager.
        where: A provider string, a backend or a store of the library. Only the store of a string is
            closed here.
        namespace: The namespace of the memories; each name has its own below it. Bind it to the
            user who is logged in.
        description: What the store is for, as the model reads it.
        max_search_results: At most this many hits; `None`: 10.
        writable: Whether the framework may add memories.
        extraction: The framework's settings for memories that it extracts itself.
        embedder: Makes the vectors of the memories, and of a query.

    Raises:
        InvalidArgumentError: An argument is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        name: str,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self.name = check_identifier(name, "name")
        self._place = (*check_namespace(namespace), name)
        self.description = description
        self.max_search_results = _most(max_search_results)
        self.writable = writable
        self.extraction = extraction
        self._embedder = embedder
        self._take(where)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.store!r})"

    async def initialize(self) -> None:
        """Connect; the framework calls this before the agent runs."""
        await self.store.open()

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Return the memories that match a query, the best first, each with its `score`.

        Raises:
            InvalidArgumentError: `max_search_results` is no positive number.
            StoreCapabilityError: The store has no text search, and there is no embedder.
        """
        asked = _most((options or {}).get("max_search_results"))
        if not query.strip():
            return []
        # Retrieval is slow to import, and a store may be written alone.
        from locus_memory.retrieval.hybrid import HybridSearch  # noqa: PLC0415

        limit = asked or self.max_search_results or _MOST
        found = await HybridSearch(self.store, self._embedder).search(self._place, query, limit)
        entries = (decoded(each.item.namespace, each.item.key, _entry, each) for each in found)
        return [each for each in entries if each is not None]

    async def add(self, content: str, metadata: Metadata | None = None) -> str:
        """Add a memory, or replace the metadata of the same one.

        Returns:
            The key of the memory.

        Raises:
            InvalidArgumentError: The store is not writable, or the content is empty.
            ValueNotSerializableError: JSON cannot hold the metadata; the error names the field.
        """
        if not self.writable:
            raise InvalidArgumentError(f"the store {quote(self.name)} is not writable")
        if not (check_text(content, "content") or "").strip():
            raise InvalidArgumentError("content is a text that is not empty")
        key = hashlib.sha256(content.strip().encode()).hexdigest()[:32]
        value = {"content": content, "metadata": metadata or {}}
        try:
            await self._target().put(self._place, key, value, text=content)
        except ValueNotSerializableError as error:
            raise ValueNotSerializableError(error.path[2:], error.reason) from None
        return key

    def _target(self) -> BaseStore:
        if self._embedder is None:
            return self.store
        from locus_memory.store.wrappers.embedding import EmbeddingStore  # noqa: PLC0415 - as above

        return EmbeddingStore(self.store, self._embedder)


def _most(count: Any) -> int | None:
    if count is not None and (type(count) is not int or count < 1):
        raise InvalidArgumentError(
            f"max_search_results is an integer of at least 1, not {quote(count)}"
        )
    return count


def _entry(hit: Hit) -> MemoryEntry:
    value = hit.item.value
    metadata = {**value["metadata"], "score": hit.score}
    if not isinstance(value["content"], str):
        raise TypeError("the content of a memory is a text")
    return MemoryEntry(content=value["content"], metadata=metadata)
