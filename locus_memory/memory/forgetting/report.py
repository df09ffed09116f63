"""What was forgotten, or would be."""

from __future__ import annotations

from dataclasses import dataclass

from locus_memory.memory.models import MemoryType
from locus_memory.store.item import Namespace

__all__ = ["ForgetReport", "ForgottenMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMemory:
    """One memory of those that are forgotten.

    Attributes:
        namespace: The scope it belongs to.
        type: Its type.
        key: Its key.
        is_current: Whether its current version goes; else only past ones do.
        past: The numbers of its past versions that go, ascending.
    """

    namespace: Namespace
    type: MemoryType
    key: str
    is_current: bool
    past: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What was erased, or would be: names and numbers, never a content.

    Attributes:
        dry_run: Whether nothing was erased.
        namespace: The scope that was looked at.
        memories: The memories.
        items: Other items, as namespace and key.
        vectors: How many of the memories and items had a vector.
        jobs: The threads of what waited for extraction, one for each job.
        cursors: The threads of which it was noted how much was seen.
        threads: The threads, with all their checkpoints.
        checkpoints: How many checkpoints these threads had.
        summaries: How many rolling summaries of these threads.
        sources: Threads that hold the messages the memories came from, and are still there.
        unreadable: Damaged threads that nobody can tell anything of; they are still there.
        has_store: Whether there is a store; else only threads were looked at.
    """

    dry_run: bool
    namespace: Namespace
    memories: tuple[ForgottenMemory, ...] = ()
    items: tuple[tuple[Namespace, str], ...] = ()
    vectors: int = 0
    jobs: tuple[str, ...] = ()
    cursors: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    checkpoints: int = 0
    summaries: int = 0
    sources: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    has_store: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to erase."""
        return not any((self.memories, self.items, self.jobs, self.cursors, self.threads))
