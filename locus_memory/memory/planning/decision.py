"""The decision of the gate: a section of memory, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ALWAYS", "NOTHING", "Decision", "Section"]

Section = Literal["none", "identity", "pinned", "episode", "transcript"]
"""A layer of memory that one message may be shown; `none`: nothing but what always holds."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a message needs.

    Attributes:
        section: The section.
        reason: The rule that decided, in two or three fixed words; never a word of the message.
    """

    section: Section
    reason: str


NOTHING: Final = Decision("none", "no rule")
"""The decision where no rule fires."""

ALWAYS: Final = Decision("pinned", "gate off")
"""The decision of a gate that is off."""
