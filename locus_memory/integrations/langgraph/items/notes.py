"""The notes of LangGraph's store beside its items, which mark vectors that are out of date.

An item's metadata holds, under `langgraph`, data without a field in the store contract: its TTL in
minutes, since a read restarts it, and the name of the write of its further vectors.

An item has one own vector, that of its first text. The vectors of its other texts are items of a
hidden namespace, which no namespace of LangGraph can equal, since its labels hold no NUL:

| item | key | value |
|---|---|---|
| a further vector | `<write>:<number>` | `{"key": <key of its item>}` |
| their list | `of:<key of the item>` | `{"write": <write>, "count": <number>}` |

A write's name is random, and ends with a digest of the value. A vector counts only if the item's
metadata still names its write and the value still has the digest. So a vector is never found after
its item was deleted, replaced or changed by another writer, or after a process died.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from locus_memory.integrations.langgraph.items.filter_translation import NOTES
from locus_memory.store.hidden_namespaces import further_vectors
from locus_memory.store.item import Namespace, StoreItem
from locus_memory.store.json_values import encode_json

__all__ = [
    "Name",
    "Notes",
    "Owned",
    "is_current",
    "name_write",
    "owner_of",
    "updated_at",
]

Name = tuple[Namespace, str]
"""A namespace and a key."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes in an item's metadata; see the module.

    Attributes:
        ttl: Minutes from its last use until it expires, or `None`.
        write: The write of its further vectors, or `None`.
        count: The number of its further vectors.
        updated_at: When it was last put, if it was rewritten since to restart its TTL.
        version: Its version after that; with another version, `updated_at` is not valid.
    """

    ttl: float | None = None
    write: str | None = None
    count: int = 0
    updated_at: str | None = None
    version: int | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self:
        """Return the notes; other metadata is ignored."""
        noted = metadata.get(NOTES)
        if not isinstance(noted, Mapping):
            return cls()
        ttl, write, count = (noted.get(name) for name in ("ttl", "write", "count"))
        moment, version = noted.get("updated_at"), noted.get("version")
        return cls(
            ttl=ttl if isinstance(ttl, int | float) and ttl > 0 else None,
            write=write if isinstance(write, str) else None,
            count=count if isinstance(count, int) else 0,
            updated_at=moment if isinstance(moment, str) else None,
            version=version if isinstance(version, int) else None,
        )

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that `of` reads."""
        noted = {
            "ttl": self.ttl,
            "write": self.write,
            "count": self.count or None,
            "updated_at": self.updated_at,
            "version": self.version,
        }
        kept = {name: value for name, value in noted.items() if value is not None}
        return {NOTES: kept} if kept else {}


@dataclass(frozen=True, slots=True)
class Owned:
    """The further vectors of one write of an item, from the item's hidden record."""

    namespace: Namespace
    key: str
    write: str
    count: int

    @property
    def record(self) -> Name:
        """The name of that record."""
        return further_vectors(self.namespace), f"of:{self.key}"

    @property
    def vectors(self) -> list[Name]:
        """The names of the vectors' items."""
        return [(further_vectors(self.namespace), f"{self.write}:{n}") for n in range(self.count)]

    @classmethod
    def of(cls, name: Name, record: Any) -> Self | None:
        """Return the vectors that an item's record names, or `None` if it is not a record."""
        if not isinstance(record, Mapping):
            return None
        write, count = record.get("write"), record.get("count")
        if not isinstance(write, str) or not isinstance(count, int):
            return None
        return cls(*name, write, count)


def name_write(value: Any) -> str:
    """Return a unique name for a write of `value`."""
    return secrets.token_hex(12) + _digest(value)


def owner_of(vector: StoreItem) -> Name:
    """Return the name of the item that a further vector belongs to."""
    return vector.namespace[1:], str(vector.value["key"])


def is_current(vector: StoreItem, owner: StoreItem) -> bool:
    """Whether a further vector belongs to the current value of its item."""
    write = Notes.of(owner.metadata).write
    return (
        write is not None
        and vector.key.startswith(f"{write}:")
        and write.endswith(_digest(owner.value))
    )


def updated_at(item: StoreItem) -> datetime:
    """Return when an item was last put; a restart of its TTL does not count."""
    if NOTES not in item.metadata:
        return item.updated_at
    notes = Notes.of(item.metadata)
    if notes.updated_at is None or notes.version != item.version:
        return item.updated_at
    return datetime.fromisoformat(notes.updated_at)


def _digest(value: Any) -> str:
    return hashlib.blake2b(encode_json(_normal(value)), digest_size=12).hexdigest()


def _normal(value: Any) -> Any:
    """Return the normal form of a value, the same for all equal values on any database."""
    if isinstance(value, dict):
        return {key: _normal(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_normal(each) for each in value]
    # Adding 0.0 removes the sign of a zero.
    return repr(float(value) + 0.0) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
