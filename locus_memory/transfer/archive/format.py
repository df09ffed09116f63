"""The manifest of an archive, and the names of its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

__all__ = [
    "FORMAT",
    "MANIFEST",
    "SEAL",
    "VERSION",
    "Entry",
    "Kind",
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

Kind = Literal["items", "thread"]
_Text = Annotated[str, Field(strict=True, min_length=1)]
_Count = Annotated[int, Field(strict=True, ge=0)]


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

    file: _Text
    kind: Kind
    name: Annotated[tuple[_Text, ...], Field(min_length=1)]
    count: _Count
    size: Annotated[_Count, Field(alias="bytes")]
    digest: Annotated[_Text, Field(alias="sha256")]


def _named(entry: Any) -> Any:
    """Return an entry of JSON with its name as a list, also that of a thread."""
    is_thread = isinstance(entry, dict) and entry.get("kind") == "thread"
    return {**entry, "name": [entry.get("name")]} if is_thread else entry


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
    entries: tuple[Annotated[Entry, BeforeValidator(_named)], ...]
    version: int = VERSION

    def count(self, kind: str) -> int:
        """Return the number of items, or of checkpoints for `thread`."""
        return sum(entry.count for entry in self.entries if entry.kind == kind)

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON."""
        document: dict[str, Any] = _JSON.dump_python(self, by_alias=True)
        document |= {"items": self.count("items"), "checkpoints": self.count("thread")}
        for entry in document["entries"]:
            entry["name"] = entry["name"][0] if entry["kind"] == "thread" else entry["name"]
        return orjson.dumps({"format": FORMAT, **document}, option=orjson.OPT_INDENT_2) + b"\n"

    @staticmethod
    def from_bytes(content: bytes) -> Manifest:
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
        try:
            return _JSON.validate_python(document)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error


_JSON: Final = TypeAdapter(Manifest)


def seal_of(manifest: bytes) -> bytes:
    """Return the content of the file beside a manifest: its SHA-256."""
    return sha256(manifest).hexdigest().encode() + b"\n"
