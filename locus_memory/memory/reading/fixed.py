"""What always holds in a scope: what a person fixed, and how the user likes to be answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

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
from locus_memory.memory.reading.reading import Reading
from locus_memory.memory.recall.selection import Selection
from locus_memory.memory.scope import Scope, current_key
from locus_memory.memory.validity import said_at

__all__ = ["check_room", "fixed_memories", "fixed_of"]

_RULE_TOKENS: Final = 200
"""The most tokens of the feedback rules. They have a budget of their own, so that much that a
person fixed never silences what the user asked for in passing."""

_MOST: Final = 1_000
_FIXED: Final = Selection(filter={f"metadata.{FIXED}": True}, origins=(Origin.PERSON,))
_RULES: Final = Selection(type=MemoryType.FEEDBACK)


async def fixed_of(
    reading: Reading, scope: Scope, budget: int
) -> tuple[list[Line], list[Line], list[Line]]:
    """Return what always holds in a scope.

    Args:
        reading: What is read.
        scope: The scope.
        budget: The tokens of the block.

    Returns:
        What a person fixed, the oldest first, and the rules, the most salient first, that fit; what
        a person fixed that does not; and that as facts, with what earlier versions derived about
        the owner.

    Raises:
        BackendError: The store failed.
    """
    known, rules = await asyncio.gather(_known(reading, scope), _rules(reading, scope))
    always = [always_line(each) for each in known if is_fixed(each)]
    fixed, _ = fitting(always, min(reading.fixed_room, budget), reading.count, None)
    ruled, _ = fitting(map(rule_line, rules), _RULE_TOKENS, reading.count, None)
    shown = {each.name for each in fixed}
    left_out = [each for each in always if each.name not in shown]
    others = [line for line in map(fact_line, known) if line.name not in shown]
    return [*fixed, *ruled], left_out, others


async def fixed_memories(reading: Reading, scope: Scope) -> list[Memory]:
    """Return what a person fixed, the oldest first.

    Raises:
        BackendError: The store failed.
    """
    return list(filter(is_fixed, await _known(reading, scope)))


async def check_room(reading: Reading, scope: Scope, memories: Iterable[Memory]) -> None:
    """Check that all that a person fixed is shown, once these memories are written.

    Raises:
        InvalidArgumentError: There is no room for those of them that are fixed.
        BackendError: The store failed.
    """
    lines = {(line := always_line(each)).name: (each, line) for each in memories}
    stored = await reading.recall.store.get_batch([(scope.current, name) for name in lines])
    # What a person corrects stays fixed.
    stays = {name for (_, name), value in stored.items() if fixed_in(value)}
    added = {
        name: line
        for name, (each, line) in lines.items()
        if is_fixed(each) or (name in stays and FIXED not in each.metadata)
    }
    known = map(always_line, await fixed_memories(reading, scope) if added else ())
    rest = [each for each in known if each.name not in added]
    spent, needed = (
        sum(reading.count(f"{each.text}\n") for each in told) for told in (rest, added.values())
    )
    if needed and spent + needed > reading.fixed_room:
        raise InvalidArgumentError(
            f"there is no room to always show this: it takes {needed} tokens, and"
            f" {max(0, reading.fixed_room - spent)} of {reading.fixed_room} are left"
        )


async def _known(reading: Reading, scope: Scope) -> list[Memory]:
    """Return what a person fixed, and what earlier versions derived, the oldest first."""
    found, record = await asyncio.gather(
        reading.recall.newest(scope, _MOST, _FIXED), read_record(reading.recall.store, scope)
    )
    told = (*record.memories, *(each.memory for each in found))
    named = {current_key(each.type, each.key): each for each in told}
    return sorted(named.values(), key=lambda each: (said_at(each), each.id))


async def _rules(reading: Reading, scope: Scope) -> list[Memory]:
    """Return the feedback memories that are not fixed, the most salient first."""
    found = await reading.recall.newest(scope, _MOST, _RULES)
    rules = (each.memory for each in found if has_authority(each.memory))
    now = reading.now()
    return sorted(
        (each for each in rules if not is_fixed(each)),
        key=lambda each: -faded(importance_of(each), said_at(each), now),
    )
