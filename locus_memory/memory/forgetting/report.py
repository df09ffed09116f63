"""The report of an erasure or a dry run."""

from __future__ import annotations

from dataclasses import dataclass

from locus_memory.memory.models import MemoryType
from locus_memory.store.item import Namespace

__all__ = ["ForgetReport", "ForgottenMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMemory:
    """One forgotten memory.

    Attributes:
        namespace: The scope of the memory.
        type: Its type.
        key: Its key.
        is_current: Whether its current version is erased; else only past ones are.
        past: The numbers of its erased past versions, ascending.
    """

    namespace: Namespace
    type: MemoryType
    key: str
    is_current: bool
    past: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """The data that was erased, or would be: names and numbers, never contents.

    Attributes:
        dry_run: Whether nothing was erased.
        namespace: The scope that was searched.
        memories: The memories.
        items: Other items, as namespace and key.
        jobs: The threads of the jobs that waited for extraction, one for each job.
        cursors: The threads of the extraction cursors.
        threads: The threads, with all their checkpoints.
        checkpoints: How many checkpoints these threads had.
        summaries: How many rolling summaries of these threads.
        vitals: How many records of vital signs.
        episodes: How many episodes, each as a whole.
        turns: How many turns of transcripts.
        log: How many entries of the log.
        sources: Threads that stay, with source messages of the memories, and forks that hold them.
        unreadable: Damaged threads whose user cannot be determined; they are not erased.
        kept: Namespaces that stay when a user is erased, each with the reason: indexes of documents
            and trees of resources that users share, and a user of this name under another prefix.
        has_store: Whether there is a store; else only threads were searched.
    """

    dry_run: bool
    namespace: Namespace
    memories: tuple[ForgottenMemory, ...] = ()
    items: tuple[tuple[Namespace, str], ...] = ()
    jobs: tuple[str, ...] = ()
    cursors: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    checkpoints: int = 0
    summaries: int = 0
    vitals: int = 0
    episodes: int = 0
    turns: int = 0
    log: int = 0
    sources: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    kept: tuple[tuple[Namespace, str], ...] = ()
    has_store: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to erase."""
        layers = (self.vitals, self.episodes, self.turns, self.log)
        others = (self.memories, self.items, self.jobs, self.cursors, self.threads)
        return not any((*layers, *others))
