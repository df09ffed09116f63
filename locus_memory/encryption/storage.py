"""The encryption of checkpoints: a storage that encrypts the payload of each record.

The engine computes a delta and compresses it, and this storage encrypts the result. So a chain
stores only the changes, and the database sees no part of a state. A payload is the version byte
`ENCRYPTED`, the length of the key id, the key id, and a nonce with the ciphertext of the payload
as it would be stored without encryption.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson
from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.resource import Forwarding, forwarded
from locus_memory.checkpoint.base import UNSET, Unset
from locus_memory.checkpoint.record import ENCRYPTED_VERSION, Record, RecordHead
from locus_memory.checkpoint.storage import DeltaStorage, StaleChainError
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.errors import BackendUnavailableError, EncryptionError
from locus_memory.store.base import side_by_side

__all__ = ["EncryptingStorage"]

T = TypeVar("T")


_ATTEMPTS: Final = 8


class EncryptingStorage(Forwarding, DeltaStorage):
    """A storage that encrypts payloads; the inner one never sees a state.

    The associated data of a payload are its thread, its checkpoint id, its revision, its base, its
    level, its time, its metadata and the id of the key. A record that was moved or altered raises
    `EncryptionError`.

    Args:
        inner: The storage of the encrypted records.
        keys: The keys.
    """

    def __init__(self, inner: DeltaStorage, keys: EncryptionKeys) -> None:
        self.inner = inner
        self._keys = keys
        self.persistent = inner.persistent

    find = forwarded(DeltaStorage.find)
    list_checkpoints = forwarded(DeltaStorage.list_checkpoints)
    list_newest = forwarded(DeltaStorage.list_newest)
    sequences = forwarded(DeltaStorage.sequences)
    list_threads = forwarded(DeltaStorage.list_threads)
    query_by_metadata = forwarded(DeltaStorage.query_by_metadata)
    reclaim = forwarded(DeltaStorage.reclaim)
    open = forwarded(DeltaStorage.open)
    close = forwarded(DeltaStorage.close)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @override
    async def store(
        self,
        record: Record,
        *,
        expected_parent: str | Unset | None = UNSET,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self.inner.store(
            self._seal(record), expected_parent=expected_parent, rebased=self._sealed(rebased)
        )

    @override
    async def retrieve(self, thread_id: str, checkpoint_id: str | None = None) -> Record | None:
        record = await self.inner.retrieve(thread_id, checkpoint_id)
        return None if record is None else self._open(record)

    @override
    async def retrieve_chain(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> list[Record]:
        chain = await self.inner.retrieve_chain(thread_id, checkpoint_id)
        return [self._open(record) for record in chain]

    @override
    async def with_chain(
        self, thread_id: str, checkpoint_id: str | None, work: Callable[[list[Record]], T]
    ) -> T:
        def opened(chain: list[Record]) -> T:
            return work([self._open(record) for record in chain])

        return await self.inner.with_chain(thread_id, checkpoint_id, opened)

    @override
    async def delete(
        self,
        thread_id: str,
        revisions: Collection[int] | None = None,
        *,
        rebased: Sequence[Record] = (),
    ) -> int:
        return await self.inner.delete(thread_id, revisions, rebased=self._sealed(rebased))

    @override
    async def copy_thread(self, source: str, target: str, *, through: int | None = None) -> int:
        """Copy a thread's records, and bind the copies to the new thread.

        The copy is made in one step of the inner storage, and bound in a second one. Between the
        two, and after a process is killed between them, a load of the new thread raises
        `EncryptionError`: delete it and copy again.
        """
        count = await self.inner.copy_thread(source, target, through=through)
        try:
            await self._bind(source, target)
        except BaseException:
            with suppress(OSError):
                await self.inner.delete(target)
            raise
        return count

    async def _bind(self, source: str, target: str) -> None:
        for _ in range(_ATTEMPTS):
            found = await self.encrypted_records(target)
            copies = [self._open(replace(record, thread_id=source)) for record in found]
            bound = [self._seal(replace(record, thread_id=target)) for record in copies]
            with suppress(StaleChainError):
                await self.inner.delete(target, (), rebased=bound)
                return
        raise BackendUnavailableError(
            f"thread {quote(target)} kept changing while it was written; try again"
        )

    async def encrypted_records(self, thread_id: str) -> list[Record]:
        """Return the records of a thread as they are stored, newest first."""
        heads = await self.inner.list_checkpoints(thread_id, None)
        found = await side_by_side(
            lambda head: self.inner.retrieve(thread_id, head.checkpoint_id), heads
        )
        return [record for record in found if record is not None]

    def key_of(self, record: Record) -> str | None:
        """Return the id of the key that encrypted a stored record; `None`: it is plain.

        Raises:
            EncryptionError: It is plain, and plain records are not accepted; or it is damaged.
        """
        if record.payload[:1] == bytes((ENCRYPTED_VERSION,)):
            return _parts(record)[0]
        if self._keys.accept_plain:
            return None
        raise EncryptionError(
            f"{_name(record)} is not encrypted; `accept_plain` is for checkpoints that were saved "
            "before they were encrypted"
        )

    async def rotate(self, thread_id: str, records: Sequence[Record]) -> bool:
        """Encrypt records of a thread with the active key; all or nothing.

        Args:
            thread_id: The thread.
            records: Records as `encrypted_records` returned them.

        Returns:
            Whether they were written; false if the thread has changed since they were read.

        Raises:
            EncryptionError: A record was altered or moved, or its key is unknown.
        """
        renewed = [self._seal(self._open(record)) for record in records]
        try:
            await self.inner.delete(thread_id, (), rebased=renewed)
        except StaleChainError:
            return False
        return True

    def _sealed(self, records: Sequence[Record]) -> list[Record]:
        return [self._seal(record) for record in records]

    def _seal(self, record: Record) -> Record:
        key_id = self._keys.active.encode()
        data = self._keys.encrypt(record.payload, _place(record, self._keys.active))
        payload = bytes((ENCRYPTED_VERSION, len(key_id))) + key_id + data
        return replace(record, payload=payload, stored_size=len(payload))

    def _open(self, record: Record) -> Record:
        key_id = self.key_of(record)
        if key_id is None:
            return record
        place = _place(record, key_id)
        payload = self._keys.decrypt(key_id, _parts(record)[1], place, _name(record))
        return replace(record, payload=payload)


def _parts(record: Record) -> tuple[str, bytes]:
    """Return the key id, and the nonce with the ciphertext.

    Raises:
        EncryptionError: The payload is cut.
    """
    start = 2 + sum(record.payload[1:2])
    try:
        return record.payload[2:start].decode(), record.payload[start:]
    except UnicodeDecodeError as error:
        raise EncryptionError(f"{_name(record)} was altered: its key id is not text") from error


def _place(head: RecordHead, key_id: str) -> bytes:
    """Return the associated data, which binds a payload to its record and its key id.

    It leaves out the fields that a storage sets, and the fork point, which a copy changes.
    """
    content: tuple[Any, ...] = (
        "locus_memory.checkpoint",
        head.thread_id,
        head.checkpoint_id,
        head.revision,
        head.base,
        head.level,
        # A database may return an integer as a float.
        head.created_at + 0.0,
        head.metadata,
        key_id,
    )
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def _name(head: RecordHead) -> str:
    return f"checkpoint {quote(head.checkpoint_id)} of thread {quote(head.thread_id)}"
