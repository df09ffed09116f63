"""The rotation of the keys of a whole backend: items and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.encryption.checkpointer import EncryptingCheckpointer
from locus_memory.errors import ConfigurationError
from locus_memory.store.wrappers.encrypting import EncryptingStore

__all__ = ["RotationReport", "rotate"]

Progress = Callable[["RotationReport"], None]


@dataclass(frozen=True, slots=True)
class RotationReport:
    """The counts of a rotation.

    Attributes:
        items: How many items were seen.
        items_encrypted: How many of them were encrypted with the active key.
        checkpoints: How many checkpoints were seen.
        checkpoints_encrypted: How many of them were encrypted with the active key.
        plain: How many of all these were not encrypted before, or had a readable name or
            readable metadata that the library wrote.
        dry_run: Whether nothing was changed, and the counts say what would be.
    """

    items: int = 0
    items_encrypted: int = 0
    checkpoints: int = 0
    checkpoints_encrypted: int = 0
    plain: int = 0
    dry_run: bool = False


async def rotate(
    backend: Backend, *, dry_run: bool = False, on_progress: Progress | None = None
) -> RotationReport:
    """Encrypt all items and checkpoints of a backend with the active key.

    Data that the active key encrypted is not written. So an interrupted call loses nothing, and
    the next call does the rest. If plain data was encrypted, the database is compacted at the end,
    so that the plain text is erased from its files.

    Args:
        backend: An encrypted backend, such as `open_backend(..., encryption=...)` returns.
        dry_run: Only count.
        on_progress: Called with the counts after each item and each checkpoint.

    Raises:
        ConfigurationError: The backend is not encrypted.
        EncryptionError: Data that no known key decrypts, or plain data without `accept_plain`.
    """
    report = RotationReport(dry_run=dry_run)
    for kind, part in _parts(backend).items():
        async with aclosing(part.rotation(dry_run=dry_run)) as changes:
            async for _, is_stale, is_plain in changes:
                more = {kind: 1, f"{kind}_encrypted": is_stale, "plain": is_plain}
                counts = {name: getattr(report, name) + count for name, count in more.items()}
                report = replace(report, **counts)
                if on_progress is not None:
                    on_progress(report)
    if report.plain and not dry_run:
        await backend.compact()
    return report


def _parts(backend: Backend) -> dict[str, EncryptingStore | EncryptingCheckpointer]:
    """Return the encrypted parts of a backend by the names of their counts; at least one of them.

    Raises:
        ConfigurationError: A part is not encrypted, or the backend has none.
    """
    both: dict[str, Any] = {"items": store_of(backend), "checkpoints": checkpointer_of(backend)}
    parts = {kind: part for kind, part in both.items() if part is not None}
    encrypting = EncryptingStore | EncryptingCheckpointer
    if not all(isinstance(part, encrypting) for part in parts.values()):
        raise ConfigurationError(
            "the backend is not encrypted: open it with encryption=, or set "
            "LOCUS_MEMORY_ENCRYPTION_KEYS"
        )
    return parts
