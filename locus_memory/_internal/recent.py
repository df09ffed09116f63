"""A bounded cache of the most recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

__all__ = ["RecentlyUsed"]

_Value = TypeVar("_Value")


class RecentlyUsed(Generic[_Value]):
    """A cache of the most recently used values, by key; several threads may share it.

    Args:
        capacity: How many values it keeps, or the sum of their weights.
        weigh: Returns the weight of a value, such as its bytes; by default each weighs 1.
    """

    def __init__(self, capacity: int, weigh: Callable[[_Value], int] | None = None) -> None:
        self._capacity = capacity
        self._weigh = weigh or (lambda _: 1)
        self._weight = 0
        self._values: OrderedDict[Hashable, _Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> _Value | None:
        """Return a value, if it is still kept."""
        return self._values.get(key)

    def all(self) -> dict[Any, _Value]:
        """Return all values that it holds now."""
        with self._lock:
            return dict(self._values)

    def put(self, key: Hashable, value: _Value) -> None:
        """Keep a value, as the most recently used one."""
        with self._lock:
            self._drop(key)
            self._values[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._capacity:
                self._drop(next(iter(self._values)))

    def discard(self, key: Hashable) -> None:
        """Drop a value, if it is still kept."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        if key in self._values:
            self._weight -= self._weigh(self._values.pop(key))

    def touch(self, key: Hashable) -> None:
        """Make a value the most recently used one, if it is still kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
