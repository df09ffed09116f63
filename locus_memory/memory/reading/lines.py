"""The lines of a block of memories, and their form; pure.

Lines of one day and one speaker stand below one heading, so that nearly all tokens are the
memories' own words.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from datetime import tzinfo
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from locus_memory._internal.neutral import neutralise
from locus_memory.conversation.tokens import TokenCounter
from locus_memory.memory.layers.episodes import Episode
from locus_memory.memory.ledger.revision import importance_of
from locus_memory.memory.models import (
    Memory,
    MemoryType,
    Origin,
    has_authority,
    origin_of,
    own_words,
    teller,
)
from locus_memory.memory.moments import local_day
from locus_memory.memory.scope import current_key
from locus_memory.memory.validity import said_at, stated, validity_words
from locus_memory.store.item import StoreItem

__all__ = [
    "NOTE",
    "QUOTE_TOKENS",
    "Line",
    "LineKind",
    "Outcome",
    "always_line",
    "fact_line",
    "fitting",
    "grouped",
    "note_lines",
    "oldest_word",
    "passage_of",
    "quote_line",
    "rule_line",
]

NOTE: Final = (
    'The user wrote the lines that begin with "- always:" as standing wishes: follow them. The'
    ' lines that begin with "- feedback:" tell how the user likes to be answered.'
)
"""The line that explains what always holds."""

QUOTE_TOKENS: Final = 80
"""The most tokens of a quote; of a longer message, a passage is quoted."""

_MARKS: Final = {"decision": "(decided) ", "task": "(to do) ", "done": "(done) "}
_CUT: Final = "..."
_CHARACTERS_A_TOKEN: Final = 8
"""No token of any language has more characters: a longer text is cut before it is counted."""

_READ: Final = 20_000
"""The characters of a long text in which a passage is looked for."""

_MOST_STARTS, _MOST_WORDS = 400, 24
"""The most places of a long text at which a passage may begin, and the most words it is to have."""

_FEWEST_TOKENS: Final = 3
"""A shorter line shows nothing."""

_LONGEST: Final = 4_000
_SHORT_STEM: Final = 4
_START: Final = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f\u061f\u0964])\s*|\n+")

LineKind = Literal["override", "rule", "fact", "note", "quote"]
"""What a line shows: a wish that a person wrote, a feedback memory, a memory, a note, or the words
of a turn."""

Outcome = Literal["stable", "tail", "budget", "gate"]
"""The place of a line: in the stable part, in the tail, or in neither: it had no room, or the gate
kept it back."""


class Line(NamedTuple):
    """A line of a block.

    Attributes:
        kind: What it shows.
        text: The line, neutralised; empty: there is nothing to show.
        name: The `current_key` of a memory, the key of an episode or of a turn; else empty.
        moment: The moment it is from, ISO 8601 in UTC; empty: unknown.
        speaker: The speaker of a quote, or who told a memory, if it is not the user.
        importance: From 0 to 1; what is less important fades first.
        relevance: Its relevance to the message, from 0 to 1.
        outcome: Its place, where a plan explains it.
        tokens: Its tokens, counted alone, likewise.
    """

    kind: LineKind
    text: str
    name: str = ""
    moment: str = ""
    speaker: str = ""
    importance: float = 0.5
    relevance: float = 0.0
    outcome: Outcome = "budget"
    tokens: int = 0

    def heading(self, zone: tzinfo | None) -> str:
        """Return the line above it, which it shares with others; empty: none.

        Args:
            zone: The time zone of the user; `None`: that of the machine.
        """
        if self.kind not in ("fact", "note", "quote"):
            return ""
        day = local_day(self.moment, zone) or "unknown day"
        return f"{day}, {self.speaker}:" if self.speaker else f"{day}:"


def always_line(memory: Memory) -> Line:
    """Return the line of what a person fixed, which is never cut."""
    name = current_key(memory.type, memory.key)
    return Line(kind="override", text=f"- always: {neutralise(memory.content)}", name=name)


def rule_line(rule: Memory) -> Line:
    """Return the line of a feedback memory; that of one from a model says so."""
    told = f"({teller(rule)}) " if origin_of(rule) is Origin.ASSISTANT else ""
    return _memory_line(rule, "rule", f"- feedback: {told}")


def fact_line(memory: Memory, *, relevance: float = 0.0) -> Line:
    """Return the line of a memory; if it has no authority, the line itself says who told it."""
    start = f"- {_mark(memory)}"
    if memory.type is MemoryType.FEEDBACK:
        start += "feedback: "
    return _memory_line(memory, "fact", start, relevance)


def _mark(told: Memory | str) -> str:
    """Return what a line begins with whose teller has no authority."""
    return "" if has_authority(told) else f"({teller(told)}) "


def _memory_line(memory: Memory, kind: LineKind, start: str, relevance: float = 0.0) -> Line:
    said = neutralise(memory.content[:_LONGEST])
    cut = _CUT if said and len(memory.content) > _LONGEST else ""
    return Line(
        kind=kind,
        text=f"{start}{said}{cut}{validity_words(stated(memory), said)}" if said else "",
        name=current_key(memory.type, memory.key),
        moment=said_at(memory),
        speaker=teller(memory) if has_authority(memory) else "",
        importance=importance_of(memory),
        relevance=relevance,
    )


def note_lines(episode: Episode, *, relevance: float = 0.0, of_tools: bool = False) -> list[Line]:
    """Return the lines of the notes of a session.

    Args:
        episode: The notes of the session.
        relevance: Their relevance to the message.
        of_tools: Whether those without authority are among them, and say so.
    """
    return [
        Line(
            kind="note",
            text=f"- {_mark(note.origin)}{_MARKS.get(note.kind, '')}{note.text}"
            f"{validity_words(note.validity, note.text)}",
            name=f"{episode.key}#{number}",
            moment=note.at or episode.ended_at,
            speaker=teller(note.origin) if has_authority(note.origin) else "",
            importance=episode.salience,
            relevance=relevance,
        )
        for number, note in enumerate(episode.notes, 1)
        if of_tools or has_authority(note.origin)
    ]


def quote_line(
    turn: StoreItem,
    count: TokenCounter,
    query: Collection[str] = (),
    *,
    relevance: float = 0.0,
    is_own: bool = False,
) -> Line:
    """Return the line of a recorded turn, or of the passage of it that fits a query best.

    Args:
        turn: An item of a transcript.
        count: Counts tokens.
        query: The stems of the words of the query.
        relevance: Its relevance to the message.
        is_own: Whether to leave out what the turn itself quotes.
    """
    text = turn.value.get("text") if isinstance(turn.value, dict) else None
    told = text if isinstance(text, str) else ""
    said = passage_of(own_words(told[:_READ]) if is_own else told, count, query)
    speaker = neutralise(str(turn.metadata.get("speaker") or "unknown"))
    moment = turn.metadata.get("date")
    return Line(
        kind="quote",
        text=f"- {said}" if said else "",
        name=f"{turn.namespace[-1]}/{turn.key}",
        moment=moment if isinstance(moment, str) else "",
        speaker=f"the {speaker}" if speaker in ("user", "assistant") else speaker,
        relevance=relevance,
    )


def passage_of(text: str, count: TokenCounter, query: Collection[str] = ()) -> str:
    """Return a text on one line, or the passage of at most 80 tokens that has most of a query.

    A passage begins where a sentence does. `...` stands where the text was cut.

    Args:
        text: The text.
        count: Counts tokens.
        query: The stems of the words of the query; without any, the passage is the beginning.
    """
    if len(text) <= _CHARACTERS_A_TOKEN * QUOTE_TOKENS:
        whole = _one_line(text)
        # Its line is counted again when it is fitted, and the count is remembered.
        if count(f"- {whole}\n") <= QUOTE_TOKENS or count(whole) <= QUOTE_TOKENS:
            return whole
    return _cut(text, _best_start(text, count, query), count)


# Most turns are short, and found again and again.
_one_line: Final = lru_cache(maxsize=4096)(neutralise)


def _best_start(text: str, count: TokenCounter, query: Collection[str]) -> int:
    """Return the start of the sentence after which most words of a query stand in a quote."""
    if not query:
        return 0
    # A stem is the beginning of a word, but for its last letter.
    beginnings = {stem[:-1] if len(stem) > _SHORT_STEM else stem for stem in query}
    read = text[:_READ].casefold()
    sample = text[: 4 * QUOTE_TOKENS]
    room = max(QUOTE_TOKENS, len(sample) * QUOTE_TOKENS // max(1, count(sample)))
    # The longest words tell most.
    parts = sorted(filter(read.__contains__, beginnings), key=lambda part: (-len(part), part))
    starts = [0, *(match.end() for match in _START.finditer(text[:_READ]))]
    # A text of many points has many beginnings of sentences.
    starts = starts[:: 1 + len(starts) // _MOST_STARTS]
    windows = (read[start : start + room] for start in starts)
    shared = [sum(part in window for part in parts[:_MOST_WORDS]) for window in windows]
    # Of equal ones the last: it has the most room after the words.
    return max(zip(shared, starts, strict=True))[1] if any(shared) else 0


def _cut(text: str, start: int, count: TokenCounter) -> str:
    """Return the longest passage from a place that fits, with a sign where it was cut."""
    before = _CUT if start else ""
    rest = neutralise(text[start : start + _CHARACTERS_A_TOKEN * QUOTE_TOKENS])
    longer = range(1, len(rest) + 1)
    low = bisect_right(longer, QUOTE_TOKENS, key=lambda n: count(f"{before}{rest[:n]}{_CUT}"))
    is_cut = low < len(rest) or start + _CHARACTERS_A_TOKEN * QUOTE_TOKENS < len(text)
    return f"{before}{rest[:low].rstrip()}{_CUT if is_cut else ''}"


def oldest_word(lines: Iterable[Line]) -> str:
    """Return the moment of the oldest note or quote, which goes some day; empty: there is none."""
    moments = (line.moment for line in lines if line.kind in ("note", "quote"))
    return min(filter(None, moments), default="")


def grouped(lines: Iterable[Line], zone: tzinfo | None) -> Iterator[str]:
    """Yield the lines with their headings; neighbours with the same heading share it."""
    last = ""
    for line in lines:
        heading = line.heading(zone)
        if heading and heading != last:
            yield heading
        last = heading
        yield line.text


def fitting(
    lines: Iterable[Line], budget: int, count: TokenCounter, zone: tzinfo | None
) -> tuple[list[Line], int]:
    """Return the lines that fit, in order, and their tokens; each heading is counted once.

    Args:
        lines: The best first.
        budget: The most tokens.
        count: Counts tokens.
        zone: As for `grouped`.
    """
    chosen: list[Line] = []
    headings: set[str] = set()
    left = budget
    for line in lines:
        if left < _FEWEST_TOKENS:
            break
        if len(line.text) > left * _CHARACTERS_A_TOKEN:
            continue
        cost, heading = count(f"{line.text}\n"), line.heading(zone)
        if heading and heading not in headings:
            cost += count(f"{heading}\n")
        if cost <= left:
            chosen.append(line)
            headings.add(heading)
            left -= cost
    return chosen, budget - left
