"""An item as the content of an object; pure.

The content is lines: JSON of the head, of the metadata and of the value, then a CRC-32 of all of
them. The head has the true name of the item, so a moved object is detected, and names that are cut
never stand for each other.

The length is even if the item expires, else odd: a line feed is added where it is needed. So a list
of names and sizes tells which items have to be read to know whether they are still there.

The head has the marks of the last writes with their versions. A write whose answer is lost finds
its mark there, though others have written since.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from os import urandom
from typing import Any, Final
from zlib import crc32

import orjson

from locus_memory._internal.quoting import quote
from locus_memory.backends.oci.schema import FORMAT
from locus_memory.errors import BackendCorruptError
from locus_memory.store.item import Namespace, Restored, StoreItem, timestamp
from locus_memory.store.json_values import decode_json

__all__ = ["Content", "Stored", "may_expire", "new_mark"]

_MARKS: Final = 256
"""The marks that an item keeps: as many as others write while a lost answer is looked for."""

_MEMORY: Final = 600.0
"""Seconds after a write until its mark is of no use; no request is repeated so late."""

_DAMAGED: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def new_mark() -> str:
    """Return the mark of a new write: 48 random bits."""
    return base64.urlsafe_b64encode(urandom(6)).decode()


def may_expire(size: int) -> bool:
    """Whether the item of an object of this length has a time to live."""
    return size % 2 == 0


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a put.

    Attributes:
        value: The value as JSON.
        metadata: The metadata as JSON.
        ttl: Seconds until the item expires, or `None`.
        past: The restored item with its version and moments; `None`: it is a put.
    """

    value: bytes
    metadata: bytes
    ttl: float | None
    past: Restored | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The head of an item, and its content as it was read.

    Attributes:
        namespace: The namespace.
        key: The key.
        version: The version.
        created_at: The first put, seconds since the epoch.
        updated_at: The last put, likewise.
        expires_at: The end of its life, likewise, or `None`.
        order: The place of the last put among all writes.
        life: The mark of the put that created the item: another one after it was deleted.
        marks: The versions of the last puts, by their marks.
        metadata: The metadata as JSON.
        value: The value as JSON.
    """

    namespace: Namespace
    key: str
    version: int
    created_at: float
    updated_at: float
    expires_at: float | None
    order: int
    life: str
    marks: dict[str, int]
    metadata: bytes = field(repr=False)
    value: bytes = field(repr=False)

    def is_live(self, now: float) -> bool:
        """Whether it has not expired."""
        return self.expires_at is None or self.expires_at > now

    @classmethod
    def of(
        cls,
        name: tuple[Namespace, str],
        content: Content,
        before: Stored | None,
        *,
        now: float,
        order: int,
        mark: str,
    ) -> Stored:
        """Return the item after a put.

        Args:
            name: Its namespace and key.
            content: The content of the put.
            before: The item in its place, which may have expired, or `None`.
            now: The moment, seconds since the epoch.
            order: The place of this put among all writes, if no later one is known.
            mark: The mark of this put.
        """
        live = before if before is not None and before.is_live(now) else None
        version = 1 if live is None else live.version + 1
        created = now if live is None else live.created_at
        updated = now if live is None else max(now, live.updated_at)
        expires = None if content.ttl is None else now + content.ttl
        if (past := content.past) is not None:
            version, created = past.version, past.created_at.timestamp()
            updated = past.updated_at.timestamp()
            expires = None if past.expires_at is None else past.expires_at.timestamp()
        return cls(
            namespace=name[0],
            key=name[1],
            version=version,
            created_at=created,
            updated_at=updated,
            expires_at=expires,
            order=order if before is None else max(order, before.order + 1),
            life=mark if live is None else live.life,
            marks={**_recent(before, now), mark: version},
            metadata=content.metadata,
            value=content.value,
        )

    def head(self) -> Stored:
        """Return the item without its content, to remember it."""
        return replace(self, metadata=b"", value=b"")

    def encode(self) -> bytes:
        """Return the content of the object."""
        head = {
            "f": FORMAT,
            "n": self.namespace,
            "k": self.key,
            "v": self.version,
            "c": self.created_at,
            "u": self.updated_at,
            "x": self.expires_at,
            "s": self.order,
            "l": self.life,
            "o": self.marks,
        }
        lines = b"\n".join((orjson.dumps(head), self.metadata, self.value, b""))
        body = lines + b"%08x\n" % crc32(lines)
        expires = self.expires_at is not None
        return body if may_expire(len(body)) == expires else body + b"\n"

    @classmethod
    def decode(
        cls, place: str, body: bytes, namespace: Namespace | None, key: str | None
    ) -> Stored:
        """Return the item of an object.

        Args:
            place: The name of the bucket in messages.
            body: The content of the object.
            namespace: The namespace that it must have; `None`: any.
            key: The key that it must have; `None`: any.

        Raises:
            BackendCorruptError: The content is damaged, of a newer format or of another item.
        """
        try:
            line, metadata, value, checksum = body.rstrip(b"\n").split(b"\n")
            head: dict[str, Any] = orjson.loads(line)
            whole = int(checksum, 16) == crc32(b"\n".join((line, metadata, value, b"")))
            found = cls(
                namespace=tuple(head["n"]),
                key=head["k"],
                version=head["v"],
                created_at=head["c"],
                updated_at=head["u"],
                expires_at=head["x"],
                order=head["s"],
                life=head["l"],
                marks=head["o"],
                metadata=metadata,
                value=value,
            )
        except _DAMAGED as error:
            raise _corrupt(place, namespace, key, "its object is damaged") from error
        if not whole:
            raise _corrupt(place, namespace, key, "its object is damaged")
        if head["f"] > FORMAT:
            raise _corrupt(place, namespace, key, "a newer version of the library wrote it")
        if namespace not in (None, found.namespace) or key not in (None, found.key):
            raise _corrupt(place, namespace, key, "another item is in its place")
        return found

    def item(self) -> StoreItem:
        """Return the item for the caller, with copies of its own."""
        return StoreItem(
            namespace=self.namespace,
            key=self.key,
            value=decode_json(self.value),
            metadata=decode_json(self.metadata),
            created_at=timestamp(self.created_at),
            updated_at=timestamp(self.updated_at),
            version=self.version,
            expires_at=None if self.expires_at is None else timestamp(self.expires_at),
        )


def _recent(before: Stored | None, now: float) -> dict[str, int]:
    """Return the marks that a repeated request may still look for."""
    if before is None or abs(now - before.updated_at) > _MEMORY:
        return {}
    return dict(list(before.marks.items())[1 - _MARKS :])


def _corrupt(
    place: str, namespace: Namespace | None, key: str | None, reason: str
) -> BackendCorruptError:
    name = "an item" if key is None else f"item {quote(key)}"
    where = "" if namespace is None else f" in {quote(namespace)}"
    return BackendCorruptError(f"oci {place}: {name}{where}: {reason}")
