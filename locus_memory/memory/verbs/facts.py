"""Import and export of memories as facts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

from locus_memory.errors import InvalidArgumentError
from locus_memory.memory.facts import Fact, fact_of, read_fact
from locus_memory.memory.ledger.ledger import Retirement, Statement
from locus_memory.memory.models import (
    ORIGIN,
    Memory,
    MemoryType,
    Origin,
    has_authority,
    origin_of,
)
from locus_memory.memory.verbs.single import SingleMemories

__all__ = ["FactVerbs"]


class FactVerbs(SingleMemories):
    """The part of a memory manager that reads and writes facts; see `locus_memory.memory.facts`."""

    async def import_facts(self, facts: Iterable[object], *, trust: bool = False) -> list[Memory]:
        """Write facts as memories, with their ids and moments; nothing if one is not valid.

        A fact is an object with `id` (32 hexadecimal digits), `content`, `source`, `created_at`
        (ISO 8601) and `created_ts` (seconds since the epoch), of which `id` and `content` are
        required. `type` and `key` are those of the memory. Other fields become its metadata. A
        fact that is known already, or older than the present memory of its key, changes nothing
        that is current. Nor does one change what the user or a person said, or is it a rule
        (`feedback`), unless it is trusted: its origin is an import.

        Args:
            facts: The facts.
            trust: Whether a person vouches for them: each has the origin that it states, or else
                that of a person.

        Returns:
            The memories that were written and are current.

        Raises:
            InvalidArgumentError: One is not a fact, or two have one type and key; the message
                names its place, from 1.
            BackendError: The store failed; repeat the import.
        """
        read: dict[tuple[MemoryType, str], Fact] = {}
        for place, value in enumerate(facts, 1):
            try:
                fact = read_fact(value)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"fact {place}: {error}") from error
            name = fact.memory.type, fact.memory.key
            if name in read:
                first = list(read).index(name) + 1
                raise InvalidArgumentError(f"fact {place}: it has the key of fact {first}")
            read[name] = fact
        return await self.import_history(read.values(), trust=trust)

    async def import_history(self, facts: Iterable[Fact], *, trust: bool = False) -> list[Memory]:
        """Write memories with their past versions: several facts may have one key.

        A fact replaces the one before it of its key, which stays in the history. A deleted one
        ends it. What is known already changes nothing.

        Args:
            facts: The facts, the oldest first; those of one key have different moments.
            trust: As for `import_facts`.

        Returns:
            The memories that were written and are current.

        Raises:
            BackendError: The store failed; repeat the import.
        """
        told = ((fact, _imported(fact.memory, trust=trust)) for fact in facts)
        edits = [
            Retirement(memory.type, memory.key, fact.said_at, origin=origin_of(memory))
            if fact.deleted
            else Statement(memory, said_at=fact.said_at)
            for fact, memory in told
        ]
        return await self._ledger.apply(self._scope, edits)

    async def export_facts(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the current memories that have not expired as facts, by type and key.

        `import_facts` reads them.

        Raises:
            BackendError: The store failed.
        """
        async for memory in self.memories():
            yield fact_of(memory, self._scope)


def _imported(memory: Memory, *, trust: bool) -> Memory:
    """Return a memory of a file with its origin: what it states, if that claims no authority."""
    is_stated = memory.metadata.get(ORIGIN) in list(Origin)
    if is_stated and (trust or not has_authority(memory)):
        return memory
    origin = Origin.PERSON if trust else Origin.IMPORT
    return replace(memory, metadata={**memory.metadata, ORIGIN: origin.value})
