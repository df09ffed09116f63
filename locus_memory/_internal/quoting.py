"""Quotes of a caller's values in messages, also of large or unusual ones."""

from __future__ import annotations

from itertools import islice
from reprlib import Repr
from typing import Final

from typing_extensions import override

__all__ = ["LONGEST", "quote", "shorten"]

LONGEST: Final = 300
"""The limit of one value's quote in a message, in characters."""

_LARGEST: Final = 512
"""The limit of a quoted integer, in bits; Python refuses to write very long integers."""


class _Short(Repr):
    """`repr` of the beginning of a value; the rest of the value is not read."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 8
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_dict(self, x: dict[object, object], level: int) -> str:
        """Return the first pairs; `Repr` itself would sort all the keys first."""
        if level <= 0 and x:
            return "{...}"
        pairs = islice(x.items(), self.maxdict)
        parts = [f"{self.repr1(k, level - 1)}: {self.repr1(v, level - 1)}" for k, v in pairs]
        return "{" + ", ".join([*parts, *["..."] * (len(x) > self.maxdict)]) + "}"

    def repr_bytes(self, x: bytes, level: int) -> str:
        """Return the first bytes; `Repr` itself would write them all before the cut."""
        del level
        return repr(x) if len(x) <= self.maxstring else f"{x[: self.maxstring]!r}..."

    @override
    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > _LARGEST:
            return f"an integer of {x.bit_length()} bits"
        return super().repr_int(x, level)


_SHORT: Final = _Short()


def quote(value: object) -> str:
    """Return `repr(value)`, shortened if it is long; it never fails."""
    return shorten(_SHORT.repr(value))


def shorten(text: str) -> str:
    """Return a text for a message, shortened in the middle if it is long."""
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 3) // 2
    return f"{text[:half]}...{text[-half:]}"
