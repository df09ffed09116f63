"""Packs of what has a size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["packed"]

_Item = TypeVar("_Item")


def packed(items: Iterable[_Item], size: Callable[[_Item], int], room: int) -> list[list[_Item]]:
    """Return items in packs, in their order; only a single item may take more than the room.

    Args:
        items: The items.
        size: Returns how much of the room an item takes.
        room: The room of a pack.
    """
    packs: list[list[_Item]] = []
    left = 0
    for item in items:
        taken = size(item)
        if not packs or taken > left:
            packs.append([])
            left = room
        packs[-1].append(item)
        left -= taken
    return packs
