"""Encryption at rest, for any backend."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.errors import EncryptionError, VersionConflictError
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.batches import as_operations, as_puts, as_restored
from locus_memory.store.encoding import encode_namespace
from locus_memory.store.filters import Condition, matches, parse_filter
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreCapabilities,
    StoreItem,
    check_key,
    check_limit,
    check_namespace,
    check_text,
)
from locus_memory.store.json_values import decode_json, encode_json
from locus_memory.store.wrappers.base import StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["EncryptingStore"]

_FIRST_FETCH: Final = 100

_T = TypeVar("_T")
_Put = TypeVar("_Put", bound=Put)


class EncryptingStore(StoreWrapper):
    """A store that encrypts values with AES-GCM; the inner store never sees plain values.

    A value is bound to its namespace, its key and the id of its encryption key. A value that was
    moved, altered or written by another program raises `EncryptionError`, from every verb that
    reads it.

    Namespaces, keys, metadata, times, and the vectors given to `put_with_embedding` are not
    encrypted: put no secrets there. There is no text search, because the inner store has no text
    to index. Filters work as usual, over metadata and value, but this store evaluates them after
    it decrypts as many items as necessary.

    Two changes are not detected: an older ciphertext of the same item that is written back, and
    any change to a part that is not encrypted, metadata included.

    To encrypt a store that holds plain values, use `accept_plain=True` and `rotate`.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        keys: Keys of 16, 24 or 32 bytes by their ids, or `EncryptionKeys`; old ones still decrypt.
        active: The id of the key that encrypts; not with `EncryptionKeys`.
        clock: Returns seconds since the epoch; pass the clock of the inner store.
        accept_plain: Read a value that is not encrypted as it is, and let `rotate` encrypt it.
            Use it only until all values are encrypted: until then, anyone who can write to the
            database can forge plain values. A value in the form of an encrypted one is never
            accepted as a plain value.

    Raises:
        ConfigurationError: A key is not bytes or has another length, or `active` is not a key.
        MissingDriverError: The `cryptography` library is not installed.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        keys: Mapping[str, bytes] | EncryptionKeys,
        *,
        active: str | None = None,
        clock: Callable[[], float] = time.time,
        accept_plain: bool = False,
    ) -> None:
        super().__init__(store)
        self._keys = EncryptionKeys.of(keys, active, accept_plain=accept_plain)
        self._clock = clock

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return replace(self.inner.capabilities, search=False)

    def _seal(self, namespace: Namespace, key: str, value: Any, text: str | None) -> dict[str, str]:
        """Return the value for the inner store, which gets no text to index."""
        check_text(text, "text")
        active = self._keys.active
        where = _place(check_namespace(namespace), check_key(key), active)
        data = self._keys.encrypt(encode_json(value), where)
        return {"key_id": active, "aes_gcm": base64.b64encode(data).decode()}

    def _is_plain(self, value: Any) -> bool:
        """Return whether a value is read as it is."""
        return self._keys.accept_plain and not _is_envelope(value)

    def _unseal(self, namespace: Namespace, key: str, envelope: Any) -> Any:
        if self._is_plain(envelope):
            return envelope
        key_id, data = _parts(namespace, key, envelope)
        name = f"{quote(key)} in {quote(namespace)}"
        return decode_json(self._keys.decrypt(key_id, data, _place(namespace, key, key_id), name))

    def _open(self, item: StoreItem) -> StoreItem:
        return replace(item, value=self._unseal(item.namespace, item.key, item.value))

    def _sealed(self, put: _Put) -> _Put:
        return replace(put, value=self._seal(put.namespace, put.key, put.value, put.text), text="")

    @override
    async def put(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        sealed = self._seal(namespace, key, value, text)
        return await self.inner.put(
            namespace, key, sealed, metadata, ttl=ttl, if_version=if_version, text=""
        )

    @override
    async def put_with_embedding(
        self,
        namespace: Namespace,
        key: str,
        value: Any,
        embedding: Sequence[float],
        metadata: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        if_version: int | None = None,
        text: str | None = None,
    ) -> int:
        sealed = self._seal(namespace, key, value, text)
        return await self.inner.put_with_embedding(
            namespace, key, sealed, embedding, metadata, ttl=ttl, if_version=if_version, text=""
        )

    @override
    async def get(self, namespace: Namespace, key: str) -> Any:
        item = await self.get_item(namespace, key)
        return None if item is None else item.value

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        item = await self.inner.get_item(namespace, key)
        return None if item is None else self._open(item)

    @override
    async def scan(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
        descending: bool = False,
    ) -> list[StoreItem]:
        items = await self.inner.scan(
            namespace, limit, prefix=prefix, after=after, descending=descending
        )
        return [self._open(item) for item in items]

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return await self.inner.put_batch([self._sealed(put) for put in as_puts(items)])

    @override
    async def restore(self, items: Iterable[Restored]) -> None:
        await self.inner.restore([self._sealed(each) for each in as_restored(items)])

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        found = await self.inner.get_batch(keys)
        return {name: self._unseal(*name, envelope) for name, envelope in found.items()}

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        return await self.inner.write_batch(
            [
                self._sealed(each) if isinstance(each, Put) else each
                for each in as_operations(operations)
            ]
        )

    @override
    async def search(
        self,
        namespace: Namespace,
        query: str | None = None,
        limit: int = 10,
        *,
        filter: Mapping[str, Any] | None = None,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[StoreItem]:
        if query is not None:
            self._unsupported("search", "the inner store sees only ciphertext: use vectors")

        async def newest(count: int) -> list[StoreItem]:
            items = await self.inner.search(namespace, None, count, recursive=recursive)
            return [self._open(item) for item in items]

        condition = parse_filter(filter)
        wanted = check_limit(limit) + check_limit(offset, "offset")
        found = await _enough(newest, lambda item: _satisfies(item, condition), wanted)
        return found[offset:]

    @override
    async def search_by_embedding(
        self,
        namespace: Namespace,
        query_embedding: Sequence[float],
        limit: int = 10,
        threshold: float | None = None,
        metadata_filter: Mapping[str, Any] | None = None,
        *,
        offset: int = 0,
        recursive: bool = False,
    ) -> list[SemanticSearchResult]:
        async def nearest(count: int) -> list[SemanticSearchResult]:
            hits = await self.inner.search_by_embedding(
                namespace, query_embedding, count, threshold, recursive=recursive
            )
            return [replace(hit, item=self._open(hit.item)) for hit in hits]

        condition = parse_filter(metadata_filter)
        wanted = check_limit(limit) + check_limit(offset, "offset")
        found = await _enough(nearest, lambda hit: _satisfies(hit.item, condition), wanted)
        return found[offset:]

    async def rotate(self, namespace: Namespace | None = None, *, recursive: bool = False) -> int:
        """Encrypt with the active key all values that are encrypted with another key.

        With `accept_plain=True`, values that are not encrypted are encrypted too. `compact` then
        deletes the words of the plain values from the text index and the database's log.

        A concurrent put is never overwritten. Each rotated item keeps its metadata, vector,
        creation time and expiry; its version and update time change. An interrupted call loses
        nothing: the next call does the rest.

        A deleted item that is put again starts over at version 1, so a version alone cannot
        tell the new item from the old one. Each item is therefore read once more, and
        compared, right before it is written under `if_version`. The moment between that read and
        that write remains: if an item is deleted or expires in this moment, and is put again
        until it has its old version, its old value overwrites it. No verb of a store can prevent
        this. It is detected, and raises an error, unless both items were created at the same
        instant of the clock. Where this matters, delete nothing during a rotation.

        Args:
            namespace: The namespace; `None`: all namespaces of the store.
            recursive: Encrypt the items of its descendants as well.

        Returns:
            The number of items that were encrypted.

        Raises:
            EncryptionError: A value that no known key decrypts, a plain value without
                `accept_plain`, or an item that was deleted and put again in the moment before
                it was written.
            StoreCapabilityError: `None` or `recursive`, and the store cannot list namespaces.
        """
        count = 0
        async with aclosing(self.rotation(namespace, recursive=recursive)) as changes:
            async for _, is_stale, _ in changes:
                count += is_stale
        return count

    async def rotation(
        self,
        namespace: Namespace | None = None,
        *,
        recursive: bool = False,
        dry_run: bool = False,
    ) -> AsyncGenerator[tuple[StoreItem, bool, bool]]:
        """Rotate, and yield each item, whether it was (or would be) encrypted, and was plain.

        Raises:
            EncryptionError: As for `rotate`.
            StoreCapabilityError: As for `rotate`.
        """
        if namespace is not None:
            check_namespace(namespace)
        for target in await self._targets(namespace or (), recursive=recursive or not namespace):
            async for item in scan_all(self.inner, target):
                is_plain = self._is_plain(item.value)
                is_stale = not self._is_current(item) if dry_run else await self._rotate(item)
                yield item, is_stale, is_plain

    async def _rotate(self, item: StoreItem | None) -> bool:
        while item is not None:
            namespace, key = item.namespace, item.key
            if self._is_current(item):
                return False
            put = await self._renewed(item)
            current = await self.inner.get_item(namespace, key)
            if current == item:
                if put is None:
                    return False
                with suppress(VersionConflictError):
                    await self._replace(item, put)
                    return True
                current = await self.inner.get_item(namespace, key)
            item = current
        return False

    def _is_current(self, item: StoreItem) -> bool:
        """Return whether the active key encrypted an item."""
        if self._is_plain(item.value):
            return False
        return _parts(item.namespace, item.key, item.value)[0] == self._keys.active

    async def _renewed(self, item: StoreItem) -> Put | None:
        """Return the put that rewrites an item under the active key; `None` if it expired."""
        ttl = None if item.expires_at is None else item.expires_at.timestamp() - self._clock()
        if ttl is not None and ttl <= 0:
            return None
        vector = None
        if self.inner.capabilities.semantic_search:
            vector = await self.inner.get_embedding(item.namespace, item.key)
        put = Put(
            namespace=item.namespace,
            key=item.key,
            value=self._unseal(item.namespace, item.key, item.value),
            metadata=item.metadata,
            ttl=ttl,
            if_version=item.version,
            embedding=vector,
        )
        return self._sealed(put)

    async def _replace(self, item: StoreItem, put: Put) -> None:
        await self.inner.put_batch([put])
        written = await self.inner.get_item(item.namespace, item.key)
        # Each envelope has its own nonce, so an equal one is the one written here.
        ours = written is not None and written.value == put.value
        if ours and written is not None and written.created_at != item.created_at:
            raise EncryptionError(
                f"{quote(item.key)} in {quote(item.namespace)} was deleted and put again while "
                "its key was rotated: its old value overwrote the new one"
            )


def _place(namespace: Namespace, key: str, key_id: str) -> bytes:
    """Return the associated data, which binds a value to its name and its key id."""
    return encode_namespace((*namespace, key, key_id)).encode()


def _is_envelope(value: object) -> bool:
    """Return whether a value has the form of an encrypted one, intact or not."""
    return isinstance(value, dict) and value.keys() >= {"key_id", "aes_gcm"}


def _parts(namespace: Namespace, key: str, envelope: Any) -> tuple[str, bytes]:
    """Return the key id and the bytes of an envelope."""
    try:
        return str(envelope["key_id"]), base64.b64decode(envelope["aes_gcm"], validate=True)
    except (TypeError, KeyError, IndexError, ValueError) as error:
        raise EncryptionError(
            f"{quote(key)} in {quote(namespace)} is not encrypted; `accept_plain` is for a store "
            "that held plain values before"
        ) from error


def _satisfies(item: StoreItem, condition: Condition) -> bool:
    return matches(condition, item.value, item.metadata)


async def _enough(
    fetch: Callable[[int], Awaitable[list[_T]]], holds: Callable[[_T], bool], wanted: int
) -> list[_T]:
    """Return the first `wanted` results that hold; fetches more until there are enough."""
    count = max(wanted, _FIRST_FETCH)
    while True:
        found = await fetch(count)
        kept = [each for each in found if holds(each)]
        if len(kept) >= wanted or len(found) < count:
            return kept[:wanted]
        count *= 4
