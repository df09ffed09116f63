"""The reports of a consolidation, and of one of facts by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from locus_memory.memory.models import MemoryType

__all__ = ["ConsolidationReport", "FactsChange", "FactsReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsChange:
    """One change of facts of a type.

    Attributes:
        op: `merge`: the first fact got a new content, and the others were retired; `supersede`: the
            first fact is newer than the others, which were retired.
        type: The type of the facts.
        keys: The keys of the facts, of which the first one stays.
        before: Their contents.
        after: The content that stays.
    """

    op: Literal["merge", "supersede"]
    type: MemoryType
    keys: tuple[str, ...]
    before: tuple[str, ...]
    after: str

    def diff(self) -> Iterator[str]:
        """Yield the facts that go after a minus, and the one that stays after a plus or a space."""
        is_new = self.after != self.before[0]
        for content in self.before[0 if is_new else 1 :]:
            yield f"- {content}"
        yield f"{'+' if is_new else ' '} {self.after}"


@dataclass(frozen=True, slots=True)
class _Sum:
    """A report that can be added to another one."""

    def __add__(self, other: Self) -> Self:
        """Return the report of two consolidations, one after the other."""
        names = (each.name for each in fields(self))
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsReport(_Sum):
    """The changes of facts that a model proposed and that were made, or would be in a dry run.

    Attributes:
        asked: How many facts the model saw.
        calls: How many times it was called.
        changes: The changes.
        refused: The reason of each proposal that was refused; nothing of the answer is quoted.
    """

    asked: int = 0
    calls: int = 0
    changes: tuple[FactsChange, ...] = ()
    refused: tuple[str, ...] = ()

    def diff(self) -> str:
        """Return the changes as lines: those that begin with a minus go, with a plus come."""
        return "\n".join(line for change in self.changes for line in change.diff())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport(_Sum):
    """The numbers of a consolidation, or of what a dry run would do.

    Attributes:
        evicted: Expired facts that moved to the history; `undo` brings them back.
        pruned_episodes: Episodes older than the retention, which were erased.
        pruned_turns: Turns of transcripts older than the retention, which were erased.
        purged: Old entries of the log that were erased.
        duration_ms: How long it took, in milliseconds.
        scopes: The scopes that were consolidated.
        busy: The scopes that were left out, since another pass is at work on them.
        facts: The changes of the facts that a model proposed.
    """

    evicted: int = 0
    pruned_episodes: int = 0
    pruned_turns: int = 0
    purged: int = 0
    duration_ms: float = 0.0
    scopes: int = 0
    busy: int = 0
    facts: tuple[FactsReport, ...] = ()

    def counts(self) -> Mapping[str, Any]:
        """Return the numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "facts"}
