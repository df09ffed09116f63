"""Entity tags: the version of a document, for conditional requests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from locus_memory.errors import InvalidArgumentError

__all__ = ["Match", "read_etag", "write_etag"]

_TAG: Final = re.compile(r'"(\d{1,18})(?:\.[0-9a-f]+)?"')


@dataclass(frozen=True, slots=True)
class Match:
    """The condition of a write.

    Attributes:
        tag: The value of `If-Match`, one tag or `*`; `None`: the write is not conditional.
        absent: Whether nothing may be stored yet: `If-None-Match: *`.

    Raises:
        InvalidArgumentError: A header is not one of these, or both are there.
    """

    tag: str | None = None
    absent: bool = False

    @classmethod
    def of(cls, if_match: str | None, if_none_match: str | None) -> Match:
        """Return the condition of the two headers of a write."""
        if if_match is not None and if_none_match is not None:
            raise InvalidArgumentError("give If-Match or If-None-Match, not both")
        if if_none_match not in (None, "*"):
            raise InvalidArgumentError("If-None-Match of a write is *")
        if if_match not in (None, "*"):
            read_etag(if_match or "")
        return cls(if_match, if_none_match is not None)


def write_etag(version: int, since: datetime | None = None) -> str:
    """Return the tag of a version, with the moment when its document first came into being."""
    if since is None:
        return f'"{version}"'
    return f'"{version}.{int(since.timestamp() * 1_000_000):x}"'


def read_etag(tag: str) -> int:
    """Return the version of a tag.

    Raises:
        InvalidArgumentError: It is not a tag of this server.
    """
    found = _TAG.fullmatch(tag.strip())
    if found is None:
        raise InvalidArgumentError("If-Match is the ETag of an earlier answer, or *")
    return int(found[1])
