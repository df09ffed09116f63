"""The right to consolidate a scope: one pass at a time, of all processes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from locus_memory.errors import BackendError, VersionConflictError
from locus_memory.memory.layers.log import LogEntry, log_put
from locus_memory.memory.moments import days_between
from locus_memory.memory.queue.lease import Lease
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore, write_together
from locus_memory.store.item import Put

__all__ = ["PassBook", "PassRecord"]

_KEY: Final = "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """The record of the last pass over a scope. Moments are ISO 8601 in UTC.

    Attributes:
        ran_at: The moment of the last whole pass, or of the first look at the scope.
        facts_at: The last moment at which a model was asked about the facts.
        lease: The lease of the pass that is at work; `None`: there is none.
        version: The store's version of the record; 0: there is none.
    """

    ran_at: str | None = None
    facts_at: str | None = None
    lease: Mapping[str, Any] | None = None
    version: int = 0

    def is_due(self, now: str) -> bool:
        """Return whether a scope that was looked at a day before is to be consolidated again."""
        return self.ran_at is not None and days_between(self.ran_at, now) >= 1.0

    def asks_model(self, now: str) -> bool:
        """Return whether a model may be asked about the facts: at most once a day."""
        return self.facts_at is None or days_between(self.facts_at, now) >= 1.0

    def put(self, scope: Scope) -> Put:
        """Return the put of the record in place of its version."""
        lease = None if self.lease is None else dict(self.lease)
        value = {"ran_at": self.ran_at, "facts_at": self.facts_at, "lease": lease}
        return Put(namespace=scope.tending, key=_KEY, value=value, if_version=self.version, text="")

    def written(self) -> Self:
        """Return the record with the version that its put has made."""
        return replace(self, version=self.version + 1)


class PassBook:
    """The records of the passes over scopes in a store.

    Args:
        store: The store, which this never closes.
    """

    def __init__(self, store: BaseStore) -> None:
        self._store = store

    async def read(self, scope: Scope) -> PassRecord:
        """Return the record of a scope; an empty one if there is none.

        Raises:
            BackendError: The store failed.
        """
        item = await self._store.get_item(scope.tending, _KEY)
        if item is None:
            return PassRecord()
        value = item.value if isinstance(item.value, dict) else {}
        return PassRecord(
            ran_at=value.get("ran_at"),
            facts_at=value.get("facts_at"),
            lease=value.get("lease"),
            version=item.version,
        )

    async def note(self, scope: Scope, now: str) -> None:
        """Record the first look at a scope, from which its first interval counts.

        Raises:
            BackendError: The store failed.
        """
        with suppress(VersionConflictError):
            await self._store.put_batch([PassRecord(ran_at=now).put(scope)])

    async def take(
        self, scope: Scope, record: PassRecord, lease: Lease, seconds: float
    ) -> PassRecord | None:
        """Take the right to consolidate a scope, or renew one's own.

        Args:
            scope: The scope.
            record: Its record.
            lease: The lease of the pass.
            seconds: The present moment, in seconds since the epoch.

        Returns:
            The record under the lease; `None`: another pass is at work.

        Raises:
            BackendError: The store failed.
        """
        held = record.lease
        is_own = held is not None and held.get("token") == lease.token
        if not is_own and Lease.holds(held, seconds):
            return None
        taken = replace(record, lease=lease.to_value())
        try:
            await self._store.put_batch([taken.put(scope)])
        except VersionConflictError:
            return None
        return taken.written()

    async def finish(self, scope: Scope, record: PassRecord, entry: LogEntry) -> None:
        """Record the end of a pass, and log it.

        Raises:
            BackendError: The store failed.
        """
        done = replace(record, lease=None)
        with suppress(VersionConflictError):
            await write_together(self._store, [done.put(scope), log_put(scope, entry)])

    async def give_back(self, scope: Scope, record: PassRecord) -> None:
        """Release the right after a pass that did not end; the lease ends by itself otherwise."""
        with suppress(VersionConflictError, BackendError):
            await self._store.put_batch([replace(record, lease=None).put(scope)])
