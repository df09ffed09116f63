"""The report of a consolidation of facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

from locus_memory.memory.models import MemoryType

__all__ = ["FactsChange", "FactsReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsChange:
    """One change of facts of a type.

    Attributes:
        op: `merge`: the first fact got a new content, and the others were retired; `supersede`: a
            newer fact replaces the retired one; `retire`: the fact is no longer true.
        type: The type of the facts.
        keys: The keys of the facts; of a `supersede` the old and then the new one.
        before: Their contents.
        after: The content that stays; `None`: none.
    """

    op: Literal["merge", "supersede", "retire"]
    type: MemoryType
    keys: tuple[str, ...]
    before: tuple[str, ...]
    after: str | None = None

    def diff(self) -> Iterator[str]:
        """Yield the facts that go after a minus, and the one that stays after a plus or a space."""
        stays = self.after in self.before
        for content in self.before:
            if content != self.after:
                yield f"- {content}"
        if self.after is not None:
            yield f"{' ' if stays else '+'} {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsReport:
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

    def __add__(self, other: Self) -> Self:
        """Return the report of two consolidations, one after the other."""
        return type(self)(
            asked=self.asked + other.asked,
            calls=self.calls + other.calls,
            changes=(*self.changes, *other.changes),
            refused=(*self.refused, *other.refused),
        )

    def diff(self) -> str:
        """Return the changes as lines: those that begin with a minus go, with a plus come."""
        return "\n".join(line for change in self.changes for line in change.diff())
