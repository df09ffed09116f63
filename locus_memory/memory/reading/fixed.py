"""What always holds in a scope: what a person wrote, and how the user likes to be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.identity import Identity, IdentityBook
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, MemoryType, has_authority, is_expired
from locus_memory.memory.reading.lines import Line, about_line, always_line, fitting, rule_line
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
        about: Who the owner is: the narrative, or else the derived facts.
    """

    lines: tuple[Line, ...]
    left_out: tuple[Line, ...]
    about: tuple[Line, ...]


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
        self._vitals = VitalsBook(store)

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
        return Fixed(lines=(*fixed, *ruled), left_out=left_out, about=_about(identity))

    async def _rules(self, scope: Scope) -> list[Memory]:
        """Return the feedback memories, the most salient first."""
        items = scan_all(self._store, scope.current, prefix=current_key(MemoryType.FEEDBACK, ""))
        read = [memory async for item in items if (memory := read_memory(item)) is not None]
        now = self._now()
        rules = {
            current_key(each.type, each.key): each
            for each in read
            if not is_expired(each, now) and has_authority(each)
        }
        saliences = await self._vitals.saliences(scope, rules) if len(rules) > 1 else {}
        return [rules[name] for name in sorted(rules, key=lambda name: -saliences.get(name, 0.0))]


def _about(identity: Identity) -> tuple[Line, ...]:
    texts = [identity.content] if identity.content else [fact.text for fact in identity.facts]
    return tuple(about_line(text) for text in texts if text)


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
