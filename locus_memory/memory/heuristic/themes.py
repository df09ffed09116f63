"""The themes and the names of a few sentences, by counting words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from locus_memory.memory.heuristic.voice import is_past
from locus_memory.store.text import stem

__all__ = ["content_words", "names_of", "themes"]

# Function words, and words of small talk that name no theme.
_COMMON: Final = frozenset(
    """
    a about above after again against ago all almost along already also although always am an
    and another any anyone anything are around as at away back be because been before being
    below between both but by can cannot could did do does doing done down each either else
    enough even ever every everyone everything few first for from further get gets getting
    give gives go goes going gone got had has have having he her here hers him his how however
    i if in into is it its itself just last least less let lets like likely long lot lots made
    make makes making many may maybe me mean might mine more most much must my myself near
    need needs never new next no nobody none nor not nothing now of off often oh ok okay old
    on once one only onto or other others our ours out over own perhaps please quite rather
    really right said same say says see seem seems seen several shall she should since so some
    somebody someone something soon still such sure take takes than thank thanks that the
    their theirs them then there these they thing things think this those though three through
    till time times to today together tomorrow tonight too took toward two under until up upon
    us use used uses using very want wanted wants was way we well went were what whatever when
    where whether which while who whole whom whose why will with within without would yes
    yesterday yet you your yours yourself able actually afraid agree anyway ask asked asking
    bad become best better bit bring call came care come comes coming cool day days decided
    dear exactly feel feeling feels fine found fun glad good great guess happen happened happy
    hard hear heard hello help hey hi hope idea keep kind knew know known knows later learn
    left little live look looking looks love lovely morning nice night part people person
    place probably put read ready remember run sad seriously show sorry sort start started
    stop talk tell telling thinking thought told tried true try trying turn understand wait
    week weeks welcome wonder wonderful work works world worry wow write year years yeah yep
    four five six seven eight nine ten hundred thousand half second third big small month
    months hour hours minute minutes enjoy usually especially recently finally suddenly
    everybody somewhere doesn don didn isn wasn aren won couldn wouldn shouldn haven hasn
    """.split()  # noqa: SIM905 - a table of words
)
_WORD: Final = re.compile(r"[^\W\d_][\w+#'-]*")
_CAPITAL: Final = r"[^\W\d_a-z][\w'\u2019&-]*"
_NAME: Final = re.compile(
    rf"(?<![\w'])(?:(?:Mr|Mrs|Ms|Dr|Prof)\.? )?{_CAPITAL}"
    rf"(?: (?:(?:of|de|la|van|von|der|the|du|del) ){{0,2}}{_CAPITAL}){{0,3}}"
)
_NO_NAME: Final = frozenset(
    """
    ai sounds sound looks yup thx wow hmm
    i i'm i've i'd i'll ok tv am pm lol omg asap fyi btw monday tuesday wednesday thursday
    friday saturday sunday january february march april may june july august september october
    november december mr mrs ms dr christmas easter todo mondays tuesdays wednesdays thursdays
    fridays saturdays sundays
    """.split()  # noqa: SIM905 - a table of words
)
_TITLES: Final = frozenset({"mr", "mrs", "ms", "dr", "prof"})
_SHORTEST: Final = 3
_SHORT: Final = 2
_LONGEST: Final = 25
# How often a word that only begins sentences must do so to be a name.
_TWICE: Final = 2
_DEED: Final = re.compile(r"\w{3,}ed")
_OWNER: Final = re.compile(r"'s?$")


def content_words(text: str) -> list[str]:
    """Return the words of a text that name something, in lower case."""
    words = (found.group().casefold().strip("'-") for found in _WORD.finditer(text))
    plain = (_OWNER.sub("", word) for word in words)
    return [
        word
        for word in plain
        if len(word) >= _SHORTEST
        and word not in _COMMON
        and "'" not in word
        and not word.endswith("ly")
    ]


def names_of(texts: Sequence[str], others: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the capitalised names, in the order of their first mention.

    The first word of a sentence counts only if it is a name elsewhere, here or in `others`, or
    begins two sentences and is never in lower case.
    """
    found = list(_mentions(texts))
    inside = [name for _, name, is_first in found if not is_first]
    inside += [name for _, name, is_first in _mentions(others) if not is_first]
    known = {part for name in inside for part in (name, *name.split())}
    firsts = Counter(name for _, name, is_first in found if is_first)
    plain = {word for text in texts for word in text.split() if word.islower()}
    known |= {
        name
        for name, times in firsts.items()
        if times >= _TWICE and name.casefold() not in plain and not name.endswith("ing")
    }
    return tuple(
        dict.fromkeys(name for _, name, is_first in found if not is_first or name in known)
    )


def _mentions(texts: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Yield the place of a text, a name in it, and whether it is the text's first word alone."""
    for place, text in enumerate(texts):
        for match in _NAME.finditer(text):
            at_start = match.start() == 0
            name = _plain(match.group(), at_start=at_start)
            if name is not None:
                is_first = at_start and " " not in name and match.group().startswith(name)
                yield place, name, is_first


def themes(texts: Sequence[str], chosen: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the words that name what is talked about, the most frequent first.

    Two words that stand beside each other more than once are one theme. A word that occurs once
    is a theme only if it is in one of the `chosen` texts. Names are left out.
    """
    of_names = {part for name in names for part in name.casefold().split()}
    words = [word for text in texts for word in content_words(text) if word not in of_names]
    main = {stem(word) for text in chosen for word in content_words(text)}
    pairs = _pairs(texts, of_names)
    counts = Counter(map(stem, words))
    forms: dict[str, str] = {}
    for word in words:
        forms.setdefault(stem(word), word)
    in_pairs = {stem(part) for pair in pairs for part in pair.split()}
    return (
        *pairs,
        *(
            forms[root]
            for root, count in counts.most_common()
            if root not in in_pairs and (count > 1 or (root in main and _names_thing(forms[root])))
        ),
    )


def _names_thing(word: str) -> bool:
    return (
        word not in _NO_NAME
        and _DEED.fullmatch(word) is None
        and not is_past(word)
        and len(word) <= _LONGEST
    )


def _pairs(texts: Sequence[str], of_names: set[str]) -> list[str]:
    counts = Counter(pair for text in texts for pair in _neighbours(text, of_names))
    return [pair for pair, count in counts.most_common(3) if count > 1]


def _neighbours(text: str, of_names: set[str]) -> Iterator[str]:
    words = [found.group().casefold() for found in _WORD.finditer(text)]
    for left, right in pairwise(words):
        if {left, right} & of_names:
            continue
        if content_words(left) and content_words(right):
            yield f"{left} {right}"


def _plain(name: str, *, at_start: bool) -> str | None:
    """Return a name without its genitive and without a common word before it, or `None`."""
    words = _OWNER.sub("", name.replace("\u2019", "'")).split()
    while words and _is_no_name(words, at_start=at_start):
        words = words[1:]
    while words and words[-1].casefold() in _NO_NAME | {"of", "the", "de"}:
        words = words[:-1]
    plain = " ".join(words)
    if len(plain) < _SHORT or plain.casefold() in _COMMON or not plain[0].isupper() or "'" in plain:
        return None
    return plain


def _is_no_name(words: Sequence[str], *, at_start: bool) -> bool:
    first = words[0].casefold().rstrip(".")
    if first in _TITLES and len(words) > 1:
        return False
    return first in _NO_NAME or (at_start and first in _COMMON)
