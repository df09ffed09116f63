"""Retention in the background: one process of all applies the rules, from time to time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any, Final

from typing_extensions import override

from locus_memory._internal.resource import Resource
from locus_memory._internal.running.lease import Lease
from locus_memory._internal.running.schedule import Schedule
from locus_memory.backends.base import Backend
from locus_memory.errors import BackendError, InvalidArgumentError, VersionConflictError
from locus_memory.events import emit
from locus_memory.retention.applying import retention_steps
from locus_memory.retention.report import Retained, RetentionReport, announce
from locus_memory.retention.rules import RetentionRule
from locus_memory.store.item import Namespace

__all__ = ["RetentionTask"]

_SPACE: Final[Namespace] = ("locus_memory", "retention")
_KEY: Final = "pass"
_LEASE: Final = 3_600.0
"""The seconds of a lease, which is renewed when half of them are over."""


class RetentionTask(Resource):
    """A task that applies rules of retention from time to time, in one process at a time.

    Every process of an application may have one. A record in the store says when the rules were
    applied, and a lease which process applies them. If that process ends, another one does the
    rest. Use it as `async with`; a failure is an event, and the next time comes all the same.

    Args:
        backend: The database, with a store; it is not closed here.
        rules: The rules.
        every: The interval; at least a minute.
        clock: Returns seconds since the epoch; pass the clock of the backend.

    Raises:
        InvalidArgumentError: The interval is shorter than a minute.
        ConfigurationError: The backend has no store for the record.
    """

    def __init__(
        self,
        backend: Backend,
        rules: Iterable[RetentionRule],
        *,
        every: timedelta = timedelta(days=1),
        clock: Callable[[], float] = time.time,
    ) -> None:
        if every < timedelta(minutes=1):
            raise InvalidArgumentError("every is at least a minute")
        self._backend = backend
        self._store = backend.store
        self._rules = list(rules)
        self._every = every.total_seconds()
        self._clock = clock
        self._schedule = Schedule(
            self.run_due,
            clock,
            self._every / 3_600,
            failed=lambda error: emit("retention.failed", error=error),
        )

    @override
    async def open(self) -> None:
        """Apply the rules in the background if it is time, and from then on."""
        self._schedule.touch()

    async def wait(self) -> None:
        """Wait for the pass in progress, if there is one."""
        await self._schedule.wait()

    @override
    async def close(self) -> None:
        """End the pass in progress; the next one does the rest."""
        await self._schedule.close()

    async def run_due(self) -> RetentionReport | None:
        """Apply the rules now, if it is time and no other process does it.

        Returns:
            The report; `None`: it is not time, or another process applies them.

        Raises:
            BackendError: The database failed.
        """
        record, version = await self._read()
        now = self._clock()
        ran_at = record.get("ran_at")
        if isinstance(ran_at, int | float) and ran_at <= now < ran_at + self._every:
            return None
        if Lease.holds(record.get("lease"), now):
            return None
        with Lease(now + _LEASE) as lease:
            try:
                version = await self._write(ran_at, lease, version)
                return await self._run(lease, ran_at, version)
            except VersionConflictError:
                return None

    async def _run(self, lease: Lease, ran_at: Any, version: int) -> RetentionReport:
        """Apply the rules under a lease, which ends with it."""
        started, results = self._clock(), list[Retained]()
        try:
            async with aclosing(
                retention_steps(self._backend, self._rules, clock=self._clock)
            ) as steps:
                async for result in steps:
                    results.append(result)
                    version = await self._prolonged(lease, ran_at, version)
        except BaseException:
            with suppress(BackendError, VersionConflictError):
                await self._write(ran_at, None, version)
            raise
        await self._write(started, None, version)
        report = RetentionReport.of(results, dry_run=False)
        announce(report)
        return report

    async def _prolonged(self, lease: Lease, ran_at: Any, version: int) -> int:
        """Prolong a lease if half of it is over; return the version of the record."""
        if self._clock() <= lease.until - _LEASE / 2:
            return version
        lease.until = self._clock() + _LEASE
        return await self._write(ran_at, lease, version)

    async def _read(self) -> tuple[Mapping[str, Any], int]:
        item = await self._store.get_item(_SPACE, _KEY)
        if item is None:
            return {}, 0
        return (item.value if isinstance(item.value, dict) else {}), item.version

    async def _write(self, ran_at: Any, lease: Lease | None, version: int) -> int:
        value = {"ran_at": ran_at, "lease": None if lease is None else lease.to_value()}
        return await self._store.put(_SPACE, _KEY, value, if_version=version, text="")
