"""When the threads that wait are handled, and which of them together; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final, Self

from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import ExtractMode, MemoryOptions
from locus_memory.memory.packing import packed
from locus_memory.memory.queue.jobs import Job

__all__ = ["A_CALL", "Pace", "Trip"]

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
        packs = packed(filter(self._is_short, over), _size, _ROOM)
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
