"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from locus_memory.evaluation.metrics import ndcg_at, recall_at
from locus_memory.retrieval.hybrid import Mode

__all__ = ["BUDGETS", "DEPTHS", "NDCG_DEPTH", "SIDES", "Answer", "Report", "Scores"]

DEPTHS: Final = (5, 10, 20, 50)
"""The numbers of turns at which recall is measured."""

BUDGETS: Final = (250, 500, 1000, 2000, 4000)
"""The budgets of tokens for which the recall of evidence is measured."""

NDCG_DEPTH: Final = 10

SIDES: Final[tuple[Mode, ...]] = ("text", "vector")
"""The two searches of hybrid search."""


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
                k: _mean(recall_at(each.found, each.evidence, k) for each in answers)
                for k in DEPTHS
            },
            ndcg=_mean(ndcg_at(each.found, each.evidence, NDCG_DEPTH) for each in answers),
            evidence_recall={
                budget: _mean(
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


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an evaluation.

    Attributes:
        overall: The scores over all questions.
        categories: The scores by kind of question.
        sides: The overall scores of `text` alone and of `vector` alone, with the same rules;
            empty unless both searches ran.
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
    sides: Mapping[Mode, Scores]
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
            "median_ms": round(self.median_ms, 3),
            "block": {
                "evidence_recall": round(self.block_recall, 4),
                "tokens": round(self.block_tokens),
            },
        }
