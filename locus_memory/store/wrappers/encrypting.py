"""Encryption at rest, for any backend."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.encryption.names import hides, is_own
from locus_memory.errors import EncryptionError, VersionConflictError
from locus_memory.store.base import BaseStore, put_one, scan_all
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
from locus_memory.store.json_values import decode_json, encode_json, encode_metadata
from locus_memory.store.wrappers.base import StoreWrapper
from locus_memory.store.wrappers.decrypted import DecryptedItems
from locus_memory.store.wrappers.naming import NamingStore, written_again

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["EncryptingStore"]

MOST_SEARCHED: Final = 10_000
"""The most items whose words are searched."""

_FIRST_FETCH: Final = 100

_FORM: Final = "2"
_RESERVED: Final = "locus_memory:"
"""The beginning of names of metadata that the library writes, such as the mark of a vector."""

_T = TypeVar("_T")
_Put = TypeVar("_Put", bound=Put)


class _Content(NamedTuple):
    """What is encrypted of an item; without metadata, they are beside it."""

    value: Any
    metadata: dict[str, Any] | None = None
    text: str | None = None


class EncryptingStore(StoreWrapper):
    """A store that encrypts values with AES-GCM; the inner store never sees plain values.

    A value is bound to its namespace, its key and the id of its encryption key. A value that was
    moved, altered or written by another program raises `EncryptionError`, from every verb that
    reads it.

    The names and the metadata that the library writes for memories, documents and resources are
    encrypted as well; see `NamingStore`. The namespaces, keys and metadata of a caller, times, and
    the vectors given to `put_with_embedding` are not encrypted: put no secrets there.

    Words are searched in the decrypted items, of which a namespace may have at most
    `MOST_SEARCHED`; those of the last searches stay in the memory of this process. Filters work as
    usual, over metadata and value; this store evaluates them after it decrypts as many items as
    necessary.

    Two changes are not detected: an older ciphertext of the same item that is written back, and
    any change to a part that is not encrypted, such as the metadata of a caller.

    To encrypt a store that holds plain values, use `accept_plain=True` and `rotate`. An item of
    before names and metadata were encrypted is read as it is, and `rotate` encrypts the rest.

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
        self._decrypted = DecryptedItems(self._opened, 2 * MOST_SEARCHED)
        self._names = NamingStore(self.inner, self._keys, clock)
        self.inner: BaseStore = self._names

    @property
    @override
    def capabilities(self) -> StoreCapabilities:
        return replace(self.inner.capabilities, search=True, prefix_search=True)

    def _sealed(self, put: _Put) -> _Put:
        """Return the put for the inner store, which gets no text to index."""
        active = self._keys.active
        where = _place(check_namespace(put.namespace), check_key(put.key), active, _FORM)
        encode_json(put.value)
        encode_metadata(put.metadata)
        metadata, own = put.metadata or {}, is_own(put.namespace)
        hidden = {name: metadata[name] for name in metadata if own or name.startswith(_RESERVED)}
        parts = [put.value, hidden, check_text(put.text, "text")]
        data = base64.b64encode(self._keys.encrypt(encode_json(parts), where)).decode()
        return replace(
            put,
            value={"key_id": active, "aes_gcm": f"{_FORM}:{data}"},
            metadata={name: metadata[name] for name in metadata if name not in hidden},
            text="",
        )

    def _is_plain(self, value: Any) -> bool:
        """Return whether a value is read as it is."""
        return self._keys.accept_plain and not _is_envelope(value)

    def _unseal(self, namespace: Namespace, key: str, envelope: Any) -> _Content:
        if self._is_plain(envelope):
            return _Content(envelope)
        key_id, form, data = _parts(namespace, key, envelope)
        name = f"{quote(key)} in {quote(namespace)}"
        where = _place(namespace, key, key_id, form)
        content = decode_json(self._keys.decrypt(key_id, data, where, name))
        return _Content(*content) if form else _Content(content)

    def _opened(self, item: StoreItem) -> tuple[StoreItem, str | None]:
        """Return an item, and the text that it was put with."""
        value, hidden, text = self._unseal(item.namespace, item.key, item.value)
        seen = {} if hidden is not None and is_own(item.namespace) else item.metadata
        return replace(item, value=value, metadata={**seen, **(hidden or {})}), text

    def _open(self, item: StoreItem) -> StoreItem:
        return self._opened(item)[0]

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
        put = Put(namespace, key, value, metadata, ttl=ttl, if_version=if_version, text=text)
        return await put_one(self.inner, self._sealed(put))

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
        put = Put(
            namespace,
            key,
            value,
            metadata,
            ttl=ttl,
            if_version=if_version,
            text=text,
            embedding=embedding,
        )
        # A vector that is none would pass for a plain put.
        sealed = replace(self._sealed(put), embedding=() if put.embedding is None else embedding)
        return await put_one(self.inner, sealed)

    get = BaseStore.get

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
        return {name: self._unseal(*name, envelope).value for name, envelope in found.items()}

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
            index = await self._indexed(namespace, recursive=recursive)
            return await index.search(
                namespace, query, limit, filter=filter, offset=offset, recursive=recursive
            )

        async def newest(count: int) -> list[StoreItem]:
            items = await self.inner.search(namespace, None, count, recursive=recursive)
            return [self._open(item) for item in items]

        condition = parse_filter(filter)
        wanted = check_limit(limit) + check_limit(offset, "offset")
        found = await _enough(newest, lambda item: _satisfies(item, condition), wanted)
        return found[offset:]

    async def _indexed(self, namespace: Namespace, *, recursive: bool) -> BaseStore:
        """Return a store in memory with the decrypted items of a namespace.

        Raises:
            StoreCapabilityError: There are more than are searched.
        """
        items = await self.inner.search(namespace, None, MOST_SEARCHED + 1, recursive=recursive)
        if len(items) > MOST_SEARCHED:
            self._unsupported(
                "search",
                f"the words of at most {MOST_SEARCHED:,} encrypted items are searched, and there "
                "are more: narrow the namespace, or use vectors",
            )
        return await self._decrypted.of(f"{recursive} {encode_namespace(namespace)}", items)

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

    async def count_readable(self) -> int:
        """Return how many items have a name of before names were encrypted, which `rotate` changes.

        Raises:
            EncryptionError: A name that no known key decrypts.
            StoreCapabilityError: The store cannot list namespaces.
        """
        return len([each async for each in self._names.former()])

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
        is_whole = namespace is None and not dry_run
        if is_whole:
            async for place in self._names.former():
                await self._names.move(place)
        for target in await self._targets(namespace or (), recursive=recursive or not namespace):
            async for item in scan_all(self.inner, target):
                is_plain = self._is_plain(item.value) or _was_readable(item)
                is_stale = not self._is_current(item) if dry_run else await self._rotate(item)
                yield item, is_stale, is_plain
        if not dry_run:
            await self._names.renew(is_whole=is_whole)

    async def _rotate(self, item: StoreItem | None) -> bool:
        while item is not None:
            namespace, key = item.namespace, item.key
            if self._is_current(item):
                return False
            put = await self._renewed(item)
            current = await self.inner.get_item(namespace, key)
            if current == item:
                with suppress(VersionConflictError):
                    await self._replace(item, put)
                    return True
                current = await self.inner.get_item(namespace, key)
            item = current
        return False

    def _is_current(self, item: StoreItem) -> bool:
        """Return whether the active key encrypted an item, with its metadata."""
        if self._is_plain(item.value):
            return False
        key_id, form, _ = _parts(item.namespace, item.key, item.value)
        return (key_id, form) == (self._keys.active, _FORM)

    async def _renewed(self, item: StoreItem) -> Put:
        """Return the put that rewrites an item under the active key."""
        put = await written_again(self.inner, item, self._clock)
        known, text = self._opened(item)
        return self._sealed(replace(put, value=known.value, metadata=known.metadata, text=text))

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


def _place(namespace: Namespace, key: str, key_id: str, form: str) -> bytes:
    """Return the associated data, which binds a value to its name and its key id."""
    begin = ("\x00locus_memory item", form) if form else ()
    return encode_namespace((*begin, *namespace, key, key_id)).encode()


def _was_readable(item: StoreItem) -> bool:
    """Whether an item has a name or metadata of before they were encrypted."""
    is_former = not _parts(item.namespace, item.key, item.value)[1]
    return is_former and (hides(item.namespace) or (bool(item.metadata) and is_own(item.namespace)))


def _is_envelope(value: object) -> bool:
    """Return whether a value has the form of an encrypted one, intact or not."""
    return isinstance(value, dict) and value.keys() >= {"key_id", "aes_gcm"}


def _parts(namespace: Namespace, key: str, envelope: Any) -> tuple[str, str, bytes]:
    """Return the key id, the form and the bytes of an envelope.

    The form is empty in one of before metadata and texts were encrypted.
    """
    try:
        form, _, data = str(envelope["aes_gcm"]).rpartition(":")
        return str(envelope["key_id"]), form, base64.b64decode(data, validate=True)
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
