"""What always holds in a scope: what a person wrote, and how the user likes to be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.fading import faded
from locus_memory.memory.layers.identity import IdentityBook, derived
from locus_memory.memory.layers.vitals import written_at
from locus_memory.memory.ledger.revision import importance_of, read_memory
from locus_memory.memory.models import Memory, MemoryType, has_authority, is_expired
from locus_memory.memory.reading.lines import Line, always_line, fact_line, fitting, rule_line
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.base import BaseStore, scan_all

__all__ = ["FIXED_TOKENS", "Fixed", "FixedBook", "check_override"]

FIXED_TOKENS: Final = 200
"""The most tokens of the overrides, and the most of the feedback rules. Each has its own budget,
so that many overrides never silence what the user asked for in passing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What always holds in a scope.

    Attributes:
        lines: The overrides, the oldest first, and the rules, the most salient first, that fit.
        left_out: The overrides that do not.
        derived: What earlier versions derived about the owner.
    """

    lines: tuple[Line, ...]
    left_out: tuple[Line, ...]
    derived: tuple[Line, ...]


class FixedBook:
    """Reads what always holds.

    Args:
        store: The store, which the book never closes.
        now: Returns the present moment, ISO 8601 in UTC.
        count: Counts tokens.
    """

    def __init__(self, store: BaseStore, now: Callable[[], str], count: TokenCounter) -> None:
        self._store = store
        self._now = now
        self._count = count
        self._identities = IdentityBook(store)

    async def of(self, scope: Scope) -> Fixed:
        """Return what always holds in a scope.

        Raises:
            BackendError: The store failed.
        """
        identity, rules = await asyncio.gather(self._identities.read(scope), self._rules(scope))
        overrides = [always_line(each.text) for each in identity.overrides]
        fixed, _ = fitting(overrides, FIXED_TOKENS, self._count, None)
        ruled, _ = fitting(map(rule_line, rules), FIXED_TOKENS, self._count, None)
        left_out = tuple(each for each in overrides if each not in fixed)
        return Fixed(
            lines=(*fixed, *ruled),
            left_out=left_out,
            derived=tuple(map(fact_line, derived(identity))),
        )

    async def _rules(self, scope: Scope) -> list[Memory]:
        """Return the feedback memories, the most salient first."""
        items = scan_all(self._store, scope.current, prefix=current_key(MemoryType.FEEDBACK, ""))
        read = [memory async for item in items if (memory := read_memory(item)) is not None]
        now = self._now()
        rules = [each for each in read if not is_expired(each, now) and has_authority(each)]
        return sorted(rules, key=lambda each: -faded(importance_of(each), written_at(each), now))


def check_override(text: str, count: TokenCounter) -> None:
    """Check that there is room for an override, if it is the only one.

    Raises:
        InvalidArgumentError: No run could show it.
    """
    tokens = count(f"{always_line(text).text}\n")
    if tokens > FIXED_TOKENS:
        raise InvalidArgumentError(
            f"an override has at most {FIXED_TOKENS} tokens, this one {tokens}: it would never be"
            " shown"
        )
