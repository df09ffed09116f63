"""The calls and tokens that extraction in the background may take a day, of all processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.chat.usage import usage_in
from locus_memory.errors import VersionConflictError
from locus_memory.events import collect, emit
from locus_memory.memory.queue.jobs import Job, Outcome
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["Allowance"]

_KEY: Final = "allowance"
_DAY: Final = 86_400
_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class Allowance:
    """A count of calls and tokens a day, UTC, in the store.

    Attributes:
        store: The store, which this never closes.
        scope: The scope whose namespace has the count.
        calls: The most calls a day.
        tokens: The most tokens of prompts and answers, as the model reports them; calls under way
            when it is passed are the last of the day.
        clock: Returns seconds since the epoch.
    """

    store: BaseStore
    scope: Scope
    calls: int
    tokens: int
    clock: Callable[[], float]

    async def take(self) -> float:
        """Count a call, if it may be made; returns the seconds until one may be, 0 if this may.

        Raises:
            BackendError: The store failed.
        """
        if await self._add(calls=1):
            return 0.0
        return _DAY - self.clock() % _DAY

    async def counted(
        self, handle: Callable[[Sequence[Job]], Awaitable[Outcome]], jobs: Sequence[Job]
    ) -> Outcome:
        """Return what `handle` makes of jobs, and count the tokens that it took.

        Raises:
            Exception: Any error of `handle`; one of the count is only reported.
        """
        with collect() as events:
            try:
                return await handle(jobs)
            finally:
                await self._spend(usage_in(events).extraction_tokens)

    async def _spend(self, tokens: int) -> None:
        try:
            await self._add(tokens=tokens)
        except Exception as error:  # noqa: BLE001 - reported; the answer is not asked for again
            emit("memory.count_failed", error=error)

    async def _add(self, *, calls: int = 0, tokens: int = 0) -> bool:
        """Add to the count of today; a call is not added to a count that is used up."""
        day = int(self.clock() // _DAY)
        for _ in range(_ATTEMPTS):
            item = await self.store.get_item(self.scope.tending, _KEY)
            value: Any = None if item is None else item.value
            told: Mapping[str, Any] = value if isinstance(value, dict) else {}
            is_today = told.get("day") == day
            spent = [_count(told.get(name)) if is_today else 0 for name in ("calls", "tokens")]
            if calls and (spent[0] >= self.calls or spent[1] >= self.tokens):
                return False
            put = Put(
                namespace=self.scope.tending,
                key=_KEY,
                value={"day": day, "calls": spent[0] + calls, "tokens": spent[1] + tokens},
                if_version=0 if item is None else item.version,
                text="",
            )
            with suppress(VersionConflictError):
                await self.store.put_batch([put])
                return True
        raise VersionConflictError(0, 1)


def _count(value: Any) -> int:
    """Return a stored count; 0 if it is none."""
    return value if type(value) is int and value > 0 else 0
