"""Items in packs of a size: the best of a ranking within a budget of tokens, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from locus_memory.conversation.tokens import as_token_counter
from locus_memory.store.item import check_limit

__all__ = ["Packed", "in_packs", "pack"]

_T = TypeVar("_T")

_LINE: Final = 1
"""Tokens of the line feed between two texts."""


@dataclass(frozen=True, slots=True)
class Packed(Generic[_T]):
    """The items that fit into a budget.

    Attributes:
        items: The items, the best first.
        tokens: The number of their tokens.
        left_out: The number of items that did not fit.
    """

    items: tuple[_T, ...]
    tokens: int
    left_out: int


def pack(
    ranked: Iterable[_T],
    budget: int,
    *,
    text_of: Callable[[_T], str] = str,
    counter: object | None = None,
) -> Packed[_T]:
    """Return the best items that together have at most `budget` tokens.

    An item that does not fit is left out; shorter items after it can still fit.

    Args:
        ranked: Items, the best first.
        budget: Tokens, at least 0; a line feed after each item counts.
        text_of: Returns the text of an item, as it will be in the prompt.
        counter: See `locus_memory.conversation.tokens.as_token_counter`.

    Raises:
        InvalidArgumentError: The budget is not an integer of at least 0.
    """
    check_limit(budget, "budget")
    count = as_token_counter(counter)
    taken: list[_T] = []
    used = left_out = 0
    for item in ranked:
        tokens = count(text_of(item)) + _LINE
        if used + tokens <= budget:
            taken.append(item)
            used += tokens
        else:
            left_out += 1
    return Packed(tuple(taken), used, left_out)


def in_packs(items: Iterable[_T], size: Callable[[_T], int], room: int) -> list[list[_T]]:
    """Return items in packs, in their order; only a single item may take more than the room.

    Args:
        items: The items.
        size: Returns how much of the room an item takes.
        room: The room of a pack.
    """
    packs: list[list[_T]] = []
    left = 0
    for item in items:
        taken = size(item)
        if not packs or taken > left:
            packs.append([])
            left = room
        packs[-1].append(item)
        left -= taken
    return packs
