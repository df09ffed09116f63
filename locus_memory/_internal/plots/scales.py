"""Scales of axes: they cover their values, and have ticks at round numbers; pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from locus_memory.errors import InvalidArgumentError

__all__ = ["Scale", "linear_scale", "log_scale", "write_bytes", "write_number"]

_LARGEST: Final = 1e290
"""Beyond it, the distance of two values is no number any more."""

_CLOSE: Final = 1e-9
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS: Final = 5
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_THOUSAND: Final = 1_000


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of an axis.

    Attributes:
        low: The value at its beginning.
        high: The value at its end.
        ticks: The values that are marked, ascending.
        is_log: Whether equal distances are equal ratios.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def place(self, value: float) -> float:
        """Return the place of a value, from 0 at the beginning to 1 at the end."""
        if self.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(value) - low) / (high - low)
        # Halves: the difference of two large values of either sign is still a number.
        return (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)


def linear_scale(
    values: Iterable[float], ticks: Sequence[float] = (), *, is_whole: bool = False
) -> Scale:
    """Return the scale that covers some values.

    Args:
        values: The values, at least one.
        ticks: The ticks; by default about five round numbers, the first and the last of which are
            the ends of the scale.
        is_whole: Whether the values are counts, so that no tick stands between two of them.

    Raises:
        InvalidArgumentError: There is no value, or one is not a number below 1e290.
    """
    low, high = _ends([*values, *ticks])
    if _is_flat(low, high):
        room = abs(low) / 2 or 1.0
        low, high = low - room, high + room
    if ticks:
        return Scale(low, high, tuple(sorted(set(ticks))))
    step = _round_step(high / _TICKS - low / _TICKS)
    if is_whole:
        step = math.ceil(step)
    first, last = math.floor(low / step), math.ceil(high / step)
    # A quotient is rounded: the ends are checked.
    first -= first * step > low
    last += last * step < high
    marks = tuple(number * step for number in range(first, last + 1))
    return Scale(marks[0], marks[-1], marks)


def log_scale(values: Iterable[float], ticks: Sequence[float] = ()) -> Scale:
    """Return the logarithmic scale that covers some values, with a tick at each power of ten.

    Raises:
        InvalidArgumentError: As `linear_scale`; or a value is not above 1e-290.
    """
    low, high = _ends([*values, *ticks])
    if low < 1 / _LARGEST:
        raise InvalidArgumentError("a logarithmic axis has values above 0 alone")
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    first -= 10.0**first > low
    last += 10.0**last < high
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / (2 * _TICKS)))
    marks = tuple(10.0**power for power in range(first, last + 1, stride))
    shown = tuple(sorted(set(ticks))) if ticks else marks
    return Scale(10.0**first, 10.0**last, shown, is_log=True)


def write_number(value: float) -> str:
    """Return a number with separators of thousands, in up to twelve digits."""
    is_plain = value == int(value) and abs(value) < 10**12
    return f"{int(value):,}" if is_plain else f"{value:.12g}"


def write_bytes(value: float) -> str:
    """Return a number of bytes in a readable unit of powers of a thousand."""
    unit = 0
    while abs(value) >= _THOUSAND and unit < len(_UNITS) - 1:
        value, unit = value / _THOUSAND, unit + 1
    return f"{value:.3g} {_UNITS[unit]}" if abs(value) < _THOUSAND else f"{value:,.0f} PB"


def _ends(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        raise InvalidArgumentError("an axis needs at least one value")
    if not all(abs(value) <= _LARGEST for value in values):
        raise InvalidArgumentError("a value of a chart is a number below 1e290")
    return min(values), max(values)


def _is_flat(low: float, high: float) -> bool:
    """Return whether two values are too close for ticks between them."""
    span = high - low
    return span <= max(abs(low), abs(high)) * _CLOSE or span < 1 / _LARGEST


def _round_step(least: float) -> float:
    """Return the smallest round distance of ticks that is at least this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in _STEPS if step * power >= least), 10 * power)
