"""Normal forms of Unicode, in time that grows with the length of any text."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

__all__ = ["normalized"]

_MOST: Final = 30
"""Marks of one letter: https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format."""

# One set after the other, which `re` repeats fast and without memory. What is no word has all marks
# but two of Kana in half width; few other texts have such a run.
_RUN: Final = re.compile(rf"[^\x00-\u02ff][\W\uff9e\uff9f]{{{_MOST},}}")


def normalized(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a normal form of a text, without the marks of a letter beyond the first 30.

    No word of a language has so many. Normalisation sorts the marks of a letter, in a time that
    grows with the square of their number.
    """
    return unicodedata.normalize(form, _RUN.sub(_limited, text))


def _limited(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for each in run[0]:
        is_mark = unicodedata.combining(unicodedata.normalize("NFKD", each)[0])
        marks = marks + 1 if is_mark else 0
        if marks <= _MOST:
            kept.append(each)
    return "".join(kept)
