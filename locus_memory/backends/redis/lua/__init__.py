"""The Lua scripts of the store and of the checkpoints, read from their files at their first use.

The head of each file documents its arguments and its reply. `space.lua` and `thread.lua` begin the
scripts of a namespace and of a thread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

__all__ = ["SCRIPTS", "Call", "Name", "Script", "read_part", "script"]

Name = str | bytes
"""A key or a part of one; text is encoded as UTF-8."""

_READS: Final[dict[str, tuple[str, ...]]] = {
    "values": ("space",),
    "scan": ("space", "read"),
    "newest": ("space", "read"),
    "fetch": ("space", "read"),
    "postings": ("space",),
    "similar": ("space",),
    "vector": ("space",),
    "holds": ("space",),
    "load": ("thread",),
    "load_all": ("thread",),
    "list": ("thread",),
    "list_threads": (),
}
_REPEATABLE: Final[dict[str, tuple[str, ...]]] = {
    "purge": ("space",),
    "adopt": ("space",),
    "register": (),
    "forget": (),
    "save": ("thread", "thread_changes"),
}
_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "write": ("space",),
    "clear": ("space",),
    "copy": ("thread", "thread_changes"),
    "delete": ("thread", "thread_changes"),
}
SCRIPTS: Final = {**_READS, **_REPEATABLE, **_OTHERS}
"""For each script, the files with the functions that it shares with others."""


@dataclass(frozen=True)
class Script:
    """A Lua script, which the server runs as one step.

    It may touch the keys it is given and others of their slot only. Its first write has to be
    one that the server refuses when its memory is full (not `DEL`, `HDEL`, `EXPIRE`): later
    ones it cannot refuse, so that all is written or nothing.

    Attributes:
        text: Lua 5.1.
        idempotent: Whether to run it twice is as good as once: then it is sent again when the
            connection breaks before the answer.
        is_read: Whether it does no harm when it runs late, after its caller was cancelled.
    """

    text: str
    idempotent: bool = False
    is_read: bool = False

    @cached_property
    def sha(self) -> str:
        """The name that the server gives it: the SHA-1 of its text."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[Name] = (), args: Sequence[Any] = ()) -> Call:
        """Return a call of it, for `RedisConnection.execute_many`."""
        return Call(self, (len(keys), *keys, *args))


@dataclass(frozen=True, slots=True)
class Call:
    """A script with the number of its keys, its keys and its arguments."""

    script: Script
    arguments: tuple[Any, ...]

    @property
    def command(self) -> tuple[Any, ...]:
        """The command that runs the script if the server knows it."""
        return ("EVALSHA", self.script.sha, *self.arguments)

    @property
    def full_command(self) -> tuple[Any, ...]:
        """The command that runs the script on any server, which then knows it."""
        return ("EVAL", self.script.text, *self.arguments)


@cache
def script(name: str) -> Script:
    """Return a script by its name."""
    parts = [read_part(part) for part in (*SCRIPTS[name], name)]
    return Script("\n".join(parts), idempotent=name not in _OTHERS, is_read=name in _READS)


def read_part(name: str) -> str:
    """Return the text of one file."""
    return files(__name__).joinpath(f"{name}.lua").read_text("utf-8")
