"""The pools and queues of this process, for those who measure them."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["POOLS", "QUEUES", "Live", "Pool", "PoolUse", "Queue"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The use of a pool of connections at one moment.

    Attributes:
        used: Connections that calls have.
        idle: Open connections that no call has.
        size: The most that may be open.
        waiting: Calls that wait for one.
    """

    used: int
    idle: int
    size: int
    waiting: int = 0


class Pool(Protocol):
    """A pool of connections."""

    def use(self) -> PoolUse:
        """Return its use now; any thread may ask."""
        ...


class Queue(Protocol):
    """A queue of jobs."""

    @property
    def pending(self) -> int:
        """The number of jobs that wait or run, as far as this process knows."""
        ...


class Live(Generic[T]):
    """The objects of one kind that are alive, each with a name; any thread may add one."""

    def __init__(self) -> None:
        self._objects: WeakKeyDictionary[T, str] = WeakKeyDictionary()
        self._lock = Lock()

    def add(self, made: T, name: str) -> None:
        """Add an object, which is held weakly."""
        with self._lock:
            self._objects[made] = name

    def all(self) -> list[tuple[str, T]]:
        """Return the objects with their names."""
        with self._lock:
            return [(name, made) for made, name in self._objects.items()]


POOLS: Final[Live[Pool]] = Live()
"""The pools of connections, named by the place that they lead to."""

QUEUES: Final[Live[Queue]] = Live()
"""The queues of extraction, named `extraction`."""
