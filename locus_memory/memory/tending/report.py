"""The report of a consolidation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from locus_memory.memory.tending.rewriting.report import FactsReport

__all__ = ["ConsolidationReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport:
    """The numbers of a consolidation, or of what a dry run would do.

    Attributes:
        decayed: Facts and episodes that lost salience.
        merged: Always 0: no episode becomes part of another one.
        promoted: Always 0: words in common raise no salience.
        evicted: Expired facts that moved to the history; `undo` brings them back.
        pruned_episodes: Episodes older than the retention, which were erased.
        pruned_turns: Turns of transcripts older than the retention, which were erased.
        purged: Old entries of the log that were erased.
        narratives: Narratives of an owner that were written; in a dry run, those to write.
        duration_ms: How long it took, in milliseconds.
        scopes: The scopes that were consolidated.
        busy: The scopes that were left out, since another pass is at work on them.
        facts: The changes of the facts that a model proposed.
    """

    decayed: int = 0
    merged: int = 0
    promoted: int = 0
    evicted: int = 0
    pruned_episodes: int = 0
    pruned_turns: int = 0
    purged: int = 0
    narratives: int = 0
    duration_ms: float = 0.0
    scopes: int = 0
    busy: int = 0
    facts: tuple[FactsReport, ...] = ()

    def __add__(self, other: Self) -> Self:
        """Return the report of two consolidations, one after the other."""
        summed: dict[str, Any] = {
            name: getattr(self, name) + getattr(other, name) for name in self.__slots__
        }
        return type(self)(**summed)

    def counts(self) -> Mapping[str, Any]:
        """Return the numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "facts"}
