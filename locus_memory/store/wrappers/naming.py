"""The names of the library's own namespaces, sealed; values pass through as they are."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, TypeVar

from typing_extensions import override

from locus_memory._internal.running.paging import paged
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.encryption.names import (
    SealedNames,
    hides,
    keeps_order,
    key_of_names,
    readable,
)
from locus_memory.errors import StoreCapabilityError, VersionConflictError
from locus_memory.store.base import BaseStore, all_keys, all_namespaces, read_together
from locus_memory.store.batches import as_names, as_operations, as_puts, as_restored
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    Restored,
    SemanticSearchResult,
    StoreItem,
    check_key,
    check_limit,
    check_namespace,
    check_text,
)
from locus_memory.store.listing import Listing, keys_in_range
from locus_memory.store.wrappers.base import StoreWrapper

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["NamingStore", "Place", "written_again"]

_T = TypeVar("_T")

Place = tuple[Namespace, str]
"""The namespace and the key of an item."""

_NAMES: Final[Place] = (("locus_memory:sealed",), "names")
"""The item with the key of the names, encrypted; no listing shows it."""

_PAGE: Final = 500
_MOST: Final = 10_000


class NamingStore(StoreWrapper):
    """A store whose inner store sees no names that the library makes of what users say.

    See `locus_memory.encryption.names` for which names these are. They are listed by their
    decrypted names, for which all names of a namespace are read. The key of the names is in the
    inner store, encrypted with the active key; it stays the same for the life of the database.

    In a database of before names were sealed, an item is found by its plain name as well. A write
    seals its name first, and `former` tells the others.

    Args:
        store: The inner store, a backend that has one, or a provider string.
        keys: The keys of the encryption.
        clock: Returns seconds since the epoch; pass the clock of the inner store.
    """

    def __init__(
        self,
        store: str | BaseStore | Backend,
        keys: EncryptionKeys,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(store)
        self._keys = keys
        self._clock = clock
        self._names: SealedNames | None = None
        self._has_plain: bool | None = None

    @override
    def __repr__(self) -> str:
        return repr(self.inner)

    async def _known(self, *, writing: bool = False) -> SealedNames:
        """Return the names; a write to a database without their key makes it."""
        while self._names is None:
            item = await self.inner.get_item(*_NAMES)
            if item is not None:
                self._names = self._opened(item.value)
                break
            if self._has_plain is None:
                self._has_plain = await self._is_older()
            key = key_of_names(self._keys.keys[self._keys.active])
            names = SealedNames(key, has_plain=self._has_plain)
            if not writing:
                return names
            with suppress(VersionConflictError):
                await self._keep(names, 0)
        return self._names

    async def _is_older(self) -> bool:
        """Whether the database has names of the library; they are of before names were sealed."""
        with suppress(StoreCapabilityError):
            async for space in all_namespaces(self.inner):
                if hides(space):
                    return True
            return False
        return True

    async def _keep(self, names: SealedNames, version: int | None) -> None:
        data = names.key + bytes((names.has_plain,))
        sealed = b64encode(self._keys.encrypt(data, _place(self._keys.active))).decode()
        value = {"key_id": self._keys.active, "aes_gcm": sealed}
        await self.inner.put(*_NAMES, value, if_version=version, text="")

    def _opened(self, value: Any) -> SealedNames:
        key_id, sealed = value["key_id"], b64decode(value["aes_gcm"])
        data = self._keys.decrypt(key_id, sealed, _place(key_id), "the key of the names")
        return SealedNames(data[:-1], has_plain=bool(data[-1]))

    async def renew(self, *, is_whole: bool) -> None:
        """Encrypt the key of the names with the active key.

        Args:
            is_whole: Whether no name is plain any more; else nothing is done without a key.
        """
        if is_whole or await self.inner.exists(*_NAMES):
            names = await self._known(writing=True)
            self._names = SealedNames(names.key, has_plain=names.has_plain and not is_whole)
            await self._keep(self._names, None)

    async def former(self) -> AsyncIterator[Place]:
        """Yield where the inner store has an item by a plain name that is sealed now."""
        names = await self._known()
        if not names.has_plain:
            return
        async for space in all_namespaces(self.inner):
            if not hides(space):
                continue
            namespace = names.name(space)
            for key in await all_keys(self.inner, space):
                if names.place(namespace, names.key_name(namespace, key)) != (space, key):
                    yield space, key

    async def move(self, old: Place) -> None:
        """Seal the name of an item, if it is there by its plain name.

        The value and the vector stay, the expiry too; it becomes a new item of version 1.
        """
        names = await self._known(writing=True)
        while (item := await self.inner.get_item(*old)) is not None:
            namespace = names.name(item.namespace)
            new = names.place(namespace, names.key_name(namespace, item.key))
            put: Put | None = None
            if not await self.inner.exists(*new):
                again = await written_again(self.inner, item, self._clock)
                put = replace(_at(again, new), if_version=0)
            gone = Delete(namespace=old[0], key=old[1], if_version=item.version)
            with suppress(VersionConflictError):
                await self._replace(gone, put)

    async def _replace(self, gone: Delete, put: Put | None) -> None:
        if self.capabilities.transactions:
            await self.inner.write_batch([gone] if put is None else [put, gone])
            return
        # A crash in between leaves both, of which the sealed one counts.
        await self.inner.put_batch([] if put is None else [put])
        try:
            await self.inner.delete(gone.namespace, gone.key, if_version=gone.if_version)
        except VersionConflictError:
            if put is not None:
                with suppress(VersionConflictError):
                    await self.inner.delete(put.namespace, put.key, if_version=1)
            raise

    async def _places(self, namespace: Namespace, key: str) -> list[Place]:
        """Return where an item may be, the sealed name first and, after a plain one, again."""
        if not hides(check_namespace(namespace)):
            return [(namespace, key)]
        names = await self._known()
        sealed = names.place(namespace, check_key(key))
        return [sealed, (namespace, key), sealed] if names.has_plain else [sealed]

    async def _settled(self, namespace: Namespace, key: str) -> Place:
        """Return where an item is written; one with a plain name is moved there first."""
        if not hides(check_namespace(namespace)):
            return namespace, key
        names = await self._known(writing=True)
        place = names.place(namespace, check_key(key))
        if names.has_plain and place != (namespace, key):
            await self.move((namespace, key))
        return place

    async def _spaces(self, namespace: Namespace) -> list[Namespace]:
        """Return where the items of a namespace may be; items move from the first to the last."""
        if not hides(check_namespace(namespace)):
            return [namespace]
        names = await self._known()
        sealed = names.namespace(namespace)
        return [sealed] if sealed == namespace or not names.has_plain else [namespace, sealed]

    async def _named(self, items: Sequence[StoreItem]) -> list[StoreItem]:
        """Return items of the inner store with their names."""
        if not any(hides(item.namespace) for item in items):
            return list(items)
        names = await self._known()
        return [_renamed(item, names) for item in items]

    async def _first(
        self, verb: Callable[[Namespace, str], Awaitable[_T]], namespace: Namespace, key: str
    ) -> _T:
        first, *others = await self._places(namespace, key)
        found = await verb(*first)
        for each in () if found else others:
            found = found or await verb(*each)
        return found

    get = BaseStore.get

    @override
    async def get_item(self, namespace: Namespace, key: str) -> StoreItem | None:
        item = await self._first(self.inner.get_item, namespace, key)
        return None if item is None else replace(item, namespace=namespace, key=key)

    @override
    async def exists(self, namespace: Namespace, key: str) -> bool:
        return await self._first(self.inner.exists, namespace, key)

    @override
    async def get_embedding(self, namespace: Namespace, key: str) -> list[float] | None:
        return await self._first(self.inner.get_embedding, namespace, key)

    @override
    async def get_batch(
        self, keys: Iterable[tuple[Namespace, str]]
    ) -> dict[tuple[Namespace, str], Any]:
        places = {name: await self._places(*name) for name in as_names(keys)}
        found = await self.inner.get_batch([each for some in places.values() for each in some])
        there = {
            name: [found[each] for each in some if each in found] for name, some in places.items()
        }
        return {name: values[0] for name, values in there.items() if values}

    async def _write(
        self, verb: Callable[..., Awaitable[_T]], name: Place, *args: Any, **options: Any
    ) -> _T:
        place = await self._settled(*name)
        with _naming({place: name}):
            return await verb(*place, *args, **options)

    @override
    async def put(self, namespace: Namespace, key: str, *args: Any, **options: Any) -> int:
        return await self._write(self.inner.put, (namespace, key), *args, **options)

    @override
    async def put_with_embedding(
        self, namespace: Namespace, key: str, *args: Any, **options: Any
    ) -> int:
        verb = self.inner.put_with_embedding
        return await self._write(verb, (namespace, key), *args, **options)

    @override
    async def delete(
        self, namespace: Namespace, key: str, *, if_version: int | None = None
    ) -> bool:
        return await self._write(self.inner.delete, (namespace, key), if_version=if_version)

    async def _batch(
        self, verb: Callable[[list[Any]], Awaitable[_T]], operations: Sequence[Any]
    ) -> _T:
        places = [await self._settled(each.namespace, each.key) for each in operations]
        moved = [
            each if place == (each.namespace, each.key) else _at(each, place)
            for each, place in zip(operations, places, strict=True)
        ]
        names = [(each.namespace, each.key) for each in operations]
        with _naming(dict(zip(places, names, strict=True))):
            return await verb(moved)

    @override
    async def put_batch(self, items: Iterable[Put | tuple[Any, ...]]) -> list[int]:
        return await self._batch(self.inner.put_batch, as_puts(items))

    @override
    async def restore(self, items: Iterable[Restored]) -> None:
        await self._batch(self.inner.restore, as_restored(items))

    @override
    async def write_batch(self, operations: Iterable[Put | Delete]) -> list[int | bool]:
        return await self._batch(self.inner.write_batch, as_operations(operations))

    @override
    async def delete_batch(self, keys: Iterable[tuple[Namespace, str]]) -> int:
        return await self.inner.delete_batch(
            [await self._settled(*each) for each in as_names(keys)]
        )

    @override
    async def clear_namespace(self, namespace: Namespace, *, recursive: bool = False) -> int:
        spaces = await self._spaces(namespace)
        return sum([await self.inner.clear_namespace(each, recursive=recursive) for each in spaces])

    @override
    async def list_keys(
        self,
        namespace: Namespace,
        limit: int = 100,
        *,
        prefix: str | None = None,
        after: str | None = None,
    ) -> list[str]:
        options = await self._ordered(namespace, prefix, after)
        if options is None:
            check_limit(limit)
            return list(await self._sorted(namespace, prefix, after))[:limit]
        found = await self.inner.list_keys(options.pop("namespace"), limit, **options)
        if not hides(namespace):
            return found
        names = await self._known()
        return [names.key_name(namespace, key) for key in found]

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
        options = await self._ordered(namespace, prefix, after)
        if options is not None:
            space = options.pop("namespace")
            found = await self.inner.scan(space, limit, **options, descending=descending)
            return await self._named(found)
        check_limit(limit)
        chosen = await self._sorted(namespace, prefix, after, descending=descending)
        keys, items = iter(chosen), list[StoreItem]()
        while some := list(islice(keys, min(_PAGE, limit - len(items)))):
            there = await read_together(self.inner, [chosen[key] for key in some])
            # One that is not there was moved or deleted since its key was listed.
            read = [
                there.get(chosen[key]) or await self._first(self.inner.get_item, namespace, key)
                for key in some
            ]
            items += [item for item in read if item is not None]
        return await self._named(items)

    async def _ordered(
        self, namespace: Namespace, prefix: str | None, after: str | None
    ) -> dict[str, Any] | None:
        """Return the arguments of a listing that the inner store can do; `None`: it cannot."""
        if not hides(check_namespace(namespace)):
            return {"namespace": namespace, "prefix": prefix, "after": after}
        names = await self._known()
        start, last = check_text(prefix, "prefix"), check_text(after, "after")
        if names.has_plain or not keeps_order(namespace, start or "", last):
            return None
        return {
            "namespace": names.namespace(namespace),
            "prefix": start and names.stored_key(namespace, start),
            "after": last and names.stored_key(namespace, last),
        }

    async def _sorted(
        self,
        namespace: Namespace,
        prefix: str | None,
        after: str | None,
        *,
        descending: bool = False,
    ) -> dict[str, Place]:
        """Return the places of the keys of a listing, in its order."""
        names = await self._known()
        found: dict[str, Place] = {}
        for space in await self._spaces(namespace):
            async for key in paged(_pages(self.inner, space)):
                name = names.key_name(namespace, key)
                if name != key or name not in found or space != namespace:
                    found[name] = (space, key)
        chosen = keys_in_range(found, prefix, after, descending=descending)
        return {key: found[key] for key in chosen}

    @override
    async def list_namespaces(
        self,
        prefix: Namespace | None = None,
        limit: int = 100,
        *,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        after: Namespace | None = None,
    ) -> list[Namespace]:
        listing = Listing.of(prefix, suffix, max_depth, after)
        names, found, waiting = await self._known(), dict[Namespace, None](), list[Namespace]()
        root = tuple(takewhile("*".__ne__, listing.prefix))
        stored = readable(root) if names.has_plain else names.namespace(root)
        depth = None if listing.suffix or (max_depth or 0) < len(listing.prefix) else max_depth
        cursor, is_last = readable(listing.after), check_limit(limit) == 0
        while not is_last and len(found) < limit:
            page = await self.inner.list_namespaces(
                stored or None, _PAGE, max_depth=depth, after=cursor or None
            )
            is_last = not page
            waiting += [names.name(each) for each in page if each[:1] != _NAMES[0]]
            cursor = page[-1] if page else cursor
            # Below a readable part, sealed labels are in no order: wait for the last of them.
            open_part = () if is_last else readable(cursor)
            whole = [each for each in waiting if is_last or each[: len(open_part)] != open_part]
            waiting = [
                each for each in waiting if not is_last and each[: len(open_part)] == open_part
            ]
            cuts = map(listing.cut, sorted(whole))
            found |= {each: None for each in cuts if each is not None}
        return list(found)[:limit]

    @override
    async def search(
        self, namespace: Namespace, query: str | None = None, limit: int = 10, **options: Any
    ) -> list[StoreItem]:
        search, spaces = self.inner.search, await self._spaces(namespace)
        if len(spaces) == 1:
            return await self._named(await search(spaces[0], query, limit, **options))
        offset = options.pop("offset", 0)
        pages = [await search(each, query, limit + offset, **options) for each in spaces]
        items = await self._named([item for page in pages for item in page])
        # One that moved meanwhile is in both pages.
        found = list({(item.namespace, item.key): item for item in items}.values())
        found.sort(key=lambda item: (item.score or 0.0, item.updated_at), reverse=True)
        return found[offset : offset + limit]

    @override
    async def search_by_embedding(
        self,
        namespace: Namespace,
        query_embedding: Sequence[float],
        limit: int = 10,
        *args: Any,
        **options: Any,
    ) -> list[SemanticSearchResult]:
        search, spaces = self.inner.search_by_embedding, await self._spaces(namespace)
        offset = options.pop("offset", 0)
        wanted = limit + offset
        pages = [await search(each, query_embedding, wanted, *args, **options) for each in spaces]
        hits = [hit for page in pages for hit in page]
        items = await self._named([hit.item for hit in hits])
        named = {
            (item.namespace, item.key): replace(hit, item=item)
            for hit, item in zip(hits, items, strict=True)
        }
        found = list(named.values())
        found.sort(key=lambda hit: -hit.distance, reverse=True)
        return found[offset:wanted]


async def written_again(store: BaseStore, item: StoreItem, clock: Callable[[], float]) -> Put:
    """Return the put that writes an item of a store once more, without a text."""
    vector = None
    if store.capabilities.semantic_search:
        vector = await store.get_embedding(item.namespace, item.key)
    return Put(
        namespace=item.namespace,
        key=item.key,
        value=item.value,
        metadata=item.metadata,
        ttl=_left(item, clock()),
        if_version=item.version,
        text="",
        embedding=vector,
    )


def _left(item: StoreItem, now: float) -> float | None:
    """Return the seconds until an item expires; `None`: never.

    The store tells what is there. What has expired by another clock gets the time that it was put
    with; the version in the put refuses what has expired meanwhile.
    """
    if item.expires_at is None:
        return None
    left = item.expires_at.timestamp() - now
    return left if left > 0 else max(1.0, (item.expires_at - item.updated_at).total_seconds())


def _pages(store: BaseStore, space: Namespace) -> Callable[[Any], Awaitable[list[str]]]:
    return lambda after: store.list_keys(space, _MOST, after=after)


def _place(key_id: str) -> bytes:
    """Return the associated data of the key of the names."""
    return f"locus_memory names\n{key_id}".encode()


def _at(operation: Any, place: Place) -> Any:
    return replace(operation, namespace=place[0], key=place[1])


def _renamed(item: StoreItem, names: SealedNames) -> StoreItem:
    if not hides(item.namespace):
        return item
    namespace = names.name(item.namespace)
    return replace(item, namespace=namespace, key=names.key_name(namespace, item.key))


@contextmanager
def _naming(names: Mapping[Place, Place]) -> Generator[None]:
    """Let a conflict tell the name of an item in place of its stored one."""
    try:
        yield
    except VersionConflictError as error:
        name = names.get((error.namespace or (), error.key or ""))
        if name is None:
            raise
        raise VersionConflictError(error.expected, error.actual, *name) from None
