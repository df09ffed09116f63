"""The report of a call of `retain`."""

from __future__ import annotations

from dataclasses import dataclass

from locus_memory.events import emit
from locus_memory.store.item import Namespace

__all__ = ["Retained", "RetentionReport", "announce"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The result in one namespace or one thread.

    Attributes:
        rule: The place of the rule among the rules, from 0.
        namespace: The namespace; `None`: it is a thread.
        thread_id: The thread; `None`: it is a namespace.
        deleted: How many items or checkpoints were deleted.
        kept: How many stay.
        problem: Why nothing was deleted here; `None`: there was no problem.
    """

    rule: int
    namespace: Namespace | None = None
    thread_id: str | None = None
    deleted: int = 0
    kept: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport:
    """The report of a call; with `dry_run`, it says what would be deleted.

    Attributes:
        places: The namespaces and threads where something was deleted, or where there was a
            problem. All others stay as they are.
        items: How many items were deleted.
        checkpoints: How many checkpoints were deleted, those of whole threads included.
        threads: How many threads were deleted as a whole.
        dry_run: Whether nothing was changed.
    """

    places: tuple[Retained, ...] = ()
    items: int = 0
    checkpoints: int = 0
    threads: int = 0
    dry_run: bool = False

    @classmethod
    def of(cls, places: list[Retained], *, dry_run: bool) -> RetentionReport:
        """Return the report of results."""
        threads = [each for each in places if each.thread_id is not None]
        items = [each for each in places if each.thread_id is None]
        return cls(
            places=tuple(each for each in places if each.deleted or each.problem),
            items=sum(each.deleted for each in items),
            checkpoints=sum(each.deleted for each in threads),
            threads=sum(bool(each.deleted) and not each.kept for each in threads),
            dry_run=dry_run,
        )


def announce(report: RetentionReport) -> None:
    """Emit the event of a report."""
    emit(
        "retention.applied",
        items=report.items,
        checkpoints=report.checkpoints,
        threads=report.threads,
    )
