"""When the threads that wait are handled, which of them together, and how much a day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Self

from locus_memory.chat.usage import usage_in
from locus_memory.events import collect, emit
from locus_memory.memory.batch import insisting
from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import ExtractMode, MemoryOptions
from locus_memory.memory.queue.jobs import Job, Outcome
from locus_memory.memory.scope import Scope
from locus_memory.retrieval.pack import in_packs
from locus_memory.store.base import BaseStore
from locus_memory.store.item import Put

__all__ = ["A_CALL", "Allowance", "Pace", "Trip"]

_LEAST: Final = 80
"""The characters below which a session waits for the next one."""

_ROOM: Final = 4_000
"""The most characters of short sessions that travel together, or with a longer one."""

_TOGETHER: Final = 2
"""The attempts after which a session travels alone: others do not fail because of it for ever."""

_BY_SESSION: Final = ("session_end", "manual")

A_CALL: Final = 20_000
"""The most characters of a backlog that are read at once."""

Trip = list[list[Job]]
"""The jobs of each of the sessions that are handled with one call; the longer one comes last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When the jobs of a thread are handled.

    Attributes:
        mode: When a thread is handled, see `MemoryOptions.extract_mode`.
        quiet: The seconds without a new job after which a session is over, and after which a
            failed one is tried again.
        least: By session: the characters of a session below which it waits, once it is over, and
            travels with other sessions of its scope.
        longest: The seconds that such a session waits at most.
    """

    mode: ExtractMode
    quiet: float
    least: int = 0
    longest: float = 0.0

    @classmethod
    def of(cls, options: MemoryOptions, *, by_model: bool, distils: bool) -> Self:
        """Return the pace of a manager.

        Args:
            options: The options of the manager.
            by_model: Whether more than phrases are read, for which nothing is worth waiting.
            distils: Whether a model reads a whole session, and says of which one a fact is.
        """
        waits = by_model or options.extract_mode == "manual"
        mode = options.extract_mode if waits else "inline"
        return cls(
            mode=mode,
            quiet=options.session_idle,
            least=_LEAST if distils and mode in _BY_SESSION else 0,
            longest=options.pending_max_age,
        )

    @property
    def by_session(self) -> bool:
        """Whether a thread is handled once it is over, and no job is ever dropped."""
        return self.mode in _BY_SESSION

    def trips(
        self, sessions: Iterable[list[Job]], ended: Collection[str], now: float
    ) -> tuple[list[Trip], float]:
        """Return what to handle now, and the seconds until there is more; infinity: unknown.

        By session, the newest thread of a scope may go on, until it was quiet; the others are over,
        whichever process queued their jobs. By turn, nothing waits.

        Args:
            sessions: The jobs of each thread of a scope, none of which is empty.
            ended: The threads that are over in any case, and wait no longer.
            now: Seconds since the epoch.
        """
        over = sorted(sessions, key=lambda session: session[-1].queued_at)
        pause = inf
        if over and self.by_session and over[-1][0].lane not in ended:
            pause = _rest_of(over[-1][-1].queued_at, self.quiet, now) or inf
            over = over if pause == inf else over[:-1]
        packs = in_packs(filter(self._is_short, over), _size, _ROOM)
        trips: list[Trip] = []
        for session in over:
            if not self._is_short(session):
                takes = packs if _may_travel(session) else []
                trips.append([*(takes.pop(0) if takes else []), session])
        wait = self._wait_of(packs[-1], ended, now) if packs else 0.0
        if wait:
            packs.pop()
        return [*trips, *packs], min(pause, wait or inf)

    def _is_short(self, session: list[Job]) -> bool:
        return _may_travel(session) and _size(session) < self.least

    def _wait_of(self, pack: Trip, ended: Collection[str], now: float) -> float:
        """Return how many seconds short sessions wait for others."""
        if sum(map(_size, pack)) >= self.least or any(each[0].lane in ended for each in pack):
            return 0.0
        return min(_rest_of(each[0].queued_at, self.longest, now) for each in pack)


def _may_travel(session: list[Job]) -> bool:
    """Return whether a session may be read with others; one that was ingested is read alone."""
    return session[0].attempts < _TOGETHER and "turn" not in session[0].messages[0]


def _size(session: list[Job]) -> int:
    return sum(job.characters for job in session)


def _rest_of(since: str, seconds: float, now: float) -> float:
    """Return how many of the seconds since a moment are left.

    A moment in the future says nothing: another clock is wrong.
    """
    moment = read_moment(since)
    waited = seconds if moment is None else now - moment.timestamp()
    return 0.0 if abs(waited) >= seconds else min(seconds - waited, seconds)


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
    def today(self) -> int:
        """The number of the day."""
        return int(self.clock() // _DAY)

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
        today = self.today
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
