"""The storage for Strands; public as `integrations.strands`."""

# Strands is installed in an environment of its own, for it needs an older release of `mcp`.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

import base64
import builtins
import copy
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

# Their own storages share these checks, which are not public.
from strands.storage.search.keyword import KeywordSearchStrategy
from strands.storage.storage import _NAMESPACED, _normalize_key, _normalize_prefix
from strands.types.exceptions import StorageError

from locus_memory.backends.base import Backend
from locus_memory.errors import LocusMemoryError
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.reading import get_readable, readable
from locus_memory.store.base import BaseStore, all_keys
from locus_memory.store.item import Namespace, StoreItem, check_namespace

if TYPE_CHECKING:
    from strands.storage.search import SearchStrategy
    from strands.storage.storage import StorageSearchResult

__all__ = ["LocusStorage"]

_NAMESPACE: Final = ("strands_storage",)


class LocusStorage(OverStore):
    """A `Storage` of Strands that keeps bytes under keys in any store of the library.

    ```python
    storage = LocusStorage("postgresql:mydb")
    agent = Agent(storage=storage, session_manager=SnapshotSessionManager("ada"))
    ```

    It answers as the framework's `InMemoryStorage`, keys included: `/` separates folders. Bytes
    that are UTF-8 are stored as text, others as base64. A damaged value is read as missing, and
    told by the event `integrations.item_unreadable`; a write replaces it.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of these keys alone.
        search_strategy: Searches, and indexes what is written, instead of the framework's search
            by keywords.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self,
        where: str | BaseStore | Backend,
        *,
        namespace: Namespace = _NAMESPACE,
        search_strategy: SearchStrategy[Any] | None = None,
    ) -> None:
        self._place = check_namespace(namespace)
        self._take(where)
        self._prefix = ""
        self._search_strategy = search_strategy

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key.

        Raises:
            StorageError: The key or the data is invalid, or the database failed.
        """
        name = _normalize_key(key)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise StorageError(f"data is bytes, not {type(data).__name__}")
        with _storage_errors("write"):
            await self.store.put(self._place, self._prefix + name, _value(bytes(data)), text="")
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, name, data)
            except Exception as error:
                raise StorageError(f"Wrote '{key}' but indexing failed") from error

    async def read(self, key: str) -> bytes | None:
        """Return the bytes of a key, or `None` if there are none.

        Raises:
            StorageError: The key is invalid, or the database failed.
        """
        name = self._prefix + _normalize_key(key)
        with _storage_errors("read"):
            found = await get_readable(self.store, self._place, name, _bytes_of)
        return found[1] if found else None

    async def delete(self, key: str) -> None:
        """Delete the bytes of a key, if there are any.

        Raises:
            StorageError: The key is invalid, or the database failed.
        """
        name = self._prefix + _normalize_key(key)
        with _storage_errors("delete"):
            await self.store.delete(self._place, name)

    async def list(self, query: str = "") -> builtins.list[str]:
        """Return the keys that start with a prefix, in ascending order.

        Raises:
            StorageError: The prefix is invalid, or the database failed.
        """
        prefix = self._prefix + _normalize_prefix(query)
        with _storage_errors("list"):
            keys = await all_keys(self.store, self._place, prefix or None)
        return [key[len(self._prefix) :] for key in keys]

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Return the keys whose bytes match a query, the best first, with the bytes.

        Raises:
            StorageError: The database failed.
        """
        hits: builtins.list[StorageSearchResult]
        if self._search_strategy is not None:
            hits = await self._search_strategy.search(self, query)
            return hits
        with _storage_errors("search"):
            found = {
                item.key[len(self._prefix) :]: data
                async for item, data in readable(
                    self.store, self._place, _bytes_of, prefix=self._prefix or None
                )
            }
        # The framework reads one key after another; this way a search is few queries.
        hits = await KeywordSearchStrategy().search(_Snapshot(found), query)
        return hits

    def namespace(self, prefix: str) -> Self:
        """Return this storage with a prefix before all keys, like a folder of it."""
        label = _normalize_prefix(prefix).rstrip("/")
        scoped = copy.copy(self)
        scoped._prefix = f"{self._prefix}{label}/" if label else self._prefix  # noqa: SLF001 - its own
        scoped._owned = False  # noqa: SLF001 - its own
        # By this the framework knows that it must not add a prefix of its own.
        setattr(scoped, "_namespaced", _NAMESPACED)  # noqa: B010 - no attribute of this class
        return scoped


class _Snapshot:
    """The bytes of all keys at one moment, as the framework's search reads them."""

    def __init__(self, found: dict[str, bytes]) -> None:
        self._found = found

    async def list(self, query: str) -> builtins.list[str]:
        del query
        return [*self._found]

    async def read(self, key: str) -> bytes:
        return self._found[key]


def _value(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes_of(item: StoreItem) -> bytes:
    value = item.value
    if "text" in value:
        return str.encode(value["text"])
    return base64.b64decode(value["base64"], validate=True)


@contextmanager
def _storage_errors(verb: str) -> Generator[None]:
    """Raise the framework's error for all failures of the database."""
    try:
        yield
    except LocusMemoryError as error:
        raise StorageError(f"Failed to {verb}: {error}") from error
