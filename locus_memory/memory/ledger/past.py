"""The memories that were current at an earlier moment; pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from locus_memory.memory.ledger.revision import ending_of
from locus_memory.memory.models import Memory
from locus_memory.memory.moments import read_moment

__all__ = ["current_at"]


def current_at(versions: Iterable[Memory], moment: datetime) -> Memory | None:
    """Return the version of a memory that was current at a moment; `None` if none was.

    A version is current from `valid_from` until `superseded_at`. A change that was undone counts
    as never made.

    Args:
        versions: All versions of one key, in any order.
        moment: The moment, in UTC.
    """
    found: Memory | None = None
    since: datetime | None = None
    for version in versions:
        start = read_moment(version.metadata.get("valid_from"))
        end = read_moment(version.metadata.get("superseded_at"))
        if start is None or start > moment or (end is not None and end <= moment):
            continue
        if ending_of(version) != "undo" and (since is None or start >= since):
            found, since = version, start
    return found
