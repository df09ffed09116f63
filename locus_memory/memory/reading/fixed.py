"""What always holds in a scope: what a person fixed, and how the user likes to be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from locus_memory.conversation.tokens import TokenCounter
from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.layers.fading import faded
from locus_memory.memory.layers.identity import read_record
from locus_memory.memory.ledger.revision import fixed_in, importance_of
from locus_memory.memory.models import (
    FIXED,
    Memory,
    MemoryType,
    Origin,
    has_authority,
    is_fixed,
)
from locus_memory.memory.reading.lines import Line, always_line, fact_line, fitting, rule_line
from locus_memory.memory.recall.recall import Recall
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.validity import said_at

__all__ = ["Fixed", "FixedBook"]

_RULE_TOKENS: Final = 200
"""The most tokens of the feedback rules. They have a budget of their own, so that much that a
person fixed never silences what the user asked for in passing."""

_MOST: Final = 1_000
_FIXED: Final = Selection(filter={f"metadata.{FIXED}": True}, origins=(Origin.PERSON,))
_RULES: Final = Selection(type=MemoryType.FEEDBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """What always holds in a scope.

    Attributes:
        lines: What a person fixed, the oldest first, and the rules, the most salient first, that
            fit.
        left_out: What a person fixed that does not.
        others: That as facts, and what earlier versions derived about the owner.
    """

    lines: tuple[Line, ...]
    left_out: tuple[Line, ...]
    others: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedBook:
    """Reads what always holds.

    Attributes:
        recall: The search for memories, in their store.
        now: Returns the present moment, ISO 8601 in UTC.
        count: Counts tokens.
        room: The most tokens of what a person fixed.
        lock: Held by a task of this process while it fixes something.
    """

    recall: Recall
    now: Callable[[], str]
    count: TokenCounter
    room: int
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, scope: Scope, budget: int) -> Fixed:
        """Return what always holds in a scope.

        Args:
            scope: The scope.
            budget: The tokens of the block.

        Raises:
            BackendError: The store failed.
        """
        known, rules = await asyncio.gather(self._known(scope), self._rules(scope))
        always = [always_line(each) for each in known if is_fixed(each)]
        fixed, _ = fitting(always, min(self.room, budget), self.count, None)
        ruled, _ = fitting(map(rule_line, rules), _RULE_TOKENS, self.count, None)
        shown = {each.name for each in fixed}
        return Fixed(
            lines=(*fixed, *ruled),
            left_out=tuple(each for each in always if each.name not in shown),
            others=tuple(line for line in map(fact_line, known) if line.name not in shown),
        )

    async def memories(self, scope: Scope) -> list[Memory]:
        """Return what a person fixed, the oldest first.

        Raises:
            BackendError: The store failed.
        """
        return list(filter(is_fixed, await self._known(scope)))

    async def check(self, scope: Scope, memories: Iterable[Memory]) -> None:
        """Check that all that a person fixed is shown, once these memories are written.

        Raises:
            InvalidArgumentError: There is no room for those of them that are fixed.
            BackendError: The store failed.
        """
        lines = {(line := always_line(each)).name: (each, line) for each in memories}
        stored = await self.recall.store.get_batch([(scope.current, name) for name in lines])
        # What a person corrects stays fixed.
        stays = {name for (_, name), value in stored.items() if fixed_in(value)}
        added = {
            name: line
            for name, (each, line) in lines.items()
            if is_fixed(each) or (name in stays and FIXED not in each.metadata)
        }
        known = map(always_line, await self.memories(scope) if added else ())
        rest = [each for each in known if each.name not in added]
        spent, needed = (
            sum(self.count(f"{each.text}\n") for each in told) for told in (rest, added.values())
        )
        if needed and spent + needed > self.room:
            raise InvalidArgumentError(
                f"there is no room to always show this: it takes {needed} tokens, and"
                f" {max(0, self.room - spent)} of {self.room} are left"
            )

    async def _known(self, scope: Scope) -> list[Memory]:
        """Return what a person fixed, and what earlier versions derived, the oldest first."""
        found, record = await asyncio.gather(
            self.recall.newest(scope, _MOST, _FIXED), read_record(self.recall.store, scope)
        )
        told = (*record.memories, *(each.memory for each in found))
        named = {current_key(each.type, each.key): each for each in told}
        return sorted(named.values(), key=lambda each: (said_at(each), each.id))

    async def _rules(self, scope: Scope) -> list[Memory]:
        """Return the feedback memories that are not fixed, the most salient first."""
        found = await self.recall.newest(scope, _MOST, _RULES)
        rules = (each.memory for each in found if has_authority(each.memory))
        now = self.now()
        return sorted(
            (each for each in rules if not is_fixed(each)),
            key=lambda each: -faded(importance_of(each), said_at(each), now),
        )
