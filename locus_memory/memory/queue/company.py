"""Which sessions travel together to the extractor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from locus_memory.memory.queue.jobs import Job

__all__ = ["company_of"]

_TOGETHER: Final = 2
"""The attempts after which a session travels alone: others do not fail because of it for ever."""

_ROOM: Final = 4_000
"""The most characters of short sessions that travel with another one."""


async def company_of(
    lane: str,
    jobs: list[Job],
    others: Iterable[str],
    load: Callable[[str], Awaitable[list[Job]]],
    least: int,
) -> list[list[Job]]:
    """Return a session with the short ones of its scope that travel with it.

    It comes last if it is long; otherwise, the newest one does.

    Args:
        lane: The session's lane.
        jobs: Its jobs.
        others: The lanes of short sessions of the scope, in the order in which they ended.
        load: Returns the jobs of a lane.
        least: The characters of a session that is not short.
    """
    found: dict[str, list[Job]] = {}
    room = 0 if jobs[0].attempts >= _TOGETHER else _ROOM
    for each in dict.fromkeys((*others, lane)):
        session = jobs if each == lane else await load(each) if room > 0 else []
        size = _size(session)
        may_come = session and session[0].attempts < _TOGETHER and size < min(least, room)
        if each == lane or may_come:
            found[each] = session
            room -= size if each != lane else 0
    sessions = sorted(found.values(), key=lambda session: session[-1].queued_at or "")
    return (
        sessions if _size(jobs) < least else sorted(sessions, key=lambda session: session is jobs)
    )


def _size(jobs: list[Job]) -> int:
    return sum(job.characters for job in jobs)
