"""When a worker handles the jobs of a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from locus_memory.memory.moments import read_moment
from locus_memory.memory.options import ExtractMode, MemoryOptions

__all__ = ["LEAST", "Pace", "rest_of"]

LEAST: Final = 80
"""The characters below which a session waits for the next one."""

_BY_SESSION: Final = ("session_end", "manual")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When a worker handles the jobs of a thread.

    Attributes:
        mode: When a thread is handled, see `MemoryOptions.extract_mode`.
        quiet: The seconds without a new job after which a session is over, and after which a
            failed one is tried again.
        timeout: The seconds that the work on jobs may take.
        least: By session: the characters of a session below which it waits, once it is over, and
            travels with other sessions of its scope.
        longest: The seconds that such a session waits at most.
    """

    mode: ExtractMode
    quiet: float
    timeout: float
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
            timeout=options.extract_timeout,
            least=LEAST if distils and mode in _BY_SESSION else 0,
            longest=options.pending_max_age,
        )

    @property
    def by_session(self) -> bool:
        """Whether a thread is handled once it is over, and no job is ever dropped.

        It is over once it was quiet, or once another thread of its scope has a job, whichever
        process queued these jobs.
        """
        return self.mode in _BY_SESSION

    @property
    def is_manual(self) -> bool:
        """Whether nothing is handled until `drain` insists on it."""
        return self.mode == "manual"

    @property
    def is_inline(self) -> bool:
        """Whether a run waits for the work on its job."""
        return self.mode == "inline"


def rest_of(since: str | None, seconds: float, now: float) -> float:
    """Return how many of the seconds since a moment are left.

    A moment in the future says nothing: another clock is wrong.
    """
    moment = read_moment(since)
    waited = seconds if moment is None else now - moment.timestamp()
    return 0.0 if abs(waited) >= seconds else min(seconds - waited, seconds)
