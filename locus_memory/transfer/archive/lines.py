"""The lines of an archive: an item, or a checkpoint."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
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

__all__ = ["CheckpointReader", "CheckpointWriter", "item_line", "read_item"]

_FULL_EVERY: Final = 64
"""A whole state is written after this many changes, so that a reader may start there."""

_ALWAYS: Final = ("key", "value", "metadata", "version", "created_at", "updated_at")
_MOMENTS: Final = ("created_at", "updated_at", "expires_at")
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, LookupError, CheckpointError)


def item_line(item: Restored) -> bytes:
    """Return the line of an item."""
    document: dict[str, Any] = {name: getattr(item, name) for name in _ALWAYS}
    further: dict[str, Any] = {"expires_at": item.expires_at, "text": item.text}
    if item.embedding is not None:
        further["embedding"] = b64encode(check_embedding(item.embedding)).decode()
    document |= {name: each for name, each in further.items() if each is not None}
    return orjson.dumps({**document, "metadata": dict(item.metadata or {})}) + b"\n"


def read_item(line: bytes, namespace: Namespace) -> Restored:
    """Return the item of a line.

    Raises:
        ValueError: It is not an item.
    """
    try:
        document = orjson.loads(line)
        told = [name for name in _MOMENTS if document.get(name) is not None]
        moments: dict[str, Any] = {name: datetime.fromisoformat(document[name]) for name in told}
        vector = document.get("embedding")
        item = Restored(
            namespace=check_namespace(namespace),
            key=check_key(document["key"]),
            value=document["value"],
            metadata=document["metadata"],
            text=check_text(document.get("text"), "text"),
            embedding=None if vector is None else embedding_numbers(b64decode(vector)),
            version=document["version"],
            **moments,
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
            "created_at": checkpoint.created_at,
            "metadata": dict(checkpoint.metadata),
            "kind": checkpoint.kind,
        }
        if checkpoint.forked_from is not None:
            document["forked_from"] = checkpoint.forked_from
        document |= self._content(checkpoint.state)
        self._last = checkpoint.state
        self._count += 1
        return orjson.dumps(document) + b"\n"

    def _content(self, state: Any) -> dict[str, Any]:
        if self._count % _FULL_EVERY:
            change = diff(self._last, state)
            if len(orjson.dumps(change)) < len(orjson.dumps(state)):
                return {"change": change}
        return {"state": state}


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
            is_whole = "state" in document
            state = document["state"] if is_whole else apply(self._last, document["change"])
            origin = document.get("forked_from")
            checkpoint = RestoredCheckpoint(
                checkpoint_id=document["checkpoint_id"],
                state=state,
                metadata=document["metadata"],
                created_at=datetime.fromisoformat(document["created_at"]),
                forked_from=None if origin is None else (origin[0], origin[1]),
                kind=document["kind"],
            )
            restored_save(self.thread_id, checkpoint, None)
        except (*_WRONG, LocusMemoryError) as error:
            raise ValueError(f"it is not a checkpoint: {error}") from error
        self._last = state
        return checkpoint
