"""Values about scopes that are kept for seconds, and dropped by a write to the scope."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from threading import Lock
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from typing_extensions import override

from locus_memory.store.item import Namespace
from locus_memory.store.wrappers.writes import WriteObserver, Written

__all__ = ["SHOWN_LAYERS", "STANDING_LAYERS", "ScopeCache", "Ticket", "WatchedStore", "note_writes"]

SHOWN_LAYERS: Final = frozenset(("current", "identity", "vitals", "episodes", "transcript"))
"""The namespaces of a scope that a block is made of."""

STANDING_LAYERS: Final = frozenset(("current", "identity", "vitals"))
"""The namespaces of what always holds."""

_SECONDS: Final = 10.0
_CAPACITY: Final = 256

_Value = TypeVar("_Value")


class Ticket:
    """The permission to keep a value; a write to its scope takes it away.

    Attributes:
        namespace: The namespace of the scope.
        is_valid: Whether nothing was written since the ticket was drawn.
    """

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.is_valid = True


class ScopeCache(Generic[_Value]):
    """Values about scopes, for ten seconds; several threads may share it.

    Args:
        clock: Returns seconds; a clock that stepped back ends the time of a value.
        layers: The namespaces below a scope whose writes drop its values.
        capacity: The most values; of more, the oldest are dropped.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        layers: AbstractSet[str] = SHOWN_LAYERS,
        capacity: int = _CAPACITY,
    ) -> None:
        self._clock = clock
        self._layers = layers
        self._capacity = capacity
        self._values: OrderedDict[tuple[Namespace, Hashable], tuple[float, _Value]] = OrderedDict()
        self._tickets: WeakSet[Ticket] = WeakSet()
        self._lock = Lock()
        with _CACHES_LOCK:
            _CACHES.add(self)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, namespace: Namespace, key: Hashable) -> _Value | None:
        """Return a value that is at most ten seconds old."""
        with self._lock:
            found = self._values.get((namespace, key))
            if found is None:
                return None
            if 0 <= self._clock() - found[0] < _SECONDS:
                return found[1]
            del self._values[namespace, key]
            return None

    def ticket(self, namespace: Namespace) -> Ticket:
        """Return a ticket; draw it before the value is read."""
        ticket = Ticket(namespace)
        with self._lock:
            self._tickets.add(ticket)
        return ticket

    def put(self, ticket: Ticket, key: Hashable, value: _Value) -> None:
        """Keep a value, unless something was written since its ticket was drawn."""
        with self._lock:
            self._tickets.discard(ticket)
            if not ticket.is_valid:
                return
            place = (ticket.namespace, key)
            self._values.pop(place, None)
            self._values[place] = (self._clock(), value)
            while len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def drop(self, written: Namespace) -> None:
        """Drop the values of the scope that a written namespace belongs to."""
        with self._lock:
            for ticket in self._tickets:
                if self._concerns(written, ticket.namespace):
                    ticket.is_valid = False
            stale = [place for place in self._values if self._concerns(written, place[0])]
            for place in stale:
                del self._values[place]

    def _concerns(self, written: Namespace, scope: Namespace) -> bool:
        length = len(scope)
        if len(written) <= length:
            # A namespace with all its descendants was cleared.
            return scope[: len(written)] == written
        return written[length] in self._layers and written[:length] == scope


_CACHES: Final[WeakSet[ScopeCache[Any]]] = WeakSet()
_CACHES_LOCK: Final = Lock()


def note_writes(namespaces: Iterable[Namespace]) -> None:
    """Drop what the caches of this process keep about the scopes of written namespaces."""
    written = set(namespaces)
    with _CACHES_LOCK:
        caches = list(_CACHES)
    for cache in caches:
        for namespace in written:
            cache.drop(namespace)


class WatchedStore(WriteObserver):
    """A store whose writes drop what the caches of this process keep about their scopes."""

    @override
    def _written(self, names: Sequence[Written]) -> None:
        note_writes(namespace for namespace, _ in names)
