"""The Lua scripts of the store, read from their files at their first use."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from locus_memory.backends.redis.connection.connection import Script

__all__ = ["SCRIPTS", "read_part", "script"]

SCRIPTS: Final[dict[str, tuple[str, ...]]] = {
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
    "register": (),
    "forget": (),
    "adopt": ("space",),
}
"""For each script, the files with the functions that it shares with others."""

_REPEATABLE: Final = frozenset(SCRIPTS) - {"write", "clear"}
_READS: Final = frozenset(
    {"values", "scan", "newest", "fetch", "postings", "similar", "vector", "holds"}
)


@cache
def script(name: str) -> Script:
    """Return a script by its name; the head of its file documents its arguments and reply."""
    parts = [read_part(part) for part in (*SCRIPTS[name], name)]
    return Script("\n".join(parts), idempotent=name in _REPEATABLE, is_read=name in _READS)


def read_part(name: str) -> str:
    """Return the text of one file."""
    folder = files("locus_memory.backends.redis") / "lua"
    return folder.joinpath(f"{name}.lua").read_text("utf-8")
