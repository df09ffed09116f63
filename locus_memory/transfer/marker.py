"""The marker of a migration: an item of the target with its source and its progress.

A run that is interrupted, or repeated, finds it. So it continues where the last one stopped, and it
knows what it may delete from the target: everything there is from this source, but for what was
written to it after the last run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pydantic import TypeAdapter

from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend, checkpointer_of, store_of
from locus_memory.errors import BackendCorruptError, ConfigurationError
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace

__all__ = ["MARKER", "Marker", "begin", "save"]

MARKER: Final[Namespace] = ("\x00locus_memory migration",)
"""The namespace of the marker; the NUL separates it from namespaces of callers."""

_KEY: Final = "marker"


@dataclass(frozen=True, slots=True)
class Marker:
    """The source of a target, and the progress of the first pass.

    Attributes:
        source: The name of the source.
        namespace: The last namespace that is done, or `None`.
        thread: The last thread that is done, or `None`.
        passed: Whether the first pass is done.
        merged: Whether the target may hold data of its own.
        since: The end of the last pass; what is newer was written to the target itself.
        began: The beginning of the last pass; what is older was copied by it.
        parts: What the last pass copied: items, threads, or both.
    """

    source: str
    namespace: Namespace | None = None
    thread: str | None = None
    passed: bool = False
    merged: bool = False
    since: datetime | None = None
    began: datetime | None = None
    parts: tuple[str, ...] = ()


_JSON: Final = TypeAdapter(Marker)


async def save(store: BaseStore, marker: Marker) -> None:
    """Write a marker."""
    await store.put(MARKER, _KEY, _JSON.dump_python(marker, mode="json"), text="")


async def _read(store: BaseStore) -> Marker | None:
    item = await store.get_item(MARKER, _KEY)
    if item is None:
        return None
    try:
        found = _JSON.validate_python(item.value)
    except ValueError as error:
        raise BackendCorruptError("the marker of the migration in the target is damaged") from error
    return found if found.since else replace(found, since=item.updated_at)


async def begin(target: Backend, source: str, *, merge: bool, threads_only: bool) -> Marker:
    """Return the marker of a run, if the target may be written.

    Args:
        target: The target.
        source: The name of the source.
        merge: Whether the target may hold other data.
        threads_only: Whether items of the target do not matter.

    Raises:
        ConfigurationError: The target holds data that is not from this source.
    """
    store = store_of(target)
    found = None if store is None else await _read(store)
    if found is not None and found.source == source and (merge or not found.merged):
        if found.passed or merge != found.merged:
            return replace(found, namespace=None, thread=None, passed=False, merged=merge)
        return found
    if found is not None and found.source != source and not merge:
        raise ConfigurationError(
            f"the target holds a copy of {quote(found.source)}: name another target, or pass "
            "--merge (merge=True) to keep that data"
        )
    if not merge and await _has_data(target, None if threads_only else store):
        raise ConfigurationError(
            "the target is not empty: name another target, or pass --merge (merge=True) to keep "
            "its data"
        )
    return Marker(source, merged=merge, since=datetime.now(UTC))


async def _has_data(target: Backend, store: BaseStore | None) -> bool:
    if store is not None:
        async for _ in all_namespaces(store):
            return True
    threads = checkpointer_of(target)
    return threads is not None and bool(await threads.list_threads(1))
