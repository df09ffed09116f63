"""The conversation store for Pydantic AI; public as `integrations.pydantic_ai`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import PydanticSerializationError
from typing_extensions import override

from locus_memory._internal.quoting import shorten
from locus_memory._internal.recent import RecentlyUsed
from locus_memory._internal.running.retrying import until_first
from locus_memory.backends.base import Backend
from locus_memory.errors import InvalidArgumentError
from locus_memory.integrations.owned import OverStore
from locus_memory.integrations.pydantic_ai.chains import Chain, Path, parts_of, segments_of
from locus_memory.integrations.reading import (
    DAMAGE,
    NOT_OURS,
    get_readable,
    naming,
    readable,
    tell_unreadable,
)
from locus_memory.integrations.writing import written
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import (
    Delete,
    Namespace,
    Put,
    StoreItem,
    check_identifier,
    check_namespace,
    quick_put,
)
from locus_memory.store.json_values import encode_json

__all__ = ["LocusConversationStore"]

_NAMESPACE: Final = ("pydantic_ai",)
_PATHS: Final = 4096
"""How many paths are kept in memory, so that a history is one query."""

_DAY: Final = 86_400.0
"""Seconds that a deleted record leaves its name, so that its version is not used again."""

_PAGE: Final = 500

_record_type = TypeAdapter(ConversationRecord)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored record with its place, and the version of its item; `None`: it is damaged."""

    record: ConversationRecord | None = None
    path: Path = ()
    chain: Chain = field(default_factory=Chain)
    holds: frozenset[str] = frozenset()
    version: int | None = 0


class LocusConversationStore(OverStore, ConversationStore):
    """A `ConversationStore` of Pydantic AI that keeps conversations in any store of the library.

    Each message is stored once: a branch and a fork share the messages before them. A history that
    was never branched is read in one query. Two processes that save one conversation get
    `ConversationConflict`, as with the framework's own stores. A damaged message is left out of its
    history, and told by the event `integrations.item_unreadable`.

    With transactions, a save is done whole or not at all, and `delete` deletes the messages that no
    other conversation holds, a branch or a fork at a time. Without, a save that was refused may
    leave messages that nothing refers to, and `delete` leaves the messages.

    Args:
        where: A provider string, a backend or a store of the library, such as an
            `EncryptingStore`. Only the store of a string is closed here.
        namespace: The namespace of all conversations in the store.

    Raises:
        InvalidNamespaceError: The namespace is invalid.
        ConfigurationError: `where` has no store.
    """

    def __init__(
        self, where: str | BaseStore | Backend, *, namespace: Namespace = _NAMESPACE
    ) -> None:
        check_namespace(namespace)
        self._take(where)
        self._records = (*namespace, "records")
        self._places = (*namespace, "places")
        self._segments = (*namespace, "segments")
        self._entries = (*namespace, "entries")
        self._paths: RecentlyUsed[Path] = RecentlyUsed(_PATHS)

    @override
    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return (await self._stored(conversation_id)).record

    @override
    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        found = await self._of_scope(scope)
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    @override
    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries.

        Raises:
            ConversationConflict: The stored record has another revision, or the entries that it
                continues are gone. Nothing is written.
            InvalidArgumentError: JSON cannot hold a message or the record; the error names it.
                Nothing is written.
            BackendError: The database failed.
        """
        values = [_value_of(entry, f"new_entries[{n}]") for n, entry in enumerate(new_entries)]
        document = _document_of(record)
        new = list(zip(new_entries, values, strict=True))

        async def once() -> None:
            stored = await self._expected(record.conversation_id, expected_revision)
            await self._replace(stored, record, document, new)

        # The record is another by now, or only the number of those that share its messages.
        await until_first(once)

    @override
    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        async def attempt() -> tuple[list[str], list[Put | Delete]]:
            stored = await self._expected(conversation_id, expected_revision)
            gone, operations = await self._counts(conversation_id, set(), stored.holds, set())
            ttl = _DAY if self.store.capabilities.ttl else None
            grave = quick_put(
                self._records, conversation_id, None, ttl=ttl, if_version=stored.version, text=""
            )
            return gone, [*operations, grave]

        for segment in await written(self.store, attempt):
            await self._erase(segment)

    @override
    async def read_entry(self, entry_id: str) -> ConversationEntry:
        path = await self._path(entry_id)
        if path is not None:
            segment, depth = path[-1]
            found = await get_readable(
                self.store, (*self._entries, segment), _key(depth), _entry_of
            )
            if found is not None:
                return found[1]
        raise KeyError(entry_id)

    @override
    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to `head_id`, or the last `limit` of them: one query a segment.

        Raises:
            KeyError: There is no such entry.
        """
        if head_id is None:
            return []
        path = await self._path(head_id)
        if path is None:
            raise KeyError(head_id)
        parts = parts_of(path, limit)
        read = await asyncio.gather(*(self._part(*part) for part in parts))
        return [entry for part in read for entry in part]

    async def _stored(self, conversation_id: str) -> _Stored:
        check_identifier(conversation_id, "conversation_id")
        try:
            item = await self.store.get_item(self._records, conversation_id)
            stored = _Stored() if item is None else _stored_of(item)
        except (*DAMAGE, *NOT_OURS) as error:
            tell_unreadable(self._records, conversation_id, error)
            return _Stored(version=None)
        if stored.record is not None and stored.record.head_id is not None:
            self._paths.put(stored.record.head_id, stored.path)
        return stored

    async def _expected(self, conversation_id: str, revision: str | None) -> _Stored:
        stored = await self._stored(conversation_id)
        if (stored.record.revision if stored.record else None) != revision:
            raise ConversationConflict(conversation_id)
        return stored

    async def _of_scope(self, scope: str | None) -> list[ConversationRecord]:
        if scope is not None:
            # One search for many items fails on a damaged one.
            with suppress(*DAMAGE, *NOT_OURS):
                return await self._found(scope)
        found = [
            stored.record async for _, stored in readable(self.store, self._records, _stored_of)
        ]
        return [each for each in found if each is not None and scope in (None, each.scope)]

    async def _found(self, scope: str) -> list[ConversationRecord]:
        found: dict[str, ConversationRecord] = {}
        for offset in range(0, 2**62, _PAGE):
            page = await self.store.search(
                self._records, None, _PAGE, filter={"scope": {"$eq": scope}}, offset=offset
            )
            records = [_stored_of(item).record for item in page]
            found |= {each.conversation_id: each for each in records if each is not None}
            if len(page) < _PAGE:
                break
        return [each for each in found.values() if each.scope == scope]

    async def _replace(
        self, stored: _Stored, record: ConversationRecord, document: Json, new: list[_New]
    ) -> None:
        """Write a record and its entries in the place of the stored one.

        Raises:
            ConversationConflict: An entry that it continues is gone.
            VersionConflictError: Another writer was first; nothing is written.
        """
        chain, paths = await self._placed(stored.chain, new)
        tips = [each for each in (record.head_id, *record.branches) if each is not None]
        for tip in tips:
            paths[tip] = paths.get(tip) or await self._path(tip) or ()
        path = paths[record.head_id] if record.head_id is not None else ()
        if record.head_id is not None and not path:
            raise ConversationConflict(record.conversation_id)
        holds = segments_of(paths[tip] for tip in tips)
        begun = {paths[entry.id][-1][0] for entry, _ in new}
        gone, counts = await self._counts(record.conversation_id, holds, stored.holds, begun)
        value = {
            "record": document,
            "path": _plain(path),
            "chain": [chain.segment, chain.top] if chain.segment in holds else None,
            "holds": sorted(holds),
        }
        scope = {} if record.scope is None else {"scope": record.scope}
        name, version = record.conversation_id, stored.version
        put = quick_put(self._records, name, value, scope, if_version=version, text="")
        await write_together(self.store, [*self._puts(new, paths), *counts, put])
        for entry_id, each in paths.items():
            self._paths.put(entry_id, each)
        for segment in gone:
            await self._erase(segment)

    async def _placed(self, chain: Chain, new: list[_New]) -> tuple[Chain, dict[str, Path]]:
        """Return the paths of new entries, and the chain of the conversation behind them.

        Raises:
            InvalidArgumentError: An entry follows one that does not exist.
        """
        paths: dict[str, Path] = {}
        for number, (entry, _) in enumerate(new):
            parent: Path | None = ()
            if entry.parent_id is not None:
                parent = paths.get(entry.parent_id) or await self._path(entry.parent_id)
            if parent is None:
                raise InvalidArgumentError(
                    f"new_entries[{number}].parent_id is not the id of a stored entry"
                )
            chain, paths[entry.id] = chain.place(entry.id, parent)
        return chain, paths

    def _puts(self, new: list[_New], paths: Mapping[str, Path]) -> list[Put | Delete]:
        puts: list[Put | Delete] = []
        for entry, value in new:
            segment, depth = paths[entry.id][-1]
            place = {"path": _plain(paths[entry.id])}
            puts += [
                quick_put((*self._entries, segment), _key(depth), value, text=""),
                quick_put(self._places, entry.id, place, text=""),
            ]
        return puts

    async def _counts(
        self,
        conversation_id: str,
        holds: AbstractSet[str],
        held: AbstractSet[str],
        begun: AbstractSet[str],
    ) -> tuple[list[str], list[Put | Delete]]:
        """Return the segments that no record holds any more, and the puts of all changed counts.

        Raises:
            ConversationConflict: A segment that the record is to hold is gone.
        """
        gone: list[str] = []
        changes: list[Put | Delete] = []
        if not self.store.capabilities.transactions:
            return gone, changes
        for segment in sorted(holds ^ held):
            count, version = await self._count(segment)
            if version == 0 and segment in holds and segment not in begun:
                raise ConversationConflict(conversation_id)
            count += 1 if segment in holds else -1
            if count > 0:
                changes.append(
                    quick_put(self._segments, segment, count, if_version=version, text="")
                )
            else:
                gone.append(segment)
                changes.append(Delete(namespace=self._segments, key=segment, if_version=version))
        return gone, changes

    async def _count(self, segment: str) -> tuple[int, int]:
        """Return how many records hold a segment, and the version of that count."""
        item = await self.store.get_item(self._segments, segment)
        return (0, 0) if item is None else (item.value, item.version)

    async def _erase(self, segment: str) -> None:
        """Delete the entries of a segment, and their places."""
        entries = (*self._entries, segment)
        ids = [entry.id async for _, entry in readable(self.store, entries, _entry_of)]
        await self.store.delete_batch([(self._places, each) for each in ids])
        await self.store.clear_namespace(entries)
        for each in ids:
            self._paths.discard(each)

    async def _path(self, entry_id: str) -> Path | None:
        """Return the path of an entry, or `None` if there is no such entry."""
        path = self._paths.get(entry_id)
        if path is not None:
            return path
        if not entry_id:
            return None
        found = await get_readable(self.store, self._places, entry_id, _place_of)
        if found is None:
            return None
        self._paths.put(entry_id, found[1])
        return found[1]

    async def _part(self, segment: str, first: int, last: int) -> list[ConversationEntry]:
        after = _key(first - 1) if first else None
        found: list[ConversationEntry] = []
        namespace = (*self._entries, segment)
        async for item, entry in readable(
            self.store, namespace, _entry_of, after=after, page=last - first + 1
        ):
            if item.key > _key(last):
                break
            found.append(entry)
            if item.key == _key(last):
                break
        return found


Json = dict[str, Any]
_New = tuple[ConversationEntry, Json]


def _key(depth: int) -> str:
    return f"{depth:010d}"


def _plain(path: Path) -> list[list[Any]]:
    return [list(part) for part in path]


def _place_of(item: StoreItem) -> Path:
    return _path_of(item.value["path"])


def _path_of(path: list[list[Any]]) -> Path:
    return tuple((str(segment), int(last)) for segment, last in path)


def _stored_of(item: StoreItem) -> _Stored:
    """Return a stored record; a deleted one has none.

    Raises:
        ValueError, TypeError, LookupError: The item is not a record.
    """
    value = item.value
    if value is None:
        return _Stored(version=item.version)
    return _Stored(
        _record_type.validate_python(value["record"]),
        _path_of(value["path"]),
        Chain(*value["chain"]) if value["chain"] else Chain(),
        frozenset(value["holds"]),
        item.version,
    )


def _entry_of(item: StoreItem) -> ConversationEntry:
    value = item.value
    [message] = ModelMessagesTypeAdapter.validate_python([value["message"]])
    return ConversationEntry(id=value["id"], parent_id=value["parent_id"], message=message)


def _value_of(entry: ConversationEntry, name: str) -> Json:
    """Return an entry as JSON.

    Raises:
        InvalidArgumentError: JSON cannot hold it; the error names the field.
    """
    check_identifier(entry.id, f"{name}.id")
    with _named(f"{name}.message"):
        [message] = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
        encode_json(message)
    return {"id": entry.id, "parent_id": entry.parent_id, "message": message}


def _document_of(record: ConversationRecord) -> Json:
    """Return a record as JSON.

    Raises:
        InvalidArgumentError: JSON cannot hold it; the error names the field.
    """
    with _named("record"):
        document: Json = _record_type.dump_python(record, mode="json")
        encode_json(document)
    return document


@contextmanager
def _named(name: str) -> Generator[None]:
    """Raise what JSON cannot hold as an error that names the field."""
    try:
        with naming(name):
            yield
    except PydanticSerializationError as error:
        raise InvalidArgumentError(f"{name} is not JSON: {shorten(str(error))}") from error
