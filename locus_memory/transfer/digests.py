"""Digests: two databases hold the same exactly if the digests of all their parts are equal.

A digest is a SHA-256 of the items of a namespace in key order, or of the checkpoints of a thread in
their order. It does not depend on the database, on the encoding of a thread as deltas, or on the
order of keys in an object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from locus_memory.checkpoint.base import BaseCheckpointer, RestoredCheckpoint
from locus_memory.store.base import BaseStore
from locus_memory.store.checksum import canonical
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.transfer.items import PAGE
from locus_memory.transfer.moments import write_moment
from locus_memory.transfer.threads import checkpoints_of, heads_of

__all__ = ["Digest", "namespace_digest", "thread_digest"]


@dataclass(slots=True)
class Digest:
    """A count and a SHA-256, extended part by part."""

    count: int = 0
    _hash: Any = field(default_factory=sha256)

    def add(self, *parts: Any) -> None:
        """Add one item or checkpoint; its parts are JSON."""
        for part in parts:
            encoded = canonical(part)
            self._hash.update(len(encoded).to_bytes(8, "big") + encoded)
        self.count += 1

    def add_items(self, items: Iterable[StoreItem]) -> None:
        """Add items."""
        for item in items:
            expires = None if item.expires_at is None else write_moment(item.expires_at)
            moments = write_moment(item.created_at), write_moment(item.updated_at), expires
            self.add([item.key, item.version, *moments], item.value, item.metadata)

    def add_checkpoint(self, checkpoint: RestoredCheckpoint) -> None:
        """Add a checkpoint whose state is plain JSON."""
        origin = None if checkpoint.forked_from is None else list(checkpoint.forked_from)
        head = [checkpoint.checkpoint_id, write_moment(checkpoint.created_at), origin]
        self.add([*head, checkpoint.kind], dict(checkpoint.metadata), checkpoint.state)

    @property
    def text(self) -> str:
        """The digest so far: 64 hexadecimal digits."""
        return str(self._hash.hexdigest())


async def namespace_digest(store: BaseStore, namespace: Namespace) -> Digest:
    """Return the digest of the items of one namespace, in key order."""
    digest = Digest()
    after: str | None = None
    while items := await store.scan(namespace, PAGE, after=after):
        digest.add_items(items)
        after = items[-1].key
    return digest


async def thread_digest(checkpointer: BaseCheckpointer, thread_id: str) -> Digest:
    """Return the digest of a thread, its oldest checkpoint first."""
    digest = Digest()
    heads = await heads_of(checkpointer, thread_id)
    async for checkpoint in checkpoints_of(checkpointer, heads):
        digest.add_checkpoint(checkpoint)
    return digest
