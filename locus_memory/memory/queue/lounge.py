"""Sessions that wait for others of their scope, because they are too short for a call; pure."""

from __future__ import annotations

from locus_memory.store.encoding import decode_namespace
from locus_memory.store.item import Namespace

__all__ = ["Lounge", "scope_of"]


class Lounge:
    """The lanes of short sessions that are over, each with the moment at which its wait ends."""

    def __init__(self) -> None:
        self._ends: dict[Namespace, dict[str, float]] = {}
        self._first = float("inf")

    def put(self, lane: str, end: float) -> None:
        """Let a session wait until a moment, in seconds since the epoch."""
        self._ends.setdefault(scope_of(lane), {})[lane] = end
        self._first = min(self._first, end)

    def end(self, lane: str) -> float | None:
        """Return the moment at which a session's wait ends; `None`: it does not wait."""
        return self._ends.get(scope_of(lane), {}).get(lane)

    def of(self, scope: Namespace) -> list[str]:
        """Return the sessions of a scope that wait, those first that began first."""
        return list(self._ends.get(scope, ()))

    def drop(self, lane: str) -> None:
        """Forget a session: it goes on, or is done."""
        waiting = self._ends.get(scope_of(lane), {})
        waiting.pop(lane, None)
        if not waiting:
            self._ends.pop(scope_of(lane), None)

    def ended(self, now: float) -> list[str]:
        """Return the sessions whose wait has ended since the last call."""
        if now < self._first:
            return []
        ends = {lane: end for waiting in self._ends.values() for lane, end in waiting.items()}
        self._first = min((end for end in ends.values() if end > now), default=float("inf"))
        return [lane for lane, end in ends.items() if end <= now]


def scope_of(lane: str) -> Namespace:
    """Return the scope of a thread's lane."""
    return decode_namespace(lane)[:-1]
