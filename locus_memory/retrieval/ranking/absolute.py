"""Relevance: a score from 0 to 1 that means the same in every search; pure.

The scores of a ranking are stretched for each query: the best hit has a high one even if nothing
fits. The relevance is not. It is made of the share of the query's words that an item has, and of
the cosine of the two vectors on the scale of the model. Both are computed here from the items, not
from the scores of an engine, so they are the same on every backend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul, or_
from typing import Final

from locus_memory._internal.quoting import quote
from locus_memory.errors import InvalidArgumentError
from locus_memory.retrieval.embedders.scale import Scale
from locus_memory.retrieval.ranking.dates import day_in_words
from locus_memory.retrieval.ranking.fields import Passage, stems_of_names
from locus_memory.retrieval.ranking.query import Meanings, Query
from locus_memory.store.item import Namespace

__all__ = [
    "Nearness",
    "check_min_score",
    "contrast",
    "level",
    "matches",
    "rarities",
    "relevance",
    "relevances",
    "shares_of",
    "word_shares",
]

_BETTER: Final = 0.7
_MEAN: Final = 0.3
"""The weights of the better of both parts, and of their mean."""

_UNSEEN: Final = 0.5
"""How many documents have a word that none has."""

_FEW: Final = 20
"""Among fewer items, how often a word occurs says little."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """The cosines that a vector search found.

    Attributes:
        scale: The scale of the embedder.
        cosines: The cosines of the found items, by namespace and key.
        beyond: The highest possible cosine of any other item; `None`: any other item has no vector.
    """

    scale: Scale
    cosines: Mapping[tuple[Namespace, str], float]
    beyond: float | None = None

    def of(self, name: tuple[Namespace, str]) -> float | None:
        """Return the cosine of an item on the scale, from 0 to 1; `None`: it has no vector."""
        cosine = self.cosines.get(name, self.beyond)
        return None if cosine is None else self.scale.place(cosine)


def contrast(cosines: Sequence[float], scale: Scale) -> float | None:
    """Return how far the nearest item stands out among the nearest ones, from 0 to 1.

    A question about the subject of a collection is near to all of its items. One that an item
    answers is nearer to this one. The distance of the best cosine from the mean is a measure of how
    well a search does: A. Shtok et al., "Predicting query performance by query-drift estimation",
    ACM Transactions on Information Systems 30(2), 2012, https://doi.org/10.1145/2180868.2180873.

    Args:
        cosines: Those of the nearest items, the best first. As many as are missing to 20 count as
            unrelated, so that an only item can stand out.
        scale: The scale of the embedder.

    Returns:
        The distance as a share of that between unrelated texts and paraphrases; `None`: there are
        no cosines.
    """
    if not cosines:
        return None
    unrelated = [scale.unrelated] * max(0, _FEW - len(cosines))
    mean = math.fsum([*cosines, *unrelated]) / max(_FEW, len(cosines))
    apart = (cosines[0] - mean) / (scale.paraphrase - scale.unrelated)
    return min(1.0, max(0.0, apart))


def level(cosines: Sequence[float], scale: Scale) -> float | None:
    """Return the mean of the nearest items on the scale of the model, from 0 to 1.

    Args:
        cosines: Those of the nearest items; as many as are missing to 20 count as unrelated.
        scale: The scale of the embedder.

    Returns:
        The mean; `None`: there are no cosines.
    """
    if not cosines:
        return None
    return math.fsum(map(scale.place, cosines)) / max(_FEW, len(cosines))


def rarities(matches: Sequence[Sequence[float]]) -> list[float]:
    """Return the weight of each word: `ln(1 + N / df)`, at least 1 among fewer than 20 documents.

    N is the number of documents, and df the number of those with the word. A word that no document
    has counts as half of one, as is usual for what was never seen, so it weighs more than the
    rarest one: an item with one of two words has less than half of them if the other is in none.

    The documents are the candidates of a search, since no store tells how many items have a word.
    In a search of text and vectors these are all items of a namespace that has no more than the
    searches fetch. In a larger one, N is too low; df is exact for a word whose items were all
    found, as those of rare words are. A rare word then weighs more, compared with a common one,
    than among all items.

    Args:
        matches: For each word, whether each document has it; a share is less than having it.
    """
    return [
        max(1.0 if len(found) < _FEW else 0.0, math.log1p(len(found) / (found.count(1) or _UNSEEN)))
        for found in matches
    ]


def word_shares(matches: Sequence[Sequence[float]]) -> list[float]:
    """Return the share of the words that each document has, weighted by `rarities`, from 0 to 1.

    A document that gets one more of the words never has a lower share than before.

    Args:
        matches: For each word, whether each document has it, or the share of it that it has; at
            least one word.
    """
    weights = rarities(matches)
    whole = math.fsum(weights)
    documents = list(zip(*matches, strict=True))
    # There are far fewer choices of words than documents.
    shares = {each: math.fsum(map(mul, weights, each)) / whole for each in set(documents)}
    return [min(1.0, shares[each]) for each in documents]


def relevance(text: float | None, dense: float | None) -> float:
    """Return the relevance of an item: 0.7 of the better part and 0.3 of the mean of both.

    Args:
        text: The share of the query's words that the item has; `None`: the query has no words.
        dense: The cosine on the model's scale; `None`: there is none. Then the other part decides
            alone.
    """
    if text is None or dense is None:
        return (dense or 0.0) if text is None else text
    return _BETTER * max(text, dense) + _MEAN * (text + dense) / 2


def shares_of(query: Query, passages: Sequence[Passage]) -> list[float]:
    """Return the share of the query's words that each candidate has; empty if it has no words.

    A date counts as the query writes it, or as `index_turns` writes the day of the candidate.

    Args:
        query: The query.
        passages: The candidates.
    """
    found = matches(query.meanings, passages)
    shares = word_shares(found) if found else []
    if not query.dated:
        return shares
    days = [(day_in_words(each.day),) if each.day else () for each in passages]
    return list(map(max, shares, word_shares(matches(query.dated, passages, days))))


def relevances(shares: Sequence[float], dense: Sequence[float | None]) -> list[float]:
    """Return the relevance of each candidate of a search.

    Args:
        shares: The share of the query's words that each has; empty: the query has no words.
        dense: The cosine of each on the model's scale; `None`: it has none.
    """
    if not shares:
        return [relevance(None, each) for each in dense]
    return list(map(relevance, shares, dense))


def matches(
    words: Meanings, passages: Sequence[Passage], further: Sequence[tuple[str, ...]] | None = None
) -> list[list[bool]]:
    """Return for each word whether each text, its title or its speakers have it.

    Args:
        words: The words; any stem of an entry counts as the word.
        passages: The candidates.
        further: Further words of each.
    """
    counts = [each.words.counts for each in passages]
    names = [(*each.speakers, each.title) for each in passages]
    if further is not None:
        names = [(*own, *more) for own, more in zip(names, further, strict=True)]
    # Far fewer names than texts, and hardly ever in a query.
    stems = {each: stems_of_names(each) for each in set(names)}
    named = frozenset[str]().union(*stems.values())
    found: list[list[bool]] = []
    for entry in words:
        first, *others = entry
        matching = [first in each for each in counts]
        for word in others:
            matching = list(map(or_, matching, [word in each for each in counts]))
        if not named.isdisjoint(entry):
            in_name = [not stems[each].isdisjoint(entry) for each in names]
            matching = list(map(or_, matching, in_name))
        found.append(matching)
    return found


def check_min_score(min_score: object) -> float | None:
    """Return a lowest relevance, or `None`.

    Raises:
        InvalidArgumentError: It is not a number from 0 to 1.
    """
    if min_score is None:
        return None
    if (
        isinstance(min_score, int | float)
        and not isinstance(min_score, bool)
        and 0 <= min_score <= 1
    ):
        return float(min_score)
    raise InvalidArgumentError(f"min_score is a number from 0 to 1, not {quote(min_score)}")
