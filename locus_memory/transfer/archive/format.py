"""The manifest of an archive, and the names of its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Self

import orjson

__all__ = [
    "FORMAT",
    "MANIFEST",
    "SEAL",
    "VERSION",
    "Entry",
    "Manifest",
    "file_name",
    "seal_of",
]

FORMAT: Final = "locus-memory archive"
VERSION: Final = 1
"""The version of the format; a reader refuses newer ones."""

MANIFEST: Final = "manifest.json"
SEAL: Final = "manifest.sha256"

_LONGEST: Final = 60
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


def file_name(kind: str, number: int, parts: tuple[str, ...]) -> str:
    """Return the file of a namespace or a thread: its number, and a readable part of its name.

    It has only letters, digits, `-` and `_`, so every system can extract it. The true name is in
    the manifest.

    Args:
        kind: `items` or `thread`.
        number: The number of the entry, which no other entry has.
        parts: The labels of the namespace, or the thread.
    """
    readable = ".".join(_UNSAFE.sub("_", part) for part in parts)[:_LONGEST]
    folder = "items" if kind == "items" else "threads"
    return f"{folder}/{number:06d}-{readable}.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of an archive.

    Attributes:
        file: Its name in the archive.
        kind: `items` or `thread`.
        name: The labels of the namespace, or the thread.
        count: The number of its lines.
        size: Its bytes, not compressed.
        digest: Its SHA-256.
    """

    file: str
    kind: str
    name: tuple[str, ...]
    count: int
    size: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON."""
        name: Any = list(self.name) if self.kind == "items" else self.name[0]
        return {
            "file": self.file,
            "kind": self.kind,
            "name": name,
            "count": self.count,
            "bytes": self.size,
            "sha256": self.digest,
        }

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Return the entry of a manifest.

        Raises:
            ValueError: It is not an entry.
        """
        try:
            kind, name = document["kind"], document["name"]
            parts = (name,) if kind == "thread" else tuple(name)
            entry = cls(
                document["file"],
                kind,
                parts,
                document["count"],
                document["bytes"],
                document["sha256"],
            )
        except (KeyError, TypeError) as error:
            raise ValueError("an entry of the manifest is incomplete") from error
        texts = all(isinstance(each, str) and each for each in (entry.file, entry.digest, *parts))
        numbers = all(type(each) is int and each >= 0 for each in (entry.count, entry.size))
        if kind not in ("items", "thread") or not texts or not numbers or not parts:
            raise ValueError("an entry of the manifest is invalid")
        return entry


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an archive.

    Attributes:
        library: The version of the library that wrote it.
        created_at: When, in ISO 8601.
        provider: The provider of the source.
        entries: The files.
        version: The version of the format.
    """

    library: str
    created_at: str
    provider: str
    entries: tuple[Entry, ...]
    version: int = VERSION

    def count(self, kind: str) -> int:
        """Return the number of items, or of checkpoints for `thread`."""
        return sum(entry.count for entry in self.entries if entry.kind == kind)

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON."""
        document = {
            "format": FORMAT,
            "version": self.version,
            "library": self.library,
            "created_at": self.created_at,
            "provider": self.provider,
            "items": self.count("items"),
            "checkpoints": self.count("thread"),
            "entries": [entry.to_dict() for entry in self.entries],
        }
        return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return a manifest.

        Raises:
            ValueError: It is not a manifest, or that of a newer version.
        """
        document = orjson.loads(content)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError("it is not the manifest of an archive of this library")
        version = document.get("version")
        if type(version) is not int or version < 1:
            raise ValueError("it has no version")
        if version > VERSION:
            raise ValueError(
                f"the archive has version {version}, and this release reads up to {VERSION}: "
                "install a newer release"
            )
        entries = document.get("entries")
        if not isinstance(entries, list):
            raise ValueError("it has no list of entries")  # noqa: TRY004 - a fault of the file
        return cls(
            library=str(document.get("library")),
            created_at=str(document.get("created_at")),
            provider=str(document.get("provider")),
            entries=tuple(map(Entry.from_dict, entries)),
            version=version,
        )


def seal_of(manifest: bytes) -> bytes:
    """Return the content of the file beside a manifest: its SHA-256."""
    return sha256(manifest).hexdigest().encode() + b"\n"
