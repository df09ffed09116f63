"""Quoting what a caller passed in a message, however large or odd it is."""

from __future__ import annotations

from itertools import islice
from reprlib import Repr
from typing import Final

from typing_extensions import override

__all__ = ["LONGEST", "quote", "shorten"]

LONGEST: Final = 300
"""Characters; a message says no more than this of one value."""

_LARGEST: Final = 512
"""Bits; Python refuses to write out an integer of very many digits."""


class _Short(Repr):
    """`repr` of a value's beginning; the rest of the value is not even looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 8
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """Return the first pairs; `Repr` itself would sort all the keys before."""
        if level <= 0 and x:
            return "{...}"
        pairs = islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in pairs]
        return "{" + ", ".join([*parts, *["..."] * (len(x) > self.maxdict)]) + "}"

    def repr_bytes(self, x: bytes, level: int) -> str:
        """Return the first bytes; `Repr` itself would write them all before it cuts."""
        del level
        return repr(x) if len(x) <= self.maxstring else f"{x[: self.maxstring]!r}..."

    @override
    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > _LARGEST:
            return f"an integer of {x.bit_length()} bits"
        return super().repr_int(x, level)


_SHORT: Final = _Short()


def quote(value: object) -> str:
    """Return `repr(value)`, cut where it is long; it never fails."""
    return shorten(_SHORT.repr(value))


def shorten(text: str) -> str:
    """Return a text for a message, cut in the middle where it is long."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 3) // 2
    return f"{text[:half]}...{text[-half:]}"
