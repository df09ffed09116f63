"""Rule 7: whether the facts that a search found say something about a message; pure.

Words decide, and the vectors of an embedder whose scale is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from locus_memory.memory.planning.everyday import EVERYDAY
from locus_memory.memory.planning.gate_tables import concerns_user
from locus_memory.memory.recall.found import Fact
from locus_memory.retrieval.ranking.query import both_ends
from locus_memory.store.text import STOP_WORDS, query_meanings, query_words, stem

__all__ = ["COUNTED", "content_words", "evidence_of", "is_near", "telling_words"]

COUNTED: Final = 201
"""How many facts of a scope are counted; of more, the rarity of a word changes no decision."""

_RARE: Final = 0.05
_COMMON: Final = 0.25
_FEW: Final = 8
"""In a scope with fewer facts, the share of the facts with a word says nothing."""

_NEAR, _VERY_NEAR = 0.5, 0.6
_END: Final = 1_000
_TWO: Final = 2
_OF_STOP_WORDS: Final = frozenset(map(stem, STOP_WORDS))


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text; of a long one, of its two ends."""
    return _content_words(both_ends(text))


@lru_cache(maxsize=2048)
def _content_words(text: str) -> frozenset[str]:
    words = query_words(_whole(text))
    return frozenset(stem(word) for word in words if word not in STOP_WORDS)


def _whole(text: str) -> str:
    """Return a text without halves of characters."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def telling_words(words: AbstractSet[str]) -> frozenset[str]:
    """Return the words that are no everyday words, numbers or single letters."""
    return frozenset(
        word
        for word in words
        if word not in EVERYDAY and not word.isdigit() and not (len(word) == 1 and word.isascii())
    )


def evidence_of(message: str, facts: Sequence[str | Fact], total: int) -> str | None:
    """Return why the facts that a search found are evidence; `None` if they are not.

    They are if one fact has two content words of the message, one of which is no everyday word. A
    single such word is enough if fewer than 5% of all facts have it, and the message concerns the
    user: "Suggest a cake with hazelnuts", but not "What is the plural of hazelnut?". A word that
    more than a quarter of all facts have does not count.

    Args:
        message: The message.
        facts: The facts, best first; or their texts.
        total: How many facts the scope has, up to `COUNTED`.
    """
    words, twins = content_words(message), _twins(message)
    shared = [_once(_shared(words, fact), twins) for fact in facts]
    counts = Counter(word for common in shared for word in common)
    total = max(total, len(facts))
    if total >= _FEW:
        usual = {word for word, count in counts.items() if count > total * _COMMON}
        shared = [common - usual for common in shared]
    telling = telling_words(frozenset[str]().union(*shared))
    if any(_weight(common) >= _TWO and common & telling for common in shared):
        return "two words of a fact"
    if not concerns_user(message):
        return None
    # A single character of Han or Kana is seldom a word.
    whole = [word for word in telling if len(word) > 1]
    rare = any(counts[word] == 1 or counts[word] < total * _RARE for word in whole)
    return "a rare word of a fact" if rare else None


def _shared(words: frozenset[str], fact: str | Fact) -> frozenset[str]:
    """Return the content words that a message and a fact have in common."""
    if isinstance(fact, str):
        return words & content_words(fact)
    content = fact.memory.content
    # The ranking knows the stems of all words. None of the message is that of a stop word, as "hi"
    # is of "his", and no end of a fact is left out: then the same words are in common.
    if fact.stems is not None and len(content) <= _END and words.isdisjoint(_OF_STOP_WORDS):
        return words.intersection(fact.stems)
    return words & content_words(content)


def _twins(message: str) -> dict[str, str]:
    """Return the stems of the further forms of words, each with the stem of the word itself.

    In German, "hunde" is also searched as "hund", which is no second word.
    """
    meanings = query_meanings(_whole(both_ends(message)))
    return {form: word for word, *forms in meanings for form in forms}


def _once(words: frozenset[str], twins: Mapping[str, str]) -> frozenset[str]:
    """Return the words without further forms of the same word."""
    return frozenset(twins.get(word, word) for word in words) if twins else words


def is_near(message: str, nearness: Iterable[float | None]) -> bool:
    """Return whether a fact's vector is near enough to that of the message to be evidence.

    That is from 0.6 of the way from unrelated texts to paraphrases, or from the half if the message
    concerns the user. The way is the embedder's own, see `Scale`. Of 200 everyday questions to 60
    facts, with bge-small-en-v1.5, the nearest fact is at 0.22 in the median and at 0.59 at most; of
    30 of these that concern the user, at 0.44 at most.

    Args:
        message: The message.
        nearness: The place of each fact on that way, see `Fact.nearness`.
    """
    nearest = max((each for each in nearness if each is not None), default=0.0)
    return nearest >= _VERY_NEAR or (nearest >= _NEAR and concerns_user(message))


def _weight(words: AbstractSet[str]) -> float:
    """Return how many words there are; a character of Han or Kana counts half."""
    return sum(1.0 if len(word) > 1 or word.isascii() else 0.5 for word in words)
