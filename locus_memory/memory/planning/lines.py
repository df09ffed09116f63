"""The lines that show records of the layers in a block; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from locus_memory._internal.neutral import neutralise
from locus_memory.memory.layers.episodes import Episode
from locus_memory.memory.moments import read_moment
from locus_memory.store.item import StoreItem

__all__ = [
    "NOTE",
    "Outcome",
    "PartName",
    "PlannedLine",
    "about_line",
    "always_line",
    "episode_line",
    "turn_line",
    "turn_text",
]

NOTE: Final = (
    'The user wrote the lines that begin with "- always:" as standing wishes: follow them. The'
    ' lines that begin with "- feedback:" tell how the user likes to be answered.'
)
"""The line that explains what always holds."""

PartName = Literal["override", "rule", "section"]
"""A part of a block: an override, a feedback rule, or a line of the section."""

Outcome = Literal["shown", "cut", "budget", "limit", "gate"]
"""The fate of a line: in the block; in it, but cut; over its budget; over the number of memories
of a section; or found, but not of the section that the gate named."""

_CUT: Final = "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLine:
    """A line that was found for a run, and its fate.

    Attributes:
        part: Its part of the block; that of any other memory that was found is the section.
        line: The whole line.
        tokens: Its tokens, counted alone.
        outcome: Whether it is shown, and if not, why.
        name: The `current_key` of its memory; empty for anything else.
    """

    part: PartName
    line: str
    tokens: int
    outcome: Outcome
    name: str = ""


def always_line(text: str) -> str:
    """Return the line of an override."""
    return f"- always: {neutralise(text)}"


def about_line(text: str) -> str:
    """Return the line of a sentence about who the user is."""
    return f"- about the user: {neutralise(text)}"


def episode_line(episode: Episode) -> str:
    """Return the line of an episode: its day, summary, decisions and action items."""
    parts = [f"- session of {_day(episode.ended_at)}: {neutralise(episode.summary)}"]
    parts += _listed("Decided", episode.decisions) + _listed("To do", episode.action_items)
    return " ".join(parts)


def turn_text(item: StoreItem) -> str:
    """Return the text of a recorded turn; empty if it has none."""
    text = item.value.get("text") if isinstance(item.value, dict) else None
    return text if isinstance(text, str) else ""


def turn_line(item: StoreItem, longest: int) -> str:
    """Return the line of a recorded turn: `[date] speaker: text`; empty if it has no text.

    Args:
        item: An item of a transcript.
        longest: The most characters of the text; a longer one ends in `...`.
    """
    text = turn_text(item)
    shown = neutralise(text[:longest])
    if not shown:
        return ""
    speaker = neutralise(str(item.metadata.get("speaker") or "unknown"))
    cut = _CUT if len(text) > longest else ""
    return f"- [{_day(item.metadata.get('date'))}] {speaker}: {shown}{cut}"


def _day(moment: object) -> str:
    read = read_moment(moment)
    return "unknown day" if read is None else read.date().isoformat()


def _listed(title: str, entries: Sequence[str]) -> list[str]:
    shown = "; ".join(neutralise(entry).rstrip(".") for entry in entries)
    return [f"{title}: {shown}."] if shown else []
