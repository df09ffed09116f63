"""Answers beside the right ones, without a judge; pure functions.

The definitions are those of P. Rajpurkar et al., "SQuAD: 100,000+ questions for machine
comprehension of text", EMNLP 2016, https://arxiv.org/abs/1606.05250. Here they hold for all
scripts: where words have no spaces between them, each character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from locus_memory.errors import InvalidArgumentError
from locus_memory.store.words.normal_forms import normalized

__all__ = ["exact_match", "f1"]

_ARTICLES: Final = frozenset(("a", "an", "the"))
# Han, kana, Thai, Lao, Burmese and Khmer, each with the marks that follow.
_UNSPACED: Final = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\U00020000-\U0003ffff])"
)


def exact_match(answer: str, expected: Sequence[str]) -> bool:
    """Return whether an answer is one of the expected ones, but for case, marks and articles.

    Raises:
        InvalidArgumentError: There is no expected answer.
    """
    return _words(answer) in [_words(each) for each in _some(expected)]


def f1(answer: str, expected: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of the words of an answer, from 0 to 1.

    Of several expected answers, the one that is nearest counts.

    Raises:
        InvalidArgumentError: There is no expected answer.
    """
    return max(_f1(_words(answer), _words(each)) for each in _some(expected))


def _f1(said: list[str], wanted: list[str]) -> float:
    if not said or not wanted:
        return float(said == wanted)
    shared = (Counter(said) & Counter(wanted)).total()
    return 2 * shared / (len(said) + len(wanted))


def _words(text: str) -> list[str]:
    folded = normalized("NFKC", text).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char)[0] not in "PS")
    return [word for word in _UNSPACED.sub(r" \1 ", kept).split() if word not in _ARTICLES]


def _some(expected: Sequence[str]) -> Sequence[str]:
    if not expected:
        raise InvalidArgumentError("without an expected answer there is nothing to compare")
    return expected
