"""The words of items and queries in text search.

Every backend indexes `searchable(value, text)` and searches for `query_words(query)`. Both fold
characters that are not ASCII in the same way, so that the same query finds the same items on every
backend. An engine of the library also uses `tokens`, which follows SQLite's tokenizer
`porter unicode61 remove_diacritics 2`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from locus_memory.store.item import check_text

__all__ = [
    "STOP_WORDS",
    "count_tokens",
    "index_text",
    "query_words",
    "searchable",
    "segment",
    "stem",
    "tokens",
    "tokens_of_all",
]

# Articles and pronouns, question words, auxiliaries with the rests of their contractions,
# conjunctions, prepositions, and adverbs that name no subject.
_FUNCTION_WORDS: Final = """
a an the i me my mine myself we us our ours you your yours he him his she her hers it its
they them their theirs this that these those there here some any each both all such
what which who whom whose when where why how
am is are was were be been being do does did doing done have has had having can could
will would shall should might must s t d ll m re ve don didn doesn isn wasn aren weren
hasn haven hadn couldn wouldn shouldn won
and or but nor not no if then than so as at by for from in into of on onto to with without
about between through during before after above below again also just only very too while
because until
"""

STOP_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
"""Words without information about the subject of a query: function and question words."""

# Han with its radicals and numerals, Hiragana and Katakana, full and half width.
_CJK = re.compile(
    "([\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af])"
)
_WORD = re.compile(r"[^\W_]+")
_BETWEEN = re.compile(r"[\W_]")
_CONTAINERS: Final = (dict, list)
_PIECE: Final = 64 * 1024
"""Characters of a text that are folded and split at a time; that takes a few milliseconds."""

_FOLDED: Final = bytes(
    ord(chr(code).lower()) if chr(code).isascii() and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
"""The result of `_WORD` and `_fold` for ASCII, as a table: several times as fast."""

_END: Final = "\x01"
_FOLDED_PARTS: Final = _FOLDED[: ord(_END)] + _END.encode() + _FOLDED[ord(_END) + 1 :]
"""The same, but the end of a part is not changed."""

# Accents of Latin, Greek and Cyrillic, points of Hebrew, short vowels of Arabic, marks of
# symbols. The marks of other scripts are kept: there they are part of the word.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
    "\u08d3-\u08e1\u08e3-\u08ff]+"
)


def index_text(value: Any) -> str:
    """Return all strings inside a JSON value, in order, one per line; no key names."""
    if isinstance(value, str):
        return value.replace("\x00", " ")
    found: list[str] = []
    if isinstance(value, _CONTAINERS):
        _collect(value, found)
    return "\n".join(found).replace("\x00", " ")


def _collect(value: Any, found: list[str]) -> None:
    children: Iterable[Any] = value.values() if isinstance(value, dict) else value
    for child in children:
        if isinstance(child, str):
            found.append(child)
        elif isinstance(child, _CONTAINERS):
            _collect(child, found)


def segment(text: str) -> str:
    """Return `text` with spaces around Han and Kana characters.

    These scripts have no spaces, so an engine that splits on spaces would read a sentence as one
    word. Hangul has spaces and is not changed, like all other scripts.
    """
    return text if text.isascii() else _CJK.sub(r" \1 ", text)


def searchable(value: Any, text: str | None) -> str:
    """Return the text of an item for text search: `text` if given, else the value's strings.

    ASCII is not changed; the engine splits and folds it. Other characters are folded and split
    here, because engines differ in the letters they know.

    Raises:
        InvalidArgumentError: `text` is not a string of whole characters.
    """
    found = index_text(value) if text is None else index_text(check_text(text, "text"))
    if found.isascii():
        return found
    return "".join(_BETWEEN.sub(" ", segment(_fold(piece))) for piece in _pieces(found))


def query_words(query: str) -> list[str]:
    """Return the distinct words of a query, folded, in order.

    Stop words are left out unless the query has no other words. A query without a letter or a digit
    has no words, and matches nothing.

    Raises:
        InvalidArgumentError: `query` is not a string of whole characters.
    """
    pieces = _pieces(check_text(query, "a query") or "")
    words = list(dict.fromkeys(chain.from_iterable(map(_words, pieces))))
    return [word for word in words if word not in STOP_WORDS] or words


def tokens(text: str) -> list[str]:
    """Return the words of `text`, folded and stemmed, with repeats."""
    found: list[str] = []
    for piece in _pieces(text):
        found += map(stem, _words(piece))
    return found


def count_tokens(text: str) -> Counter[str]:
    """Return how often each of the `tokens` of a text occurs."""
    counts: Counter[str] = Counter()
    for piece in _pieces(text):
        counts.update(map(stem, _words(piece)))
    return counts


def tokens_of_all(values: Sequence[Any], texts: Sequence[str | None]) -> list[list[str]]:
    """Return `tokens(searchable(value, text))` of each, in three quarters of the time.

    Raises:
        InvalidArgumentError: A text is not a string of whole characters.
    """
    found: list[str] = []
    for value, text in zip(values, texts, strict=True):
        seen = value if text is None else check_text(text, "text")
        if isinstance(seen, _CONTAINERS):
            _collect(seen, found)
        elif isinstance(seen, str):
            found.append(seen)
        found.append(_END)
    joined = "\n".join(found)
    if joined.count(_END) != len(values) or len(joined) > _PIECE * len(values):
        return [tokens(searchable(*each)) for each in zip(values, texts, strict=True)]
    if joined.isascii():
        parts = joined.encode().translate(_FOLDED_PARTS).decode().split(_END)[:-1]
        return [list(map(stem, part.split())) for part in parts]
    parts = segment(_fold(joined)).split(_END)[:-1]
    return [list(map(stem, _WORD.findall(part))) for part in parts]


def _pieces(text: str) -> Iterator[str]:
    """Yield the parts of a long text, cut before a space, where nothing is folded or joined.

    Code in C lets no other thread run before it is done, so it gets one piece at a time. A text
    without spaces stays whole.
    """
    start = 0
    while len(text) - start > _PIECE:
        end = text.find(" ", start + _PIECE)
        if end < 0:
            break
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.encode().translate(_FOLDED).decode().split()
    return _WORD.findall(segment(_fold(text)))


def _fold(text: str) -> str:
    """Return `text` without case and accents, one form for each character; idempotent."""
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    # The syllables of Hangul, and Kana with their voicing marks, are composed again.
    return unicodedata.normalize("NFC", bare.casefold())


# Porter's algorithm: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980,
# pages 130 to 137; https://tartarus.org/martin/PorterStemmer/def.txt. The names of the steps
# and the measure m, the number of vowel-consonant sequences, are the paper's. Step 2 has the
# author's two later corrections, -bli for -abli and -logi, which databases apply as well.

_STEP_2: Final = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("logi", "log"),
)
_STEP_3: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_STEP_4: Final = (
    *("ement", "ance", "ence", "able", "ible", "ment", "sion", "tion", "ant", "ent", "ism"),
    *("ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou"),
)
_SHORTEST, _LONGEST = 3, 64

_SUFFIXES_2: Final = tuple(suffix for suffix, _ in _STEP_2)
_SUFFIXES_3: Final = tuple(suffix for suffix, _ in _STEP_3)
"""Most words have no suffix of a step, and one call of `endswith` says so."""


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word, by Porter's algorithm of 1980.

    Words of fewer than 3 or more than 64 bytes of UTF-8 are not changed.
    """
    if not _SHORTEST <= len(word.encode()) <= _LONGEST:
        return word
    word = _step_1c(_step_1b(_step_1a(word)))
    if word.endswith(_SUFFIXES_2):
        word = _replace(word, _STEP_2)
    if word.endswith(_SUFFIXES_3):
        word = _replace(word, _STEP_3)
    return _step_5(_step_4(word))


def _shape(word: str) -> str:
    """Return one letter per character: `v` for a vowel, `c` for a consonant."""
    shape: list[str] = []
    for character in word:
        # A y is a vowel after a consonant only.
        after_consonant = bool(shape) and shape[-1] == "c"
        vowel = character in "aeiou" or (character == "y" and after_consonant)
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(word: str) -> int:
    return _shape(word).count("vc")


def _ends_double(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1a(word: str) -> str:
    # As SQLite, whose words "ies" and "sses" alone have no such ending.
    if word not in ("ies", "sses") and word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            base = word.removesuffix(suffix)
            return _restore(base) if "v" in _shape(base) else word
    return word


def _restore(base: str) -> str:
    """Restore the letter that `-ed` or `-ing` removed, or drop the one they doubled."""
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if _ends_double(base) and base[-1] not in "lsz":
        return base[:-1]
    return base + "e" if _measure(base) == 1 and _ends_cvc(base) else base


def _step_1c(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and "v" in _shape(word[:-1]) else word


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    # The longest suffix decides, even if its condition does not hold.
    matching = [rule for rule in rules if word.endswith(rule[0])]
    suffix, replacement = max(matching, key=lambda rule: len(rule[0]))
    base = word.removesuffix(suffix)
    return base + replacement if _measure(base) > 0 else word


def _step_4(word: str) -> str:
    if not word.endswith(_STEP_4):
        return word
    suffix = next(each for each in _STEP_4 if word.endswith(each))
    # -ion is removed only after an s or a t, which stays.
    base = word.removesuffix("ion" if suffix in ("sion", "tion") else suffix)
    return base if _measure(base) > 1 else word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        base = word[:-1]
        measure = _measure(base)
        if measure > 1 or (measure == 1 and not _ends_cvc(base)):
            word = base
    if word.endswith("ll") and _measure(word) > 1:
        return word[:-1]
    return word
