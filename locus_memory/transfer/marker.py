"""The marker of a migration: an item of the target with its source and its progress.

A run that is interrupted, or repeated, finds it. So it continues where the last one stopped, and it
knows that it may delete from the target: everything there is from this source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from locus_memory._internal.quoting import quote
from locus_memory.backends.base import Backend
from locus_memory.errors import BackendCorruptError, ConfigurationError
from locus_memory.store.base import BaseStore, all_namespaces
from locus_memory.store.item import Namespace
from locus_memory.transfer.parts import checkpointer_of, store_of

__all__ = ["MARKER", "Marker", "begin"]

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
    """

    source: str
    namespace: Namespace | None = None
    thread: str | None = None
    passed: bool = False

    def restarted(self) -> Marker:
        """Return the marker of a new run, after one that has finished."""
        return Marker(self.source) if self.passed else self

    async def save(self, store: BaseStore | None) -> Marker:
        """Write the marker, if the target has a store; return it."""
        if store is not None:
            value: dict[str, Any] = {
                "source": self.source,
                "namespace": None if self.namespace is None else list(self.namespace),
                "thread": self.thread,
                "passed": self.passed,
            }
            await store.put(MARKER, _KEY, value, text="")
        return self

    def at(self, *, namespace: Namespace | None = None, thread: str | None = None) -> Marker:
        """Return the marker after one more namespace or thread."""
        return replace(self, namespace=namespace or self.namespace, thread=thread or self.thread)


async def _read(store: BaseStore) -> Marker | None:
    value = await store.get(MARKER, _KEY)
    if value is None:
        return None
    try:
        place = value["namespace"]
        return Marker(
            value["source"],
            None if place is None else tuple(place),
            value["thread"],
            bool(value["passed"]),
        )
    except (KeyError, TypeError) as error:
        raise BackendCorruptError("the marker of the migration in the target is damaged") from error


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
    if found is not None and found.source == source:
        return found.restarted()
    if merge:
        return Marker(source)
    if found is not None:
        raise ConfigurationError(
            f"the target holds a copy of {quote(found.source)}: name another target, or pass "
            "--merge (merge=True) to keep that data"
        )
    if await _has_data(target, None if threads_only else store):
        raise ConfigurationError(
            "the target is not empty: name another target, or pass --merge (merge=True) to keep "
            "its data"
        )
    return Marker(source)


async def _has_data(target: Backend, store: BaseStore | None) -> bool:
    if store is not None:
        async for _ in all_namespaces(store):
            return True
    threads = checkpointer_of(target)
    return threads is not None and bool(await threads.list_threads(1))
