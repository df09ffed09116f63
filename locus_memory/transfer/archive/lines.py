"""The lines of an archive: an item, or a checkpoint."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any, Final

import orjson

from locus_memory.checkpoint.base import RestoredCheckpoint
from locus_memory.checkpoint.delta import apply, diff
from locus_memory.checkpoint.saves import restored_save
from locus_memory.errors import CheckpointError, LocusMemoryError
from locus_memory.store.item import (
    Namespace,
    Restored,
    check_embedding,
    check_key,
    check_namespace,
    check_restored,
    check_text,
    embedding_numbers,
)
from locus_memory.store.json_values import encode_metadata
from locus_memory.transfer.moments import read_moment, write_moment

__all__ = ["CheckpointReader", "CheckpointWriter", "item_line", "read_item"]

_FULL_EVERY: Final = 64
"""A whole state is written after this many changes, so that a reader may start there."""

_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, LookupError, CheckpointError)


def item_line(item: Restored) -> bytes:
    """Return the line of an item."""
    expires = item.expires_at
    document: dict[str, Any] = {
        "key": item.key,
        "value": item.value,
        "metadata": dict(item.metadata or {}),
        "version": item.version,
        "created_at": write_moment(item.created_at),
        "updated_at": write_moment(item.updated_at),
    }
    if expires is not None:
        document["expires_at"] = write_moment(expires)
    if item.text is not None:
        document["text"] = item.text
    if item.embedding is not None:
        document["embedding"] = b64encode(check_embedding(item.embedding)).decode()
    return orjson.dumps(document) + b"\n"


def read_item(line: bytes, namespace: Namespace) -> Restored:
    """Return the item of a line.

    Raises:
        ValueError: It is not an item.
    """
    try:
        document = orjson.loads(line)
        expires, vector = document.get("expires_at"), document.get("embedding")
        item = Restored(
            namespace=check_namespace(namespace),
            key=check_key(document["key"]),
            value=document["value"],
            metadata=document["metadata"],
            text=check_text(document.get("text"), "text"),
            embedding=None if vector is None else embedding_numbers(b64decode(vector)),
            version=document["version"],
            created_at=read_moment(document["created_at"]),
            updated_at=read_moment(document["updated_at"]),
            expires_at=None if expires is None else read_moment(expires),
        )
        if item.embedding is not None:
            check_embedding(item.embedding)
        encode_metadata(item.metadata)
        return check_restored(item)
    except (*_WRONG, LocusMemoryError) as error:
        raise ValueError(f"it is not an item: {error}") from error


@dataclass(slots=True)
class CheckpointWriter:
    """Writes the checkpoints of one thread: whole states, and the changes between them."""

    _last: Any = None
    _count: int = 0

    def line(self, checkpoint: RestoredCheckpoint) -> bytes:
        """Return the line of the next checkpoint."""
        document: dict[str, Any] = {
            "checkpoint_id": checkpoint.checkpoint_id,
            "created_at": write_moment(checkpoint.created_at),
            "metadata": dict(checkpoint.metadata),
            "kind": checkpoint.kind,
        }
        if checkpoint.forked_from is not None:
            document["forked_from"] = list(checkpoint.forked_from)
        document |= self._content(checkpoint.state)
        self._last = checkpoint.state
        self._count += 1
        return orjson.dumps(document) + b"\n"

    def _content(self, state: Any) -> dict[str, Any]:
        if self._count % _FULL_EVERY == 0:
            return {"state": state}
        change = diff(self._last, state)
        if len(orjson.dumps(change)) >= len(orjson.dumps(state)):
            return {"state": state}
        return {"change": change}


@dataclass(slots=True)
class CheckpointReader:
    """Reads the checkpoints of one thread."""

    thread_id: str
    _last: Any = None

    def read(self, line: bytes) -> RestoredCheckpoint:
        """Return the checkpoint of the next line.

        Raises:
            ValueError: It is not a checkpoint, or its change does not fit to the state before it.
        """
        try:
            document = orjson.loads(line)
            state = document["state"] if "state" in document else self._changed(document)
            origin = document.get("forked_from")
            checkpoint = RestoredCheckpoint(
                checkpoint_id=document["checkpoint_id"],
                state=state,
                metadata=document["metadata"],
                created_at=read_moment(document["created_at"]),
                forked_from=None if origin is None else (origin[0], origin[1]),
                kind=document["kind"],
            )
            restored_save(self.thread_id, checkpoint, None)
        except (*_WRONG, LocusMemoryError) as error:
            raise ValueError(f"it is not a checkpoint: {error}") from error
        self._last = state
        return checkpoint

    def _changed(self, document: Any) -> Any:
        return apply(self._last, document["change"])
