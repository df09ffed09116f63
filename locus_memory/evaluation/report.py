"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from locus_memory.evaluation.metrics import Interval, grouped_interval, ndcg_at, recall_at
from locus_memory.retrieval.hybrid import Mode

__all__ = ["BUDGETS", "DEPTHS", "NDCG_DEPTH", "SIDES", "Answer", "Margin", "Report", "Scores"]

DEPTHS: Final = (5, 10, 20, 50)
"""The numbers of turns at which recall is measured."""

BUDGETS: Final = (250, 500, 1000, 2000, 4000)
"""The budgets of tokens for which the recall of evidence is measured."""

NDCG_DEPTH: Final = 10

SIDES: Final[tuple[Mode, ...]] = ("text", "vector")
"""The two searches of hybrid search."""

_MARGIN_DEPTH: Final = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one question.

    Attributes:
        category: The kind of the question.
        evidence: The ids of the turns that hold the answer.
        found: The ids of the turns found, the best first.
        packed: For each budget of tokens, the ids of the turns that fit into it.
    """

    category: str
    evidence: tuple[str, ...]
    found: tuple[str, ...]
    packed: Mapping[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Scores:
    """The mean over some questions.

    Attributes:
        questions: The number of questions.
        recall: By number of turns, the share of the evidence among them.
        ndcg: nDCG@10.
        evidence_recall: By budget of tokens, the share of the evidence within it.
    """

    questions: int
    recall: Mapping[int, float]
    ndcg: float
    evidence_recall: Mapping[int, float]

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> Scores:
        """Return the scores of some answers, at least one."""
        return cls(
            questions=len(answers),
            recall={
                k: fmean(recall_at(each.found, each.evidence, k) for each in answers)
                for k in DEPTHS
            },
            ndcg=fmean(ndcg_at(each.found, each.evidence, NDCG_DEPTH) for each in answers),
            evidence_recall={
                budget: fmean(
                    recall_at(each.packed[budget], each.evidence, len(each.packed[budget]))
                    for each in answers
                )
                for budget in BUDGETS
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain JSON, rounded to four digits."""
        return {
            "questions": self.questions,
            "recall": {str(k): round(value, 4) for k, value in self.recall.items()},
            "ndcg@10": round(self.ndcg, 4),
            "evidence_recall": {
                str(budget): round(value, 4) for budget, value in self.evidence_recall.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a search is above the best of the others.

    Attributes:
        best: The other search with the highest nDCG@10.
        recall: The difference in recall@10.
        ndcg: The difference in nDCG@10.
    """

    best: str
    recall: Interval
    ndcg: Interval

    @classmethod
    def of(cls, answers: Sequence[Answer], others: Mapping[str, Sequence[Answer]]) -> Margin:
        """Return the margin of some answers to those of the other searches, at least one."""
        own = list(map(_figures, answers))
        figures = {name: list(map(_figures, each)) for name, each in others.items()}
        best = max(figures, key=lambda name: fmean(ndcg for _, ndcg in figures[name]))
        apart = [
            (recall - other_recall, ndcg - other_ndcg)
            for (recall, ndcg), (other_recall, other_ndcg) in zip(own, figures[best], strict=True)
        ]
        recalls, ndcgs = zip(*apart, strict=True)
        return cls(best, grouped_interval([recalls]), grouped_interval([ndcgs]))

    def to_dict(self) -> dict[str, Any]:
        """Return the margin as plain JSON, rounded to four digits."""
        return {
            "best": self.best,
            "recall@10": {name: round(each, 4) for name, each in self.recall._asdict().items()},
            "ndcg@10": {name: round(each, 4) for name, each in self.ndcg._asdict().items()},
        }


def _figures(answer: Answer) -> tuple[float, float]:
    found, wanted = answer.found, answer.evidence
    return recall_at(found, wanted, _MARGIN_DEPTH), ndcg_at(found, wanted, NDCG_DEPTH)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an evaluation.

    Attributes:
        overall: The scores over all questions.
        categories: The scores by kind of question.
        sides: The overall scores of other searches: `bm25`, the plain formula over the turns;
            with vectors, `cosine`, their plain order, and `rrf`, the reciprocal rank fusion of
            both (k = 60); if both searches ran, `text` alone and `vector` alone, with the rules of
            the ranking; with a reranker, `first` is the search without it.
        margin: How far the search is above the best of them.
        conversations: The number of conversations.
        turns: The number of their turns.
        mode: The searches that ran: `hybrid`, or `text` or `vector` alone.
        embedder: The model's name, or `None`.
        reranker: The model's name, or `None`.
        median_ms: The median time of a search in milliseconds, without the embedding of the
            query. It is the only figure that differs between runs.
        block_recall: The share of the evidence that a run is shown: quoted in the default block
            of memories, from the words alone, without a model and without vectors.
        block_tokens: The mean tokens of this block.
    """

    overall: Scores
    categories: Mapping[str, Scores]
    sides: Mapping[str, Scores]
    margin: Margin
    conversations: int
    turns: int
    mode: Mode
    embedder: str | None
    reranker: str | None
    median_ms: float
    block_recall: float
    block_tokens: float

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {
            "mode": self.mode,
            "embedder": self.embedder,
            "reranker": self.reranker,
            "conversations": self.conversations,
            "turns": self.turns,
            "overall": self.overall.to_dict(),
            "categories": {name: each.to_dict() for name, each in self.categories.items()},
            "sides": {name: each.to_dict() for name, each in self.sides.items()},
            "margin": self.margin.to_dict(),
            "median_ms": round(self.median_ms, 3),
            "block": {
                "evidence_recall": round(self.block_recall, 4),
                "tokens": round(self.block_tokens),
            },
        }
