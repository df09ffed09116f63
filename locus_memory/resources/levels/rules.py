"""Levels without a model: headings and first sentences; pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from locus_memory.conversation.tokens import estimate_tokens

__all__ = [
    "ABSTRACT_TOKENS",
    "OVERVIEW_TOKENS",
    "Levels",
    "cut",
    "first_sentence",
    "folder_levels",
    "levels_of",
]

ABSTRACT_TOKENS: Final = 100
"""The most tokens of an abstract."""

OVERVIEW_TOKENS: Final = 1_000
"""The most tokens of an overview."""

_HEADING: Final = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*)")
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[\u3002\uff01\uff1f])|\n\s*\n")
_SPACE: Final = re.compile(r"\s+")

# No token of any language has more characters, so a longer text is cut before it is counted.
_CHARACTERS_A_TOKEN: Final = 8
_LONGEST_SENTENCE: Final = ABSTRACT_TOKENS * _CHARACTERS_A_TOKEN
_FEWEST_SECTIONS: Final = 2
_MOST_SECTIONS: Final = 400


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of one text.

    Attributes:
        digest: The digest of the text that they are of.
        abstract: At most 100 tokens.
        overview: At most 1,000 tokens.
        made_by: `rules` or `model`.
    """

    digest: str
    abstract: str
    overview: str
    made_by: Literal["rules", "model"] = "rules"

    @classmethod
    def from_value(cls, value: Any, digest: str) -> Self | None:
        """Return stored levels, if they are of the text with this digest."""
        if not isinstance(value, dict) or value.get("digest") != digest:
            return None
        made_by: Literal["rules", "model"] = "model" if value.get("made_by") == "model" else "rules"
        return cls(digest, str(value["abstract"]), str(value["overview"]), made_by)


def levels_of(text: str, digest: str) -> Levels:
    """Return the levels of a text.

    The abstract is the first heading and the first sentence. The overview is each heading with
    the first sentence of its section, or the start of a text with fewer than two headings. It
    takes linear time.
    """
    sections = list(_sections(text))
    headed = [(heading, body) for heading, body in sections if heading]
    opening = next((body for _, body in sections if body), "")
    title = headed[0][0] if headed else ""
    if title:
        opening = headed[0][1] or opening
    abstract = f"{title}: {opening}" if title and opening else title or opening
    if len(headed) < _FEWEST_SECTIONS:
        start = text[: OVERVIEW_TOKENS * _CHARACTERS_A_TOKEN].strip()
        return Levels(digest, cut(abstract, ABSTRACT_TOKENS), cut(start, OVERVIEW_TOKENS))
    lines = [f"- {heading}: {body}" if body else f"- {heading}" for heading, body in headed]
    if sections[0][0] == "" and sections[0][1]:
        lines.insert(0, sections[0][1])
    return Levels(digest, cut(abstract, ABSTRACT_TOKENS), cut("\n".join(lines), OVERVIEW_TOKENS))


def folder_levels(children: Sequence[tuple[str, str]], digest: str) -> Levels:
    """Return the levels of a folder.

    Args:
        children: The name and the abstract of each of its first children.
        digest: The digest of these.
    """
    lines = [f"- {name}: {abstract}" if abstract else f"- {name}" for name, abstract in children]
    names = ", ".join(name for name, _ in children if name)
    first = next((abstract for _, abstract in children if abstract), "")
    abstract = f"{names}. {first}" if first else names
    return Levels(digest, cut(abstract, ABSTRACT_TOKENS), cut("\n".join(lines), OVERVIEW_TOKENS))


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, as one line."""
    start = text.lstrip()[:_LONGEST_SENTENCE]
    end = _END.search(start)
    return _SPACE.sub(" ", start[: end.start()] if end else start).strip()


def cut(text: str, tokens: int) -> str:
    """Return the longest start of a text with at most so many tokens, cut at a sentence.

    Without the end of a sentence in the second half, it is cut at a space, or anywhere.
    """
    if len(text) <= tokens * _CHARACTERS_A_TOKEN and estimate_tokens(text) <= tokens:
        return text
    lengths = range(1, min(len(text), tokens * _CHARACTERS_A_TOKEN) + 1)
    low = bisect_right(lengths, tokens, key=lambda length: estimate_tokens(text[:length]))
    start = text[:low]
    ends = [found.end() for found in _END.finditer(start)]
    if low < len(text) and start and start[-1] in ".!?\n":
        ends.append(low)
    sentence = next((end for end in reversed(ends) if end >= low // 2), None)
    if sentence is not None:
        return start[:sentence].rstrip()
    space = start.rfind(" ", low // 2)
    return start[:space].rstrip() if space > 0 else start.rstrip()


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with the first sentence below it; the part before the first has none."""
    heading, fence, found = "", "", 0
    body: list[str] = []
    size = 0
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1][0] == fence):
            fence = "" if fence else mark[1][0]
        title = None if fence or mark else _HEADING.match(line)
        if title is None:
            if size < _LONGEST_SENTENCE:
                body.append(line)
                size += len(line) + 1
            continue
        if heading or any(map(str.strip, body)):
            yield heading, first_sentence("\n".join(body))
            found += 1
        if found == _MOST_SECTIONS:
            return
        heading, body, size = _SPACE.sub(" ", title[1].rstrip(" \t#")), [], 0
    yield heading, first_sentence("\n".join(body))
