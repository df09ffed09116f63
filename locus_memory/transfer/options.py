"""The options of a copy, its progress and its report."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders.base import Embedder

__all__ = ["Comparison", "ImportReport", "MigrateOptions", "MigrationReport", "Progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateOptions:
    """The options of `migrate`.

    Attributes:
        dry_run: Count the differences, and write nothing.
        verify: Compare the two databases afterwards, part by part.
        merge: Keep the items and threads that the target has and the source does not, and of two
            versions of an item the one that was written last. Without it, the target must be empty
            or from an earlier run, and is then made equal to the source.
        overwrite: Replace also what was written to the target after the run before, and copy again
            what was erased there.
        only: Copy only the items of the store, or only the threads.
        vectors: Whether to copy the vectors.
        reembed: Recompute the vectors with this embedder instead of copying them.
        rate: The most items and checkpoints written in a second; `None`: no limit.
        passes: How often the databases are compared and the differences are written. A second pass
            finds what was written to the source during the first.
    """

    dry_run: bool = False
    verify: bool = False
    merge: bool = False
    overwrite: bool = False
    only: Literal["items", "threads"] | None = None
    vectors: bool = True
    reembed: Embedder | None = None
    rate: float | None = None
    passes: int = 2

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            InvalidArgumentError: An option is out of its range.
        """
        if self.rate is not None and not (0 < self.rate < math.inf):
            raise InvalidArgumentError(f"rate is a positive number, not {quote(self.rate)}")
        if self.passes < 1:
            raise InvalidArgumentError(f"passes is at least 1, not {quote(self.passes)}")
        if self.merge and self.overwrite:
            raise InvalidArgumentError("merge keeps what overwrite replaces: leave one out")
        if self.only not in (None, "items", "threads"):
            raise InvalidArgumentError(f"only is items or threads, not {quote(self.only)}")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a transfer, after each page.

    Attributes:
        step: `items`, `threads` or `verify`.
        number: The number of the pass, from 1.
        name: The namespace, as a JSON list, or the thread.
        written: The items and checkpoints written so far.
    """

    step: str
    number: int
    name: str
    written: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A namespace or a thread in both databases.

    Attributes:
        kind: `namespace` or `thread`.
        name: The labels of the namespace, or the thread.
        count: The items or checkpoints of the source.
        target_count: Those of the target.
        digest: The digest of the source, a SHA-256.
        target_digest: That of the target.
        vectors: Items whose vectors are not the same in both.
    """

    kind: Literal["namespace", "thread"]
    name: tuple[str, ...]
    count: int
    target_count: int
    digest: str
    target_digest: str
    vectors: int = 0

    @property
    def equal(self) -> bool:
        """Whether both hold the same."""
        return self.digest == self.target_digest and self.vectors == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain JSON."""
        document = asdict(self)
        document["name"] = list(self.name) if self.kind == "namespace" else self.name[0]
        return {**document, "vectors_differ": document.pop("vectors"), "equal": self.equal}


@dataclass(slots=True, kw_only=True)
class MigrationReport:
    """The work of a migration; with `dry_run`, the work that there is.

    Attributes:
        items: Items written.
        deleted_items: Items deleted from the target, since the source no longer has them.
        kept_items: Items of the target that were kept, since they are newer; only with `merge`.
        checkpoints: Checkpoints written.
        deleted_threads: Threads deleted from the target.
        conflicts: Threads of the target that were kept although they differ; only with `merge`.
        passes: The number of passes.
        dry_run: Whether nothing was written.
        comparisons: The result of `verify`; `None`: it was not asked for.
    """

    items: int = 0
    deleted_items: int = 0
    kept_items: int = 0
    checkpoints: int = 0
    deleted_threads: int = 0
    conflicts: list[str] = field(default_factory=list[str])
    passes: int = 0
    dry_run: bool = False
    comparisons: list[Comparison] | None = None

    @property
    def written(self) -> int:
        """The changes of the target."""
        return self.items + self.deleted_items + self.checkpoints + self.deleted_threads

    @property
    def equal(self) -> bool | None:
        """Whether the databases are equal; `None`: they were not compared."""
        if self.comparisons is None:
            return None
        return all(each.equal for each in self.comparisons)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        document = asdict(self)
        if self.comparisons is None:
            del document["comparisons"]
            return document
        compared = [each.to_dict() for each in self.comparisons]
        return {**document, "equal": self.equal, "comparisons": compared}


@dataclass(slots=True)
class ImportReport:
    """The work of an import.

    Attributes:
        items: Items written.
        known_items: Items that the target had already, the same.
        kept_items: Items of the target that were kept, since they are newer.
        checkpoints: Checkpoints written.
        known_checkpoints: Checkpoints that the target had already.
        conflicts: Threads of the target that were kept, since they have other checkpoints.
    """

    items: int = 0
    known_items: int = 0
    kept_items: int = 0
    checkpoints: int = 0
    known_checkpoints: int = 0
    conflicts: list[str] = field(default_factory=list[str])
