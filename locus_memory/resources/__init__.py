"""Memory as a tree of texts named by `memory://` URIs, on any store.

An agent writes, reads at three levels of detail, lists, searches, ingests files and commits
sessions. Every operation is a value, and so is every answer and every failure. `MemoryTree` has the
verbs; `locus_memory.resources.backends` opens trees as handles that several agents share.

Read `uri.py` and `operations.py` first, then `tree.py`; `storing/` writes, `reading/` reads, and
`levels/` makes abstracts and overviews.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.resources.fetching import (
        FetchOptions,
    )
    from locus_memory.resources.operations import (
        Level,
        MemoryOp,
        MemoryOpCommit,
        MemoryOpDelete,
        MemoryOpFind,
        MemoryOpHistory,
        MemoryOpList,
        MemoryOpMove,
        MemoryOpRead,
        MemoryOpResource,
        MemoryOpSearch,
        MemoryOpTree,
        MemoryOpWrite,
        WriteMode,
    )
    from locus_memory.resources.results import (
        FailureKind,
        MemoryCommitResult,
        MemoryDeleteResult,
        MemoryEntry,
        MemoryExecutionFailure,
        MemoryFindResult,
        MemoryHistoryResult,
        MemoryHit,
        MemoryListResult,
        MemoryMoveResult,
        MemoryReadResult,
        MemoryResourceResult,
        MemoryResult,
        MemoryVersion,
        MemoryWriteResult,
    )
    from locus_memory.resources.tree import (
        MemoryTree,
    )
    from locus_memory.resources.uri import (
        MemoryURI,
    )
    from locus_memory.resources.verbs import (
        MemoryVerbs,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "FailureKind": "results",
            "FetchOptions": "fetching",
            "Level": "operations",
            "MemoryCommitResult": "results",
            "MemoryDeleteResult": "results",
            "MemoryEntry": "results",
            "MemoryExecutionFailure": "results",
            "MemoryFindResult": "results",
            "MemoryHistoryResult": "results",
            "MemoryHit": "results",
            "MemoryListResult": "results",
            "MemoryMoveResult": "results",
            "MemoryOp": "operations",
            "MemoryOpCommit": "operations",
            "MemoryOpDelete": "operations",
            "MemoryOpFind": "operations",
            "MemoryOpHistory": "operations",
            "MemoryOpList": "operations",
            "MemoryOpMove": "operations",
            "MemoryOpRead": "operations",
            "MemoryOpResource": "operations",
            "MemoryOpSearch": "operations",
            "MemoryOpTree": "operations",
            "MemoryOpWrite": "operations",
            "MemoryReadResult": "results",
            "MemoryResourceResult": "results",
            "MemoryResult": "results",
            "MemoryTree": "tree",
            "MemoryURI": "uri",
            "MemoryVerbs": "verbs",
            "MemoryVersion": "results",
            "MemoryWriteResult": "results",
            "WriteMode": "operations",
        },
    )

__all__ = [
    "FailureKind",
    "FetchOptions",
    "Level",
    "MemoryCommitResult",
    "MemoryDeleteResult",
    "MemoryEntry",
    "MemoryExecutionFailure",
    "MemoryFindResult",
    "MemoryHistoryResult",
    "MemoryHit",
    "MemoryListResult",
    "MemoryMoveResult",
    "MemoryOp",
    "MemoryOpCommit",
    "MemoryOpDelete",
    "MemoryOpFind",
    "MemoryOpHistory",
    "MemoryOpList",
    "MemoryOpMove",
    "MemoryOpRead",
    "MemoryOpResource",
    "MemoryOpSearch",
    "MemoryOpTree",
    "MemoryOpWrite",
    "MemoryReadResult",
    "MemoryResourceResult",
    "MemoryResult",
    "MemoryTree",
    "MemoryURI",
    "MemoryVerbs",
    "MemoryVersion",
    "MemoryWriteResult",
    "WriteMode",
]
