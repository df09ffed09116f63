"""The explanation of a hit's rank."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The parts of the score of a hit.

    `evidence = text + vector + words + neighbour`, and the score before reranking is
    `evidence * speaker * date + succession - capped`. In a query that is searched by its passages,
    the `sentence` takes the place of the first product, which is then that of the best passage.

    Attributes:
        text_rank: Its rank in the text search, from 1; `None`: the text search did not find it.
        text_score: The engine's own score in the text search.
        vector_rank: Its rank in the vector search, from 1; `None`: the vector search did not find
            it.
        vector_score: The cosine in the vector search.
        text: The contribution of the text search.
        vector: The contribution of the vector search.
        words: The contribution of the item's own words.
        neighbour: The contribution of a good neighbour in the conversation.
        speaker: The factor for a speaker or role that the query names or means; 1: none.
        date: The factor for a date that the query names; 1: none.
        sentence: The relevance to the sentence of a long query that it fits best; `None`: the query
            is searched as a whole.
        succession: The gain from the place of a better hit that it supersedes.
        capped: What was taken off beyond the first `SearchOptions.depth` hits of the searches: no
            such hit has a higher score than those before it.
        superseded_by: The key of the nearest hit above it that supersedes it, if there is one.
        rerank: The reranker's own score; `None`: the hit was not reranked.
    """

    text_rank: int | None = None
    text_score: float | None = None
    vector_rank: int | None = None
    vector_score: float | None = None
    text: float = 0.0
    vector: float = 0.0
    words: float = 0.0
    neighbour: float = 0.0
    speaker: float = 1.0
    date: float = 1.0
    sentence: float | None = None
    succession: float = 0.0
    capped: float = 0.0
    superseded_by: str | None = None
    rerank: float | None = None

    @property
    def score(self) -> float:
        """The score before reranking."""
        score = self.sentence
        if score is None:
            evidence = self.text + self.vector + self.words + self.neighbour
            score = evidence * self.speaker * self.date
        return score + self.succession - self.capped

    def to_dict(self) -> dict[str, Any]:
        """Return every part as plain JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return the parts that apply in one line."""
        reasons = [
            f"text #{self.text_rank} {self.text:+.2f}" if self.text_rank else "",
            f"vector #{self.vector_rank} {self.vector:+.2f}" if self.vector_rank else "",
            f"own words {self.words:+.2f}" if self.words else "",
            f"neighbour {self.neighbour:+.2f}" if self.neighbour else "",
            f"speaker x{self.speaker:g}" if self.speaker != 1 else "",
            f"date x{self.date:g}" if self.date != 1 else "",
            f"best sentence {self.sentence:.2f}" if self.sentence is not None else "",
            f"supersedes a better one {self.succession:+.2f}" if self.succession else "",
            f"of a later window {-self.capped:+.2f}" if self.capped else "",
            f"superseded by {self.superseded_by}" if self.superseded_by else "",
            f"reranker {self.rerank:.3g}" if self.rerank is not None else "",
        ]
        return ", ".join(filter(None, reasons))
