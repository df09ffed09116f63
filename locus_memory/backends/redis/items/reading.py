"""Reads of items: by their names, and in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from locus_memory.backends.redis.items.items import decode_value, rows
from locus_memory.backends.redis.items.spaces import PAGE, Space, Spaces, named
from locus_memory.backends.redis.lua import Call, script
from locus_memory.backends.selection import KeyRange
from locus_memory.store.encoding import prefix_upper_bound
from locus_memory.store.item import Namespace

__all__ = ["bounds", "read_values", "scan"]

_WIDTH: Final = 4
_TOGETHER: Final = 5 * PAGE
"""How many values a script reads."""

_LAST: Final = b"\xff"
"""After every key, since UTF-8 has no such byte."""


async def scan(
    spaces: Spaces, space: Space, keys: KeyRange, limit: int, *, whole: bool
) -> list[Sequence[bytes]]:
    """Return rows of key, head, value and metadata, or only keys, in order."""
    found: list[Sequence[bytes]] = []
    command = "ZREVRANGEBYLEX" if keys.descending else "ZRANGEBYLEX"
    window: KeyRange | None = keys
    while window is not None and len(found) < limit:
        most = min(limit - len(found), PAGE if whole else 10 * PAGE)
        args = [spaces.now(), command, *bounds(window), most, int(whole)]
        with named([space]):
            last, gone, flat = await spaces.connection.run(script("scan"), [space.base], args)
        found += rows(flat, _WIDTH if whole else 1)
        await spaces.purge((space, key) for key in gone)
        window = None if last is None else replace(window, after=last.decode())
    return found


def bounds(keys: KeyRange) -> tuple[bytes, bytes]:
    """Return the bounds as arguments of `ZRANGEBYLEX`, or `ZREVRANGEBYLEX` if descending."""
    start, after = (keys.prefix or "").encode(), (keys.after or "").encode()
    bound = prefix_upper_bound(keys.prefix) if keys.prefix else None
    end = _LAST if bound is None else bound.encode()
    low, high = b"[" + start, b"(" + end
    if keys.after is not None and keys.descending:
        high = b"(" + min(end, after)
    elif keys.after is not None and after >= start:
        low = b"(" + after
    return (high, low) if keys.descending else (low, high)


async def read_values(
    spaces: Spaces, names: Sequence[tuple[Namespace, str]]
) -> dict[tuple[Namespace, str], Any]:
    """Return the values of the items that exist."""
    await spaces.connection.open()
    asked: list[list[tuple[Namespace, str]]] = []
    calls: list[Call] = []
    for some in rows(names, _TOGETHER):
        by_space: dict[Namespace, list[tuple[Namespace, str]]] = {}
        for name in some:
            by_space.setdefault(name[0], []).append(name)
        for group in spaces.groups([spaces.space(namespace) for namespace in by_space]):
            mine = [name for space in group for name in by_space[space.namespace]]
            asked.append(mine)
            calls.append(_values_call(spaces, group, mine))
    found: dict[tuple[Namespace, str], Any] = {}
    for mine, values in zip(asked, await spaces.run_each(calls, ()), strict=True):
        triples = zip(mine, values[::2], values[1::2], strict=True)
        found |= {
            name: decode_value(*name, head, value)
            for name, head, value in triples
            if head is not None
        }
    return found


def _values_call(
    spaces: Spaces, group: Sequence[Space], names: Sequence[tuple[Namespace, str]]
) -> Call:
    numbers = {space.namespace: number for number, space in enumerate(group, 1)}
    flat = [part for namespace, key in names for part in (numbers[namespace], key.encode())]
    return script("values").call([space.base for space in group], [spaces.now(), *flat])
