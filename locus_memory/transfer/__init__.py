"""Transfers: everything of one database to another, to an archive and back.

`migrate` copies one backend to another. `write_archive` and `read_archive` go by way of a file.
Items keep their versions and moments, and threads keep every checkpoint.

Read `reading.py` first, which reads a source in order; then `migrating.py`, and `archive/`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus_memory._internal.lazy import lazy_names

if TYPE_CHECKING:
    from locus_memory.transfer.archive.format import Entry, Manifest
    from locus_memory.transfer.archive.importing import read_archive
    from locus_memory.transfer.archive.reading import check_archive
    from locus_memory.transfer.archive.writing import write_archive
    from locus_memory.transfer.comparing import namespace_digest, thread_digest
    from locus_memory.transfer.migrating import migrate
    from locus_memory.transfer.options import (
        Comparison,
        ImportReport,
        MigrateOptions,
        MigrationReport,
        Progress,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Comparison": "options",
            "Entry": "archive.format",
            "ImportReport": "options",
            "Manifest": "archive.format",
            "check_archive": "archive.reading",
            "read_archive": "archive.importing",
            "write_archive": "archive.writing",
            "MigrateOptions": "options",
            "MigrationReport": "options",
            "Progress": "options",
            "migrate": "migrating",
            "namespace_digest": "comparing",
            "thread_digest": "comparing",
        },
    )

__all__ = [
    "Comparison",
    "Entry",
    "ImportReport",
    "Manifest",
    "MigrateOptions",
    "MigrationReport",
    "Progress",
    "check_archive",
    "migrate",
    "namespace_digest",
    "read_archive",
    "thread_digest",
    "write_archive",
]
