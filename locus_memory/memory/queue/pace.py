"""When a worker handles the jobs of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from locus_memory.memory.moments import read_moment

__all__ = ["EAGER", "Pace", "rest_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a worker handles the jobs of a thread.

    Attributes:
        by_session: A thread is handled once it was quiet for `batch_quiet`, or once another thread
            of the same scope has a job, whichever process queued these jobs; and no job is ever
            dropped.
        is_manual: Nothing is handled until `drain` insists on it.
        least: With `by_session`: the characters of a session below which it waits, once it is
            over, and travels with other sessions of its scope.
        longest: The seconds that such a session waits at most.
    """

    by_session: bool = False
    is_manual: bool = False
    least: int = 0
    longest: float = 0.0


EAGER: Final = Pace()
"""A thread is handled at once, or as soon as enough of its messages wait."""


def rest_of(since: str | None, seconds: float, now: float) -> float:
    """Return how many of the seconds since a moment are left.

    A moment in the future says nothing: another clock is wrong.
    """
    moment = read_moment(since)
    waited = seconds if moment is None else now - moment.timestamp()
    return 0.0 if abs(waited) >= seconds else min(seconds - waited, seconds)
