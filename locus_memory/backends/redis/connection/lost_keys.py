"""Keys that the server lost, though others tell of what they held.

A server that evicts, or somebody with a client, takes whole keys away. What is left then reads as
if nothing had ever been there, so each script that finds a key missing looks whether another one
tells of it, and fails with `LOSTKEY`, the tag of the namespace or thread, and the key's last part.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from locus_memory.errors import BackendCorruptError

if TYPE_CHECKING:
    from locus_memory.backends.redis.items.spaces import Space

__all__ = ["LOST", "LostKeyError", "named", "named_threads"]

_PARTS: Final = {
    "k": "the list of its keys",
    "r": "the order of its writes",
    "c": "what its indexes know of its items",
    "d": "the documents of its text index",
    "p": "the postings of its text index",
    "m": "its counters",
}
_STORE_REMEDY: Final = (
    "restore a backup; or read what is left with get() or scan(), clear_namespace() it and write "
    "it again"
)
_THREAD_REMEDY: Final = "restore a backup, or delete the thread"
_NO_EVICTION: Final = "the server must not evict: set maxmemory-policy to noeviction"


class LostKeyError(BackendCorruptError):
    """A key is missing that others tell of.

    Attributes:
        place: The server.
        name: What the key ends with, enough to know it by.
        tag: What the keys of the namespace have in common.
        part: The rest of the name.
    """

    def __init__(self, place: str, name: str) -> None:
        self.place = place
        self.name = name
        self.tag, _, self.part = name.partition(":")
        super().__init__(f"redis {place}: the key that ends in {name!r} is lost; {_NO_EVICTION}")

    def of(self, space: Space) -> BackendCorruptError:
        """Return the same error, which names the namespace and what can be done."""
        what = _PARTS.get(self.part) or f"vectors of {self.part[1:]} dimensions"
        return BackendCorruptError(
            f"redis {self.place}: namespace {space.namespace!r} lost {what} (key "
            f"{space.base.decode(errors='replace')}:{self.part}); {_STORE_REMEDY}; {_NO_EVICTION}"
        )


@contextmanager
def named(spaces: Iterable[Space]) -> Generator[None]:
    """Name the namespace, which is one of these, where a key of it is lost."""
    try:
        yield
    except LostKeyError as error:
        tag = error.tag.encode()
        for space in spaces:
            if space.base.endswith(tag):
                raise error.of(space) from error
        raise


@contextmanager
def named_threads(
    threads: Iterable[str], keys_of: Callable[[str], Iterable[bytes]]
) -> Generator[None]:
    """Name the thread, which is one of these, where a key of it is lost."""
    try:
        yield
    except LostKeyError as error:
        name = error.name.encode()
        for thread_id in threads:
            if any(key.endswith(name) for key in keys_of(thread_id)):
                raise BackendCorruptError(
                    f"redis {error.place}: thread {thread_id!r} lost the key that ends in "
                    f"{error.name!r}; {_THREAD_REMEDY}; {_NO_EVICTION}"
                ) from error
        raise


LOST: Final = re.compile(r"(?<![A-Za-z])LOSTKEY (\S+)")
"""What a script says of a key that is lost."""
