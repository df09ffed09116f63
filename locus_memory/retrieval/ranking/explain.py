"""Why a hit ranks where it does."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Explanation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that made up the score of a hit.

    `evidence = text + vector + words + neighbour`, and the score before reranking is
    `evidence * speaker * date + succession`.

    Attributes:
        text_rank: Its place in the text search, from 1; `None`: not found by it.
        text_score: The engine's own score there.
        vector_rank: Its place in the vector search, from 1; `None`: not found by it.
        vector_score: The cosine there.
        text: What the text search contributes.
        vector: What the vector search contributes.
        words: What the words in the item itself contribute.
        neighbour: What a good item beside it in the conversation contributes.
        speaker: The factor for a speaker or role whom the query names; 1: none.
        date: The factor for a date that the query names; 1: none.
        succession: What it gained by taking the place of a better hit that it supersedes.
        superseded_by: The key of the nearest hit above it that supersedes it, if there is one.
        rerank: The reranker's own score; `None`: it did not see the hit.
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
    succession: float = 0.0
    superseded_by: str | None = None
    rerank: float | None = None

    @property
    def score(self) -> float:
        """The score before reranking."""
        evidence = self.text + self.vector + self.words + self.neighbour
        return evidence * self.speaker * self.date + self.succession

    def to_dict(self) -> dict[str, Any]:
        """Return every part as plain JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return the reasons in one line, those that do not apply left out."""
        reasons = [
            f"text #{self.text_rank} {self.text:+.2f}" if self.text_rank else "",
            f"vector #{self.vector_rank} {self.vector:+.2f}" if self.vector_rank else "",
            f"own words {self.words:+.2f}" if self.words else "",
            f"neighbour {self.neighbour:+.2f}" if self.neighbour else "",
            f"speaker x{self.speaker:g}" if self.speaker != 1 else "",
            f"date x{self.date:g}" if self.date != 1 else "",
            f"supersedes a better one {self.succession:+.2f}" if self.succession else "",
            f"superseded by {self.superseded_by}" if self.superseded_by else "",
            f"reranker {self.rerank:.3g}" if self.rerank is not None else "",
        ]
        return ", ".join(filter(None, reasons))
