"""Neutralised text: one line that can neither close nor open a fence."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["neutralise", "neutralised_lines"]

_DEEPEST: Final = 40
"""The most spaces of indentation that a line keeps."""

# Angle brackets and backticks, with every character that any normal form turns into one.
_TABLE: Final = str.maketrans(
    {
        **dict.fromkeys("<\uff1c\ufe64\u226e", "\u2039"),
        **dict.fromkeys(">\uff1e\ufe65\u226f", "\u203a"),
        **dict.fromkeys("\uff40\u1fef", "`"),
    }
)

# Control characters except whitespace, format characters (category Cf) except the joiners,
# characters that are invisible by default, tags, noncharacters and lone surrogates.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f"
    "\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff\U0004fffe\U0004ffff"
    "\U0005fffe\U0005ffff\U0006fffe\U0006ffff\U0007fffe\U0007ffff\U0008fffe\U0008ffff"
    "\U0009fffe\U0009ffff\U000afffe\U000affff\U000bfffe\U000bffff\U000cfffe\U000cffff"
    "\U000dfffe\U000dffff\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
    "\U000efffe\U000effff\U000ffffe\U000fffff\U0010fffe\U0010ffff]+"
)
_JOINERS: Final = "\u200c\u200d"
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
# Scripts that spell with joiners start at Arabic; joined emoji come after it too.
_SPELLED: Final = (
    "\u0620-\u167f\u16a0-\u1cff\u2190-\u2bff\u3030\u303d\ua800-\uabff\U0001f000-\U0001faff"
)
_LOOSE_JOINER: Final = re.compile(
    f"(?<![{_SPELLED}{_SELECTORS}])[{_JOINERS}]|[{_JOINERS}](?![{_SPELLED}])"
)
# One selector sets the form of the character before it; a run of them hides a message.
_SELECTOR_RUN: Final = re.compile(f"([{_SELECTORS}])[{_SELECTORS}]+")
_SPACE: Final = re.compile(r"\s+")
# The parts of a text of printable ASCII that need processing.
_SUSPECT: Final = re.compile("[<>]|  |```")
_BACKTICKS: Final = re.compile("`{3,}")


def neutralise(text: str) -> str:
    """Return `text` as one line of visible characters that cannot form a fence.

    Any run of whitespace, with line breaks of every kind, becomes one space. Control, format and
    other invisible characters are removed, except a joiner between two characters of a script or an
    emoji that is spelled with it. Angle brackets, and characters that normalisation converts to
    them, become U+2039 and U+203A; three or more backticks are separated. Neutralising twice
    changes nothing more.
    """
    if text.isascii() and text.isprintable() and not _SUSPECT.search(text):
        return text.strip()
    bare = _INVISIBLE.sub("", text)
    if not bare.isascii():
        bare = _SELECTOR_RUN.sub(r"\1", _LOOSE_JOINER.sub("", bare))
    line = _SPACE.sub(" ", bare).strip().translate(_TABLE)
    return _BACKTICKS.sub(_break_up, line)


def neutralised_lines(text: str) -> list[str]:
    """Return the lines of a text with visible characters, each neutralised but for its indent."""
    return [
        " " * min(len(line) - len(line.lstrip(" ")), _DEEPEST) + bare
        for line in text.splitlines()
        if (bare := neutralise(line))
    ]


def _break_up(run: re.Match[str]) -> str:
    ticks = len(run.group())
    return " ".join("`" * min(2, ticks - start) for start in range(0, ticks, 2))
