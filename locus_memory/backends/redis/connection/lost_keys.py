"""Keys that the server lost, though others tell of what they held.

A server that evicts, or somebody with a client, takes whole keys away. What is left then reads as
if nothing had ever been there, so each script that finds a key missing looks whether another one
tells of it, and fails with `LOSTKEY`, the tag of the namespace or thread, and the key's last part.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from locus_memory.errors import BackendCorruptError

__all__ = ["LOST", "LostKeyError", "named"]

_PARTS: Final = {
    "k": "the list of its keys",
    "r": "the order of its writes",
    "c": "what its indexes know of its items",
    "d": "the documents of its text index",
    "p": "the postings of its text index",
    "m": "its counters",
    "heads": "its list",
    "payloads": "its records",
    "names": "its names",
}
_NO_EVICTION: Final = "the server must not evict: set maxmemory-policy to noeviction"


class LostKeyError(BackendCorruptError):
    """A key is missing that others tell of.

    Attributes:
        place: The server.
        name: What the key ends with, enough to know it by.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        self.name = name
        super().__init__(f"redis {place}: the key that ends in {name!r} is lost; {_NO_EVICTION}")


@contextmanager
def named(owners: Iterable[tuple[str, Iterable[bytes]]], remedy: str) -> Generator[None]:
    """Name the owner of a key that is lost, and what can be done.

    Args:
        owners: What may own it: a name, and keys of it, or what all of them begin with.
        remedy: What can be done.
    """
    try:
        yield
    except LostKeyError as error:
        tag, *_, part = error.name.split(":")
        what = _PARTS.get(part) or f"vectors of {part[1:]} dimensions"
        for owner, keys in owners:
            if any(key.endswith((error.name.encode(), tag.encode())) for key in keys):
                raise BackendCorruptError(
                    f"redis {error.place}: {owner} lost {what} (the key that ends in "
                    f"{error.name!r}); {remedy}; {_NO_EVICTION}"
                ) from error
        raise


LOST: Final = re.compile(r"(?<![A-Za-z])LOSTKEY (\S+)")
"""What a script says of a key that is lost."""
