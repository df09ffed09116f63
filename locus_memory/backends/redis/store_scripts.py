"""The Lua scripts of the store, read from their files when they are first needed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from locus_memory.backends.redis.connection import Script

__all__ = ["SCRIPTS", "script"]

SCRIPTS: Final = {
    "write": ("space",),
    "purge": ("space",),
    "clear": ("space",),
    "values": ("space",),
    "scan": ("space", "read"),
    "newest": ("space", "read"),
    "fetch": ("space", "read"),
    "postings": ("space",),
    "similar": ("space",),
    "vector": ("space",),
    "holds": ("space",),
}
"""For each script, the files with what it shares with others."""

_REPEATABLE: Final = frozenset(SCRIPTS) - {"write", "clear"}


@cache
def script(name: str) -> Script:
    """Return a script by its name; the head of its file says what it takes and returns."""
    folder = files("locus_memory.backends.redis") / "lua"
    parts = [folder.joinpath(f"{part}.lua").read_text("utf-8") for part in (*SCRIPTS[name], name)]
    return Script("\n".join(parts), idempotent=name in _REPEATABLE)
