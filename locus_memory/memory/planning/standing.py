"""What always holds in a scope: the overrides that a person wrote, and the feedback rules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.memory.inject import fitting, memory_line
from locus_memory.memory.layers.identity import Identity, IdentityBook
from locus_memory.memory.layers.vitals import VitalsBook
from locus_memory.memory.ledger.revision import read_memory
from locus_memory.memory.models import Memory, MemoryType, is_expired, is_of_tool
from locus_memory.memory.planning.cache import STANDING_LAYERS, ScopeCache
from locus_memory.memory.planning.evidence import COUNTED
from locus_memory.memory.planning.lines import always_line
from locus_memory.memory.scope import Scope, current_key
from locus_memory.store.base import BaseStore, scan_all
from locus_memory.store.item import timestamp

__all__ = ["STANDING_TOKENS", "Standing", "StandingBook", "rule_line"]

STANDING_TOKENS: Final = 200
"""The most tokens of the overrides, and the most of the feedback rules. Each has its own budget,
so that many overrides never silence what the user asked for in passing."""


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Standing:
    """What always holds in a scope.

    Attributes:
        identity: Who the owner is, with the overrides.
        overrides: The lines of the overrides that fit their budget, the oldest first.
        silent: The lines of the overrides that did not fit.
        rules: The feedback memories that fit their budget, the most salient first.
        ruled: The line and the `current_key` of each of them; equal lines once.
        unruled: The same of those that did not fit.
        facts: The number of current memories, up to `COUNTED`.
    """

    identity: Identity
    overrides: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    rules: tuple[Memory, ...] = ()
    ruled: tuple[tuple[str, str], ...] = ()
    unruled: tuple[tuple[str, str], ...] = ()
    facts: int = 0


class StandingBook:
    """Reads what always holds, at most every ten seconds where nothing is written.

    Args:
        store: The store, which the book never closes.
        clock: Returns seconds.
        count: Counts tokens.
    """

    def __init__(self, store: BaseStore, clock: Callable[[], float], count: TokenCounter) -> None:
        self._clock = clock
        self._count = count
        self._store = store
        self._identities = IdentityBook(store)
        self._vitals = VitalsBook(store)
        self._kept: ScopeCache[Standing] = ScopeCache(clock, STANDING_LAYERS)

    async def of(self, scope: Scope) -> Standing:
        """Return what always holds in a scope.

        Raises:
            BackendError: The store failed.
        """
        kept = self._kept.get(scope.namespace, None)
        if kept is not None:
            return kept
        ticket = self._kept.ticket(scope.namespace)
        identity, rules, keys = await asyncio.gather(
            self._identities.read(scope),
            self._rules(scope),
            self._store.list_keys(scope.current, COUNTED),
        )
        standing = self._fitted(Standing(identity, rules=rules, facts=len(keys)))
        self._kept.put(ticket, None, standing)
        return standing

    async def ranked(self, scope: Scope, memories: list[Memory]) -> list[Memory]:
        """Return memories with the most salient first, and the older one first of equals.

        Raises:
            BackendError: The store failed.
        """
        if len(memories) < 2:  # noqa: PLR2004 - nothing to rank
            return memories
        vitals = await self._vitals.of(scope, memories)

        def rank(memory: Memory) -> tuple[float, str]:
            return -vitals[current_key(memory.type, memory.key)].salience, _moment(memory)

        return sorted(memories, key=rank)

    async def of_type(self, scope: Scope, kind: MemoryType) -> list[Memory]:
        """Return all current memories of a type that have not expired, by key.

        Raises:
            BackendError: The store failed.
        """
        found = scan_all(self._store, scope.current, prefix=current_key(kind, ""))
        read = [memory async for item in found if (memory := read_memory(item)) is not None]
        now = timestamp(self._clock()).isoformat()
        return [memory for memory in read if not is_expired(memory, now)]

    async def _rules(self, scope: Scope) -> tuple[Memory, ...]:
        """Return the feedback memories; what a tool told is never a rule."""
        found = await self.of_type(scope, MemoryType.FEEDBACK)
        return tuple(await self.ranked(scope, [each for each in found if not is_of_tool(each)]))

    def _fitted(self, standing: Standing) -> Standing:
        """Return what always holds, within its budgets."""
        overrides = [always_line(each.text) for each in standing.identity.overrides]
        rules = [rule_line(each) for each in standing.rules]
        always, _ = fitting(overrides, STANDING_TOKENS, self._count)
        ruled, _ = fitting(rules, STANDING_TOKENS, self._count)
        names = [current_key(each.type, each.key) for each in standing.rules]
        pairs = list(zip(rules, names, strict=True))
        return replace(
            standing,
            overrides=tuple(overrides[place] for place in always),
            silent=_others(overrides, always),
            rules=tuple(standing.rules[place] for place in ruled),
            ruled=tuple(pairs[place] for place in ruled),
            unruled=_others(pairs, ruled),
        )


def _others(values: Sequence[_Value], places: Sequence[int]) -> tuple[_Value, ...]:
    """Return the values that are not at these places."""
    taken = set(places)
    return tuple(value for place, value in enumerate(values) if place not in taken)


def rule_line(rule: Memory) -> str:
    """Return the line of a feedback memory."""
    return memory_line(rule, STANDING_TOKENS * 8)


def _moment(memory: Memory) -> str:
    moment = memory.metadata.get("valid_from")
    return moment if isinstance(moment, str) else ""
