"""The stems of English words.

Porter's algorithm: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, pages
130 to 137; https://tartarus.org/martin/PorterStemmer/def.txt. The names of the steps and the
measure m, the number of vowel-consonant sequences, are the paper's. Step 2 has the author's two
later corrections, -bli for -abli and -logi, which databases apply as well.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

__all__ = ["stem"]

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

    Words of fewer than 3 or more than 64 bytes of UTF-8 are not changed, nor those that end in
    another letter than those of ASCII, as all suffixes do.
    """
    if not word[-1:].isascii() or not _SHORTEST <= len(word.encode()) <= _LONGEST:
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
