"""The calls and tokens that extraction in the background may take a day, of all processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.chat.usage import usage_in
from locus_memory.events import collect, emit
from locus_memory.memory.batch import insisting
from locus_memory.memory.queue.jobs import Job, Outcome
from locus_memory.memory.scope import Scope
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["Allowance"]

_KEY: Final = "allowance"
_DAY: Final = 86_400


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

    @property
    def rest(self) -> float:
        """The seconds of the day that are left, after which the calls begin again."""
        return _DAY - self.clock() % _DAY

    async def take(self) -> bool:
        """Count a call, if it may be made today; returns whether it may.

        Raises:
            BackendError: The store failed.
        """
        return await self._add(calls=1, is_asked=True)

    async def counted(
        self, handle: Callable[[Sequence[Job]], Awaitable[Outcome]], jobs: Sequence[Job]
    ) -> Outcome:
        """Return what `handle` makes of jobs, and count the further calls and the tokens it took.

        Raises:
            Exception: Any error of `handle`; one of the count is only reported.
        """
        with collect() as events:
            try:
                return await handle(jobs)
            finally:
                made = sum(each.attributes.get("purpose") == "extraction" for each in events)
                tokens = usage_in(events).extraction_tokens
                try:
                    # The first call of several prompts was counted before.
                    await self._add(calls=max(0, made - 1), tokens=tokens)
                except Exception as error:  # noqa: BLE001 - reported; nothing is asked again
                    emit("memory.count_failed", error=error)

    @insisting
    async def _add(self, *, calls: int, tokens: int = 0, is_asked: bool = False) -> bool:
        """Add to the count of today, unless it is asked for a call, and the count is used up."""
        today = int(self.clock() // _DAY)
        item = await self.store.get_item(self.scope.tending, _KEY)
        match None if item is None else item.value:
            case {"day": day, "calls": int(made), "tokens": int(spent)} if day == today:
                pass
            case _:
                made = spent = 0
        if is_asked and (made >= self.calls or spent >= self.tokens):
            return False
        put = Put(
            namespace=self.scope.tending,
            key=_KEY,
            value={"day": today, "calls": made + calls, "tokens": spent + tokens},
            if_version=0 if item is None else item.version,
            text="",
        )
        await self.store.put_batch([put])
        return True
