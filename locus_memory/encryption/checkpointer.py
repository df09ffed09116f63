"""Encryption at rest of checkpoints, for any backend."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from locus_memory._internal.quoting import quote
from locus_memory._internal.running.paging import paged
from locus_memory.checkpoint.base import BaseCheckpointer, StateT
from locus_memory.checkpoint.chain import DeltaCheckpointer
from locus_memory.checkpoint.record import Record
from locus_memory.encryption.keys import EncryptionKeys
from locus_memory.encryption.storage import EncryptingStorage
from locus_memory.errors import BackendUnavailableError, ConfigurationError
from locus_memory.registry import as_checkpointer

if TYPE_CHECKING:
    from locus_memory.backends.base import Backend

__all__ = ["EncryptingCheckpointer"]

_PAGE = 100
_TOGETHER = 50
"""How many records are written together."""

_ATTEMPTS = 8


class EncryptingCheckpointer(DeltaCheckpointer[StateT]):
    """A checkpointer that encrypts states with AES-GCM; the database never sees a part of one.

    A delta is computed and compressed before it is encrypted, so a save still stores only the
    changes. A record is bound to its thread, its id, its base, its metadata and the id of its
    encryption key. A record that was moved, altered or written without encryption raises
    `EncryptionError`, from every verb that reads its state.

    Thread ids, checkpoint ids, metadata, times, the order, the sizes of the records, and which
    record builds on which are not encrypted, so that the database can list and filter: put no
    secrets there.

    Three changes are not detected: a record that is deleted, an older record of the same
    checkpoint that is written back as a whole, and another order of the checkpoints: the database
    gives the sequence numbers, and exchanging them makes an older state the newest one.

    A copied thread is bound to its new name in a second step. If the process is killed between the
    two, loads of the new thread raise `EncryptionError`: delete it, and copy again.

    Args:
        checkpointer: The checkpointer of the backend, a backend that has one, or a provider
            string; its options apply.
        keys: Keys of 16, 24 or 32 bytes by their ids, or `EncryptionKeys`; old ones still decrypt.
        active: The id of the key that encrypts; not with `EncryptionKeys`.
        accept_plain: Read a record that is not encrypted as it is, and let `rotate` encrypt it;
            see `EncryptionKeys`.

    Raises:
        ConfigurationError: The keys are not valid, or the checkpointer is no `DeltaCheckpointer`.
        MissingDriverError: The `cryptography` library is not installed.
    """

    storage: EncryptingStorage

    def __init__(
        self,
        checkpointer: str | BaseCheckpointer[StateT] | Backend[StateT],
        keys: Mapping[str, bytes] | EncryptionKeys,
        *,
        active: str | None = None,
        accept_plain: bool = False,
    ) -> None:
        self.keys = EncryptionKeys.of(keys, active, accept_plain=accept_plain)
        inner, owned = as_checkpointer(checkpointer)
        if not isinstance(inner, DeltaCheckpointer):
            raise ConfigurationError(
                f"{type(inner).__name__} is no DeltaCheckpointer: only their checkpoints can be "
                "encrypted"
            )
        super().__init__(
            EncryptingStorage(inner.storage, self.keys),
            max_chain_depth=inner.max_chain_depth,
            compression_level=inner.compression_level,
            state_type=inner.state_type,
            cache_bytes=inner.cache_bytes,
            clock=inner.clock,
        )
        self.inner = inner
        self._closes = owned or inner is checkpointer

    @override
    async def open(self) -> None:
        await self.inner.open()

    @override
    async def close(self) -> None:
        """Close the inner checkpointer, but that of a backend stays open with it."""
        if self._closes:
            await self.inner.close()

    async def rotate(self, thread_id: str | None = None) -> int:
        """Encrypt with the active key all checkpoints that are encrypted with another key.

        With `accept_plain=True`, checkpoints that are not encrypted are encrypted too. `vacuum`,
        or `storage.reclaim()`, then frees the space of the plain ones.

        Saves continue meanwhile, and nothing is lost. Each checkpoint keeps its id, its order,
        its metadata and its revision. An interrupted call loses nothing: the next call does the
        rest.

        Args:
            thread_id: The thread; `None`: all threads.

        Returns:
            The number of checkpoints that were encrypted.

        Raises:
            EncryptionError: A checkpoint that no known key decrypts, or a plain one without
                `accept_plain`.
        """
        return sum([is_stale async for _, is_stale, _ in self.rotation(thread_id)])

    async def rotation(
        self, thread_id: str | None = None, *, dry_run: bool = False
    ) -> AsyncGenerator[tuple[Record, bool, bool]]:
        """Rotate, and yield each record, whether it was (or would be) encrypted, and was plain.

        Raises:
            EncryptionError: As for `rotate`.
        """
        names = paged(lambda after: self.list_threads(_PAGE, after=after))
        for thread in [thread_id] if thread_id is not None else [each async for each in names]:
            for record, is_stale, is_plain in await self._rotated(thread, dry_run=dry_run):
                yield record, is_stale, is_plain

    async def _rotated(self, thread: str, *, dry_run: bool) -> list[tuple[Record, bool, bool]]:
        results: list[tuple[Record, bool, bool]] = []
        for _ in range(_ATTEMPTS):
            records = await self.storage.encrypted_records(thread)
            seen = [(record, self.storage.key_of(record)) for record in records]
            stale = [record for record, key_id in seen if key_id != self.keys.active]
            if not results:
                results = [(each, each in stale, key_id is None) for each, key_id in seen]
            if dry_run or await self._encrypt(thread, stale):
                return results
        raise BackendUnavailableError(
            f"thread {quote(thread)} kept changing while it was encrypted; try again"
        )

    async def _encrypt(self, thread: str, records: Sequence[Record]) -> bool:
        """Write records with the active key; return whether the thread was as it was read."""
        for start in range(0, len(records), _TOGETHER):
            if not await self.storage.rotate(thread, records[start : start + _TOGETHER]):
                return False
        return True
