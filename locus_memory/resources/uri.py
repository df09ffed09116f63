"""`memory://` URIs: one pure value, in one canonical form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote_to_bytes

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidMemoryURI

__all__ = ["ROOT", "SCHEME", "MemoryURI", "as_uri"]

SCHEME: Final = "memory://"

_MOST_SEGMENTS: Final = 64
_LONGEST: Final = 1_000
_BROKEN: Final = re.compile("%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class MemoryURI:
    """A place in a tree: `memory://` and percent-encoded segments.

    `memory:///a/b` and `memory://a/b` are the same. A segment is any text except `.` and `..`, so
    `%2F` is a slash inside a segment. Two different paths have different texts.

    Attributes:
        segments: The decoded segments, from the root; at most 64, of 1 to 1,000 characters each.
        is_folder: Whether the text ends in a slash, which says that it is a folder; true of the
            root.

    Raises:
        InvalidMemoryURI: A segment is empty, too long, `.`, `..` or not a whole text, or there are
            too many.
    """

    segments: tuple[str, ...] = ()
    is_folder: bool = False

    def __post_init__(self) -> None:
        if len(self.segments) > _MOST_SEGMENTS:
            raise InvalidMemoryURI(f"a URI has at most {_MOST_SEGMENTS} segments")
        for segment in self.segments:
            _check_segment(segment)
        if not self.segments and not self.is_folder:
            object.__setattr__(self, "is_folder", True)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the URI of a text.

        Raises:
            InvalidMemoryURI: It is not one.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - user input
            raise InvalidMemoryURI(f"a URI is a string, not {type(text).__name__}")
        if text[: len(SCHEME)].lower() != SCHEME:
            raise InvalidMemoryURI(f"a URI begins with {SCHEME}, unlike {quote(text)}")
        path = text[len(SCHEME) :].removeprefix("/")
        if not path:
            return cls()
        names = path.removesuffix("/").split("/")
        return cls(tuple(_decoded(name) for name in names), path.endswith("/"))

    def __str__(self) -> str:
        """Return the canonical text: unreserved characters as they are, all others encoded."""
        path = "/".join(percent_encoded(segment, safe="") for segment in self.segments)
        return f"{SCHEME}{path}/" if self.segments and self.is_folder else f"{SCHEME}{path}"

    @property
    def name(self) -> str:
        """The last segment; empty for the root."""
        return self.segments[-1] if self.segments else ""

    @property
    def parent(self) -> Self:
        """The folder that holds it; the root's is the root."""
        return type(self)(self.segments[:-1], is_folder=True)

    @property
    def as_folder(self) -> Self:
        """The same path, as a folder."""
        return type(self)(self.segments, is_folder=True)

    def child(self, name: str, *, is_folder: bool = False) -> Self:
        """Return the URI of a child; `name` is one segment, not encoded.

        Raises:
            InvalidMemoryURI: It is not a segment.
        """
        return type(self)((*self.segments, name), is_folder)

    def is_within(self, other: MemoryURI) -> bool:
        """Whether it is `other`, or below it."""
        return self.segments[: len(other.segments)] == other.segments


ROOT: Final = MemoryURI()


def as_uri(where: str | MemoryURI) -> MemoryURI:
    """Return a URI, from its text if need be.

    Raises:
        InvalidMemoryURI: It is not one.
    """
    return where if isinstance(where, MemoryURI) else MemoryURI.parse(where)


def _decoded(name: str) -> str:
    if _BROKEN.search(name):
        raise InvalidMemoryURI(f"{quote(name)} has a '%' without two digits: write it as %25")
    try:
        return unquote_to_bytes(name).decode()
    except UnicodeError:
        raise InvalidMemoryURI(f"{quote(name)} is not the encoding of a text in UTF-8") from None


def _check_segment(segment: object) -> None:
    if not isinstance(segment, str):
        raise InvalidMemoryURI(f"a segment is a string, not {type(segment).__name__}")
    if not segment:
        raise InvalidMemoryURI("a URI has no empty segment, such as '//' in its path")
    if segment in (".", ".."):
        raise InvalidMemoryURI(f"{quote(segment)} is no segment: write the path from the root")
    if len(segment) > _LONGEST:
        raise InvalidMemoryURI(
            f"a segment has at most {_LONGEST:,} characters, and one has {len(segment):,}"
        )
    if any("\ud800" <= each <= "\udfff" for each in segment):
        raise InvalidMemoryURI("a segment contains half a character, a lone surrogate")
